import type { AlertDeliveryRow, BudgetAlertRow, WebhookRow } from './schema-alerts.ts'
import type { CacheSessionRow, GenerationChunkRow, GenerationRow } from './schema-generations.ts'
import type { IdentityTables } from './schema-identity.ts'
import type {
  BackendControlRow,
  DeclaredRow,
  IncidentRow,
  IncidentUpdateRow,
  SettingRow,
  TicketRow,
  UptimeRow,
} from './schema-service.ts'

/**
 * The tables as Kysely types, the same on both engines: only text and integers. Booleans are 0 and 1, times are epoch
 * milliseconds, lists are JSON text.
 */
export interface Tables extends IdentityTables {
  accounts: AccountRow
  keys: KeyRow
  upstreams: UpstreamRow
  requests: RequestRow
  usage: UsageRow
  budgets: BudgetRow
  budget_spending: BudgetSpendingRow
  budget_alerts: BudgetAlertRow
  alert_deliveries: AlertDeliveryRow
  webhooks: WebhookRow
  meters: MeterRow
  nodes: NodeRow
  revisions: RevisionRow
  ledger: LedgerRow
  stored_responses: StoredResponseRow
  stored_items: StoredItemRow
  stored_bytes: StoredBytesRow
  conversations: ConversationRow
  conversation_items: ConversationItemRow
  generations: GenerationRow
  generation_chunks: GenerationChunkRow
  cache_sessions: CacheSessionRow
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
  settings: SettingRow
  declared: DeclaredRow
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
  /** Its limits, each null if not set; lists as JSON. */
  profiles: string | null
  per_minute: number | null
  addresses: string | null
  /** Its digest under a newer pepper; unique. Null if it was not used since the pepper changed. */
  next_digest: string | null
  /** The newest pepper that one of its digests is known to be of, set while the pepper changes. */
  pepper_id: string | null
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
  /** JSON; null if there are none. */
  timeouts: string | null
  headers: string | null
}

interface ProviderErrorRow {
  id: string
  request_id: string
  backend: string
  /** Null for configured backends. */
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
   * Set only while it is undecided whether a charged answer was delivered: the number of the next delivery mark at the
   * time of the charge (on PostgreSQL, of the admission). Null once that is settled.
   */
  due_mark: number | null
  /** PostgreSQL only: its place among all admissions of the account, without gaps. */
  number: number | null
  /** PostgreSQL only: the node that runs it; null once it is settled. */
  node_id: string | null
  attempts: string | null
  /** Skipped backends and the reasons, as JSON. */
  passed_by: string | null
  input_tokens: number | null
  output_tokens: number | null
  cached_tokens: number | null
  reasoning_tokens: number | null
  usage_source: string | null
  cache_write_tokens: number | null
  /** The parts of its usage that have no column, as JSON. */
  usage_details: string | null
  /** What it cost, in picodollars; null if that is unknown. */
  cost: number | null
  cost_source: string | null
  /** What caching saved, in picodollars. */
  cache_saved: number | null
  price_version: string | null
  /** The session that it belongs to; null if it belongs to none, or an earlier version ended it. */
  session: string | null
  error_code: string | null
  first_content_ms: number | null
  total_ms: number | null
  /** The records of its fusions, as JSON. */
  fusions: string | null
  /** What it holds of budgets until it ends, as JSON (`BudgetHold`); null if nothing. */
  holds: string | null
  /** What its budgets lost, as JSON (`BucketSpending`); null if no budget counted it. */
  booked: string | null
}

/** A limit on what an account may spend. `period` is its window; `amount` is in nanodollars or tokens. */
export interface BudgetRow {
  id: string
  account_id: string
  scope: string
  subject: string
  /** Keys that its key has replaced, separated by commas. */
  former: string | null
  unit: string
  period: string
  rolling: number
  amount: number
  set_by: string
  created_at_ms: number
}

/** What was spent of a budget in one bucket of its window. `held`, by running requests, is PostgreSQL only. */
interface BudgetSpendingRow {
  budget_id: string
  bucket_ms: number
  account_id: string
  spent: number
  held: number
}

/** An account's units in one month. On Postgres they include running requests. */
interface UsageRow {
  account_id: string
  period_id: string
  used: number
}

/** How many requests of an account were ever admitted, and when the last one was. PostgreSQL only. */
interface MeterRow {
  account_id: string
  admitted: number
  last_at_ms: number
}

/** A process that serves requests on PostgreSQL; `seen_at_ms` by the database's clock. */
interface NodeRow {
  id: string
  started_at_ms: number
  seen_at_ms: number
  /** What the node reported with its last heartbeat, as JSON. */
  report: string | null
}

/**
 * A single row, incremented with every change of accounts, keys, or upstreams; also the lock that serializes those
 * changes.
 */
interface RevisionRow {
  id: number
  value: number
}

/** Values that a ledger stores about itself, by name. */
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

/** Size of the encrypted text an account has stored; only triggers write it. */
interface StoredBytesRow {
  account_id: string
  /** The total. */
  bytes: number
  /** The part that belongs to conversations. */
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

/** Maps an item id, of which only a digest is stored, to its answer. */
interface StoredItemRow {
  digest: string
  response_id: string
}

/** One entry of the audit log; triggers prevent changes and deletions. */
interface AuditRow {
  sequence: number
  /** Copied from the entry, for searching. */
  account_id: string | null
  /** As `writeEntry` writes it. */
  entry: string
  hash: string
}

/** A single row: the last entry, and the lock that serializes all appends. */
interface AuditHeadRow {
  id: number
  sequence: number
  hash: string
}

/** Triggers prevent changes and deletions here too. */
interface CheckpointRow {
  sequence: number
  hash: string
  at_ms: number
  key_id: string
  mac: string
}

/** A single row: the operator's switch. */
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

/** One row per account, hour, and error. */
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
  /** See `Migration.worksWith`. */
  works_with: string | null
}

export interface BillingRow {
  account_id: string
  customer_id: string | null
  /** The number of reads begun, and the last one applied. */
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
