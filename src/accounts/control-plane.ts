import type { Actor, AuditEvent, AuditRecord } from '../domain/audit.ts'
import type { Clock } from '../runtime/clock.ts'
import type { RandomBytes } from '../runtime/random.ts'
import type { Secret } from '../runtime/secret.ts'
import { AccountsError } from './accounts-error.ts'
import type { AccountStore } from './ports.ts'

/**
 * What a control plane operation needs: the store, clock, randomness, the pepper for key digests, and the actor. A
 * program that serves many actors adds the actor per call: `{ ...parts, actor }`.
 */
export interface AccountsDeps<Store = AccountStore> {
  readonly store: Store
  readonly clock: Pick<Clock, 'nowMs'>
  readonly random: RandomBytes
  readonly pepper: Secret
  readonly actor: Actor
}

/** An audit event with its actor and time, as it is stored with the change. */
export function auditRecord({ actor, clock }: Pick<AccountsDeps, 'actor' | 'clock'>, event: AuditEvent): AuditRecord {
  return { actor, atMs: Math.floor(clock.nowMs()), event }
}

/**
 * The acting operator as stored with a decision: the id of an operator or of a token of the admin API, or `cli`. @throws AccountsError `operator_only` if the
 * actor is not an operator
 */
export function operatorOf(actor: Actor): string {
  if (actor.kind === 'operator') return actor.operatorId
  if (actor.kind === 'token') return actor.tokenId
  if (actor.kind === 'cli') return actor.kind
  throw new AccountsError('operator_only')
}
