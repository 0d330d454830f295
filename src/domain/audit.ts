import type { HoldReason } from './backend-controls.ts'
import { keyPrefix } from './keys.ts'
import type { OperatorRole } from './operators.ts'

/**
 * Who did something: a person who operates the service (`opr_…`), an account's own person signed in (the id of the
 * session's row, never its token), the command line of the machine, or the service by itself.
 */
export type Actor =
  | { readonly kind: 'operator'; readonly operatorId: string }
  | { readonly kind: 'session'; readonly sessionId: string; readonly accountId: string }
  | { readonly kind: 'cli' }
  | { readonly kind: 'system' }

/** Why a key was revoked: its owner or an operator asked, or somebody found it where it should not be. */
export type RevocationReason = 'asked' | 'leaked'
/** Why managed access opened or closed by itself: the check that decided. */
export type GateReason =
  | 'switched_on'
  | 'switched_off'
  | 'resale_controls'
  | 'durable_quotas'
  | 'durable_audit'
  | 'store_silent'

/** What each field of an event holds. Nothing else gets in: no text of people, no secret, no address (contract 25.2). */
const idShape = /^[a-z]{2,5}_[0-9A-Za-z]{1,40}$/
const nameShape = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const wordShape = /^[a-z][a-z_]{0,31}$/

/** Every field that an event can have, and how it is written. */
const fieldShapes = {
  accountId: idShape,
  keyId: idShape,
  nextKeyId: idShape,
  upstreamId: idShape,
  requestId: idShape,
  operatorId: idShape,
  incidentId: idShape,
  ticketId: idShape,
  /** As the configuration names it. */
  backend: nameShape,
  planId: nameShape,
  provider: nameShape,
  noteId: nameShape,
  reason: wordShape,
  role: wordShape,
  endsAtMs: undefined,
  profiles: undefined,
  perMinute: undefined,
  networks: undefined,
} as const

/** Every event that is kept, with its fields in the order in which they are written: one row for each new one (contract 25.8). */
export const auditEvents = {
  'account.created': ['accountId', 'planId'],
  'account.plan_changed': ['accountId', 'planId'],
  'account.suspended': ['accountId'],
  'account.resumed': ['accountId'],
  'account.deleted': ['accountId'],
  'key.created': ['accountId', 'keyId'],
  'key.rotated': ['accountId', 'keyId', 'nextKeyId', 'endsAtMs'],
  /** How many profiles it may use, how often a minute, and from how many networks; 0 where it has no such limit. */
  'key.limited': ['accountId', 'keyId', 'profiles', 'perMinute', 'networks'],
  'key.revoked': ['accountId', 'keyId', 'reason'],
  'email.added': ['accountId'],
  'email.removed': ['accountId'],
  'passkey.added': ['accountId'],
  'passkey.removed': ['accountId'],
  'upstream.added': ['accountId', 'upstreamId', 'provider'],
  'upstream.removed': ['accountId', 'upstreamId'],
  'upgrade.requested': ['accountId', 'planId', 'requestId'],
  'upgrade.withdrawn': ['accountId', 'planId', 'requestId'],
  /** The account is on the plan with it. */
  'upgrade.approved': ['accountId', 'planId', 'requestId'],
  'upgrade.rejected': ['accountId', 'planId', 'requestId'],
  'managed.switched_on': [],
  'managed.switched_off': [],
  'managed.resale_recorded': ['provider', 'noteId'],
  'managed.resale_revoked': ['provider'],
  'managed.requested': ['accountId', 'requestId'],
  'managed.withdrawn': ['accountId', 'requestId'],
  'managed.approved': ['accountId', 'requestId'],
  'managed.rejected': ['accountId', 'requestId'],
  /** The live checks opened or closed it, the switch being on. */
  'managed.opened': ['reason'],
  'managed.closed': ['reason'],
  'operator.created': ['operatorId', 'role'],
  'operator.role_changed': ['operatorId', 'role'],
  'operator.removed': ['operatorId'],
  'operator.signed_in': ['operatorId'],
  /** Proved again who they are, for what needs a fresh proof. */
  'operator.stepped_up': ['operatorId'],
  /** No new request goes to it: for a while, or because it is not trusted. */
  'backend.drained': ['backend', 'reason'],
  'backend.undrained': ['backend'],
  'backend.quarantined': ['backend', 'reason'],
  'backend.released': ['backend'],
  'incident.opened': ['incidentId'],
  'incident.updated': ['incidentId'],
  'incident.resolved': ['incidentId'],
  'ticket.closed': ['ticketId'],
  'ticket.reopened': ['ticketId'],
  /** Written in the proof that events can be kept, and taken back with it. */
  'audit.proved': [],
} as const satisfies Readonly<Record<string, readonly (keyof typeof fieldShapes)[]>>

type AuditEventType = keyof typeof auditEvents
interface FieldValues {
  readonly endsAtMs: number
  readonly profiles: number
  readonly perMinute: number
  readonly networks: number
  readonly reason: RevocationReason | GateReason | HoldReason
  readonly role: OperatorRole
}
type FieldName = keyof typeof fieldShapes
type FieldValue<Name extends FieldName> = Name extends keyof FieldValues ? FieldValues[Name] : string

/** One thing that happened, by the ids of what it happened to. */
export type AuditEvent = {
  [Type in AuditEventType]: { readonly type: Type } & {
    readonly [Name in (typeof auditEvents)[Type][number]]: FieldValue<Name>
  }
}[AuditEventType]

/** An event that is to be kept with the change that it tells of, in one transaction. */
export interface AuditRecord {
  readonly actor: Actor
  readonly atMs: number
  readonly event: AuditEvent
}

/** An event as it is kept: in its place in the one sequence of all. */
export interface AuditEntry extends AuditRecord {
  /** From 1, without gaps. */
  readonly sequence: number
}

/** The account that an event is about, if any. */
export function accountOf(event: AuditEvent): string | null {
  return 'accountId' in event ? event.accountId : null
}

/**
 * The one way of writing an entry, over which its hash is taken: JSON of fixed members in a fixed order.
 * @throws TypeError where a value is not what its field may hold; the value is not repeated
 */
export function writeEntry({ sequence, atMs, actor, event }: AuditEntry): string {
  return JSON.stringify({
    sequence: checkWhole(sequence, 'sequence'),
    atMs: checkWhole(Math.floor(atMs), 'atMs'),
    actor: plainActor(actor),
    event: plainEvent(event),
  })
}

function plainActor(actor: Actor): Record<string, string> {
  const { kind } = actor
  if (kind === 'operator') return { kind, operatorId: checkText(actor.operatorId, idShape, 'operatorId') }
  if (kind === 'session')
    return {
      kind,
      sessionId: checkText(actor.sessionId, idShape, 'sessionId'),
      accountId: checkText(actor.accountId, idShape, 'accountId'),
    }
  return { kind }
}

function plainEvent(event: AuditEvent): Record<string, string | number> {
  const given: Readonly<Record<string, unknown>> = event
  const plain: Record<string, string | number> = { type: event.type }
  for (const name of auditEvents[event.type]) {
    const shape = fieldShapes[name]
    plain[name] = shape === undefined ? checkWhole(given[name], name) : checkText(given[name], shape, name)
  }
  return plain
}

function checkText(value: unknown, shape: RegExp, name: string): string {
  if (typeof value === 'string' && shape.test(value) && !value.includes(keyPrefix)) return value
  throw new TypeError(`an audit event cannot hold this ${name}`)
}

function checkWhole(value: unknown, name: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw new TypeError(`an audit event cannot hold this ${name}`)
}
