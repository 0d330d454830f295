import type { IdentityTables } from './schema-identity.ts'
import type { BackendControlRow, IncidentRow, IncidentUpdateRow, TicketRow, UptimeRow } from './schema-service.ts'

/**
 * The tables as Kysely sees them, the same on both engines: text and whole numbers only. Booleans are 0 and 1, times
 * are epoch milliseconds, lists are JSON text.
 */
export interface Tables extends IdentityTables {
  accounts: AccountRow
  keys: KeyRow
  upstreams: UpstreamRow
  requests: RequestRow
  usage: UsageRow
  revisions: RevisionRow
  ledger: LedgerRow
  stored_responses: StoredResponseRow
  stored_items: StoredItemRow
  stored_bytes: StoredBytesRow
  conversations: ConversationRow
  conversation_items: ConversationItemRow
  audit_log: AuditRow
  audit_head: AuditHeadRow
  audit_checkpoints: CheckpointRow
  managed_access: ManagedAccessRow
  resale_controls: ResaleControlRow
  managed_requests: ManagedRequestRow
  billing: BillingRow
  billing_events: BillingEventRow
  upgrade_requests: UpgradeRequestRow
  uptime: UptimeRow
  incidents: IncidentRow
  incident_updates: IncidentUpdateRow
  tickets: TicketRow
  backend_controls: BackendControlRow
  provider_errors: ProviderErrorRow
  refused_requests: RefusedRequestsRow
  migrations: MigrationRow
}

export interface AccountRow {
  id: string
  name: string
  plan_id: string
  suspended: number
  created_at_ms: number
}

export interface KeyRow {
  id: string
  account_id: string
  name: string
  hint: string
  /** HMAC of the key in base64url (contract 3.4); unique. */
  digest: string
  state: string
  ends_at_ms: number | null
  created_at_ms: number
  revoked_at_ms: number | null
  /** Its limits, null where it has none of a kind; lists as JSON. */
  profiles: string | null
  per_minute: number | null
  addresses: string | null
}

export interface UpstreamRow {
  id: string
  account_id: string
  provider: string
  model: string
  base_url: string | null
  format: string | null
  auth_header: string | null
  sealed_credential: string | null
  credential_hint: string | null
  position: number
  created_at_ms: number
  /** JSON, null where there are none. */
  timeouts: string | null
  headers: string | null
}

interface ProviderErrorRow {
  id: string
  request_id: string
  backend: string
  /** Null for backends of the configuration. */
  account_id: string | null
  at_ms: number
  sealed: string
}

export interface RequestRow {
  id: string
  account_id: string
  key_id: string
  profile: string
  format: string
  stream: number
  units: number
  period_id: string
  admitted_at_ms: number
  state: string
  charged: number
  /**
   * Only while it is open whether a charged answer left: the number that the next delivery mark had when the charge
   * was decided. Null once nothing is open.
   */
  due_mark: number | null
  attempts: string | null
  /** Backends that were kept out, and why, JSON. */
  passed_by: string | null
  input_tokens: number | null
  output_tokens: number | null
  cached_tokens: number | null
  reasoning_tokens: number | null
  usage_source: string | null
  error_code: string | null
  first_content_ms: number | null
  total_ms: number | null
  /** The trails of its deliberations, JSON. */
  fusions: string | null
}

/** Units of the month of one account. On Postgres they include those of requests that still run. */
interface UsageRow {
  account_id: string
  period_id: string
  used: number
}

/** One row: it moves with every change of accounts, keys or upstreams, and is the lock that puts those in a row. */
interface RevisionRow {
  id: number
  value: number
}

/** What a ledger remembers about itself, by name. */
interface LedgerRow {
  name: string
  value: string
}

export interface StoredResponseRow {
  id: string
  account_id: string
  previous_id: string | null
  created_at_ms: number
  links: number
  chain_bytes: number
  sealed_response: string
  sealed_input: string
  sealed_output: string
}

/** Sealed text that an account has stored; written by triggers alone. */
interface StoredBytesRow {
  account_id: string
  /** All of it. */
  bytes: number
  /** The part that conversations have. */
  conversation_bytes: number
}

export interface ConversationRow {
  id: string
  account_id: string
  created_at_ms: number
  last_used_at_ms: number
  items: number
  bytes: number
  next_position: number
  sealed_metadata: string
}

interface ConversationItemRow {
  conversation_id: string
  position: number
  account_id: string
  digest: string
  bytes: number
  sealed: string
}

/** Finds the answer of an item by its id, of which only a digest is kept. */
interface StoredItemRow {
  digest: string
  response_id: string
}

/** One entry of the audit log; triggers let nobody change or delete it. */
interface AuditRow {
  sequence: number
  /** Beside the entry, to be searched by. */
  account_id: string | null
  /** As `writeEntry` writes it. */
  entry: string
  hash: string
}

/** One row: the last entry. It is the lock that puts all appends in a row. */
interface AuditHeadRow {
  id: number
  sequence: number
  hash: string
}

/** Triggers let nobody change or delete it either. */
interface CheckpointRow {
  sequence: number
  hash: string
  at_ms: number
  key_id: string
  mac: string
}

/** One row: the operator's switch. */
interface ManagedAccessRow {
  id: number
  switched_on: number
}

export interface ResaleControlRow {
  provider: string
  note_id: string
  recorded_at_ms: number
  recorded_by: string
  revoked_at_ms: number | null
}

export interface ManagedRequestRow {
  id: string
  account_id: string
  state: string
  created_at_ms: number
  decided_at_ms: number | null
}

/** One for each account, hour, and error. */
export interface RefusedRequestsRow {
  account_id: string
  hour_ms: number
  code: string
  requests: number
  last_request_id: string
  last_key_id: string
  last_at_ms: number
}

interface MigrationRow {
  name: string
  checksum: string
  applied_at_ms: number
}

export interface BillingRow {
  account_id: string
  customer_id: string | null
  /** How many reads have begun, and which of them was applied last. */
  reads: number
  applied_read: number
  granted_plan_id: string | null
  subscription: string | null
  read_at_ms: number | null
  check_at_ms: number
  closing_since_ms: number | null
}

interface BillingEventRow {
  id: string
  handled_at_ms: number
}

export interface UpgradeRequestRow {
  id: string
  account_id: string
  plan_id: string
  state: string
  created_at_ms: number
  decided_at_ms: number | null
}
