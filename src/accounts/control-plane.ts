import type { Actor, AuditEvent, AuditRecord } from '../domain/audit.ts'
import type { Clock } from '../domain/clock.ts'
import type { RandomBytes } from '../domain/random.ts'
import type { Secret } from '../domain/secret.ts'
import type { AccountStore } from './ports.ts'
import { AccountsError } from './refusals.ts'

/**
 * What a change of the control plane works with: the store, time, randomness, the pepper that keys are hashed with, and
 * who asks for it. A program that many ask keeps the rest and adds the actor for each call: `{ ...parts, actor }`.
 */
export interface ControlPlane<Store = AccountStore> {
  readonly store: Store
  readonly clock: Pick<Clock, 'nowMs'>
  readonly random: RandomBytes
  readonly pepper: Secret
  readonly actor: Actor
}

/** An event as it is kept with the change that it tells of: by whom, and when. */
export function recordOf({ actor, clock }: Pick<ControlPlane, 'actor' | 'clock'>, event: AuditEvent): AuditRecord {
  return { actor, atMs: Math.floor(clock.nowMs()), event }
}

/** How the operator who asks is named in what is kept: its id, or `cli`. @throws AccountsError `operator_only`: nothing decides such things by itself */
export function operatorOf(actor: Actor): string {
  if (actor.kind === 'operator') return actor.operatorId
  if (actor.kind === 'cli') return actor.kind
  throw new AccountsError('operator_only')
}
