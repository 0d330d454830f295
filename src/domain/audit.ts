import type { AdminScope } from './admin-tokens.ts'
import type { HoldReason } from './backend-controls.ts'
import { isCount } from './json.ts'
import { keyPrefix } from './keys.ts'
import type { OperatorRole } from './operators.ts'

/**
 * Who made a change: an operator (`opr_…`), a signed-in session of an account (the id of its row, never its token), a
 * token of the admin API (`adt_…`), the command line of the machine, or the service itself (contract 33.9).
 */
export type Actor =
  | { readonly kind: 'operator'; readonly operatorId: string }
  | { readonly kind: 'session'; readonly sessionId: string; readonly accountId: string }
  | { readonly kind: 'token'; readonly tokenId: string }
  | { readonly kind: 'cli' }
  | { readonly kind: 'system' }

/** Why a key was revoked: its owner or an operator asked, or it was found in public. */
export type RevocationReason = 'asked' | 'leaked'
/** Why managed access turned on or off without an operator: the check that decided. */
export type GateReason =
  | 'switched_on'
  | 'switched_off'
  | 'resale_controls'
  | 'durable_quotas'
  | 'durable_audit'
  | 'store_silent'

/** The valid values of an event's fields. They exclude free text, secrets, and addresses (contract 25.2). */
const idShape = /^[a-z]{2,5}_[0-9A-Za-z]{1,40}$/
const nameShape = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const wordShape = /^[a-z][a-z_]{0,31}$/
/** A declared setting, such as `plans.pro`. */
const settingShape = /^(?:plans|backends|profiles)\.[A-Za-z0-9][A-Za-z0-9._/-]{0,130}$/
const fieldShape = /^[a-z][A-Za-z0-9_.-]{0,99}$/
/** A number, a name, or a list of names. Other values are recorded by their fingerprint. */
export const auditValueShape = /^[A-Za-z0-9-][A-Za-z0-9._,:/-]{0,199}$/
const digestShape = /^[0-9a-f]{16}$/

/** Every field of events, and how it is written. */
const fieldShapes = {
  accountId: idShape,
  keyId: idShape,
  nextKeyId: idShape,
  upstreamId: idShape,
  webhookId: idShape,
  requestId: idShape,
  operatorId: idShape,
  incidentId: idShape,
  ticketId: idShape,
  tokenId: idShape,
  setting: settingShape,
  field: fieldShape,
  before: auditValueShape,
  after: auditValueShape,
  /** The fingerprint of a list of changes. */
  plan: digestShape,
  budgetId: idShape,
  /** Who set a budget, and what it covers: see `budgetLabel`. */
  budget: auditValueShape,
  amount: undefined,
  scope: wordShape,
  /** The name in the configuration. */
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
  takenAtMs: undefined,
  reapplied: undefined,
  changes: undefined,
} as const

/** Every event, with its fields in the order in which they are written (contract 25.8). */
export const auditEvents = {
  'account.created': ['accountId', 'planId'],
  'account.plan_changed': ['accountId', 'planId'],
  'account.suspended': ['accountId'],
  'account.resumed': ['accountId'],
  'account.deleted': ['accountId'],
  'key.created': ['accountId', 'keyId'],
  'key.rotated': ['accountId', 'keyId', 'nextKeyId', 'endsAtMs'],
  /** How many profiles, requests per minute, and networks the key is limited to; 0 for no such limit. */
  'key.limited': ['accountId', 'keyId', 'profiles', 'perMinute', 'networks'],
  'key.revoked': ['accountId', 'keyId', 'reason'],
  /** A budget was set or removed: what it covers, and its limit in nanodollars or tokens. */
  'budget.set': ['accountId', 'budgetId', 'budget', 'amount'],
  'budget.removed': ['accountId', 'budgetId'],
  'email.added': ['accountId'],
  'email.removed': ['accountId'],
  'passkey.added': ['accountId'],
  'passkey.removed': ['accountId'],
  'upstream.added': ['accountId', 'upstreamId', 'provider'],
  'upstream.removed': ['accountId', 'upstreamId'],
  'webhook.added': ['accountId', 'webhookId'],
  /** Its former secret signs for one more day. */
  'webhook.secret_rotated': ['accountId', 'webhookId'],
  'webhook.removed': ['accountId', 'webhookId'],
  'upgrade.requested': ['accountId', 'planId', 'requestId'],
  'upgrade.withdrawn': ['accountId', 'planId', 'requestId'],
  /** Also changes the account's plan. */
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
  /** The checks turned managed access on or off while its switch was on. */
  'managed.opened': ['reason'],
  'managed.closed': ['reason'],
  'operator.created': ['operatorId', 'role'],
  'operator.role_changed': ['operatorId', 'role'],
  'operator.removed': ['operatorId'],
  'operator.signed_in': ['operatorId'],
  /** Confirmed their identity again, for an action that requires a fresh proof. */
  'operator.stepped_up': ['operatorId'],
  /** The backend receives no new requests, temporarily or because it is not trusted. */
  'backend.drained': ['backend', 'reason'],
  'backend.undrained': ['backend'],
  'backend.quarantined': ['backend', 'reason'],
  'backend.released': ['backend'],
  /** A field of a declared plan, backend, or profile; `none` if it was or is absent. */
  'setting.changed': ['setting', 'field', 'before', 'after'],
  /** A plan, backend, or profile was stored that the configuration had already. Its fields follow, with `none` before. */
  'setting.declared': ['setting'],
  /** Afterwards, the configuration file's applies, if it has one. */
  'setting.removed': ['setting'],
  /** A file was applied. The changes have their own events, just before this one. */
  'settings.applied': ['plan', 'changes'],
  'admin_token.created': ['tokenId', 'scope'],
  'admin_token.revoked': ['tokenId'],
  'incident.opened': ['incidentId'],
  'incident.updated': ['incidentId'],
  'incident.resolved': ['incidentId'],
  'ticket.closed': ['ticketId'],
  'ticket.reopened': ['ticketId'],
  /** A backup of `takenAtMs` replaced the data. Of the entries after its last one, as many as `reapplied` were kept. */
  'backup.restored': ['takenAtMs', 'reapplied'],
  /** Written by the proof that events are durable, and rolled back with it. */
  'audit.proved': [],
} as const satisfies Readonly<Record<string, readonly (keyof typeof fieldShapes)[]>>

type AuditEventType = keyof typeof auditEvents
interface FieldValues {
  readonly endsAtMs: number
  readonly profiles: number
  readonly perMinute: number
  readonly networks: number
  readonly takenAtMs: number
  readonly reapplied: number
  readonly changes: number
  readonly amount: number
  readonly scope: AdminScope
  readonly reason: RevocationReason | GateReason | HoldReason
  readonly role: OperatorRole
}
type FieldName = keyof typeof fieldShapes
type FieldValue<Name extends FieldName> = Name extends keyof FieldValues ? FieldValues[Name] : string

/** One change, with the ids of what it affected. */
export type AuditEvent = {
  [Type in AuditEventType]: { readonly type: Type } & {
    readonly [Name in (typeof auditEvents)[Type][number]]: FieldValue<Name>
  }
}[AuditEventType]

/** An event to store in the same transaction as the change that it describes. */
export interface AuditRecord {
  readonly actor: Actor
  readonly atMs: number
  readonly event: AuditEvent
}

/** An event as it is stored, with its position in the log. */
export interface AuditEntry extends AuditRecord {
  /** Counted from 1, without gaps. */
  readonly sequence: number
}

/** The account that an event concerns; null if there is none. */
export function accountOf(event: AuditEvent): string | null {
  return 'accountId' in event ? event.accountId : null
}

/**
 * Writes an entry in the canonical form that is hashed: JSON with fixed members in a fixed order. @throws TypeError if
 * a field has an invalid value, which the message does not repeat
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
  if (kind === 'token') return { kind, tokenId: checkText(actor.tokenId, idShape, 'tokenId') }
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
  if (isCount(value)) return value
  throw new TypeError(`an audit event cannot hold this ${name}`)
}
