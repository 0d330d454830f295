import { alertDeliveriesMigration } from './alert-deliveries.ts'
import { appendOnly } from './append-only.ts'
import { backendControlsMigration } from './backend-controls.ts'
import { budgetAlertsMigration } from './budget-alerts.ts'
import { budgetsMigration } from './budgets.ts'
import { cacheSessionsMigration } from './cache-sessions.ts'
import { conversationsMigration } from './conversations.ts'
import { costsMigration } from './costs.ts'
import { declaredMigration } from './declared.ts'
import { expiringBatchesMigration } from './expiring-batches.ts'
import { generationsMigration } from './generations.ts'
import { incidentsMigration } from './incidents.ts'
import { keyPeppersMigration } from './key-peppers.ts'
import type { Migration } from './migration.ts'
import { nodeReportsMigration } from './node-reports.ts'
import { nodesMigration } from './nodes.ts'
import { operatorsMigration } from './operators.ts'
import { orderedAdmissionsMigration } from './ordered-admissions.ts'
import { providerErrorsMigration } from './provider-errors.ts'
import { refusedRequestsMigration } from './refused-requests.ts'
import { requestSessionsMigration } from './request-sessions.ts'
import { storedBytesMigration } from './stored-bytes.ts'
import { webhooksMigration } from './webhooks.ts'
import { withoutJitMigration } from './without-jit.ts'

/** Every migration, in order. Forward only; the same statements on both engines, so only `text` and `bigint`. */
export const migrations: readonly Migration[] = [
  {
    name: '001-foundation',
    statements: [
      `create table accounts (
        id text primary key,
        name text not null,
        plan_id text not null,
        suspended bigint not null,
        created_at_ms bigint not null
      )`,
      `create table keys (
        id text primary key,
        account_id text not null references accounts (id),
        name text not null,
        hint text not null,
        digest text not null unique,
        state text not null,
        ends_at_ms bigint,
        created_at_ms bigint not null,
        revoked_at_ms bigint
      )`,
      `create index keys_by_account on keys (account_id, id)`,
      `create table upstreams (
        id text primary key,
        account_id text not null references accounts (id),
        provider text not null,
        model text not null,
        base_url text,
        format text,
        auth_header text,
        sealed_credential text,
        credential_hint text,
        position bigint not null,
        created_at_ms bigint not null
      )`,
      `create unique index upstreams_by_position on upstreams (account_id, position)`,
      // No foreign key to accounts from here on: the check would cost every request, and a record outlives its account.
      `create table requests (
        id text primary key,
        account_id text not null,
        key_id text not null,
        profile text not null,
        format text not null,
        stream bigint not null,
        units bigint not null,
        period_id text not null,
        admitted_at_ms bigint not null,
        state text not null,
        charged bigint not null,
        due_mark bigint,
        attempts text,
        input_tokens bigint,
        output_tokens bigint,
        cached_tokens bigint,
        reasoning_tokens bigint,
        usage_source text,
        error_code text,
        first_content_ms bigint,
        total_ms bigint
      )`,
      // By admission time, because the sliding minute counts it; an id is minted earlier.
      `create index requests_by_account on requests (account_id, admitted_at_ms)`,
      `create table usage (
        account_id text not null,
        period_id text not null,
        used bigint not null,
        primary key (account_id, period_id)
      )`,
      `create table revisions (id bigint primary key, value bigint not null)`,
      `insert into revisions (id, value) values (1, 0)`,
      `create table ledger (name text primary key, value text not null)`,
    ],
  },
  {
    name: '002-stored-responses',
    statements: [
      `create table stored_responses (
        id text primary key,
        account_id text not null,
        previous_id text,
        created_at_ms bigint not null,
        links bigint not null,
        chain_bytes bigint not null,
        sealed_response text not null,
        sealed_input text not null,
        sealed_output text not null
      )`,
      // For deleting expired rows.
      `create index stored_responses_by_time on stored_responses (created_at_ms)`,
      `create table stored_items (
        digest text not null,
        response_id text not null,
        primary key (digest, response_id)
      )`,
      `create index stored_items_by_response on stored_items (response_id)`,
    ],
  },
  {
    name: '003-fusion-records',
    // In the request's row: written and deleted with it, and no join for the many requests without fusions.
    statements: [`alter table requests add column fusions text`],
  },
  {
    name: '004-audit',
    statements: [
      `create table audit_log (
        sequence bigint primary key,
        account_id text,
        entry text not null,
        hash text not null
      )`,
      `create index audit_log_by_account on audit_log (account_id, sequence)`,
      `create table audit_head (id bigint primary key, sequence bigint not null, hash text not null)`,
      `insert into audit_head (id, sequence, hash) values (1, 0, '')`,
      `create table audit_checkpoints (
        sequence bigint not null,
        hash text not null,
        at_ms bigint not null,
        key_id text not null,
        mac text not null,
        primary key (sequence, key_id)
      )`,
      `create table managed_access (id bigint primary key, switched_on bigint not null)`,
      `insert into managed_access (id, switched_on) values (1, 0)`,
      `create table resale_controls (
        provider text primary key,
        note_id text not null,
        recorded_at_ms bigint not null,
        recorded_by text not null,
        revoked_at_ms bigint
      )`,
      `create table managed_requests (
        id text primary key,
        account_id text not null references accounts (id),
        state text not null,
        created_at_ms bigint not null,
        decided_at_ms bigint
      )`,
      // One open request per account, even under concurrency.
      `create unique index managed_requests_open on managed_requests (account_id) where state in ('requested', 'approved')`,
      `create index managed_requests_by_time on managed_requests (created_at_ms)`,
    ],
    own: appendOnly([
      { table: 'audit_log', key: ['sequence'] },
      { table: 'audit_checkpoints', key: ['sequence', 'key_id'] },
    ]),
  },
  {
    name: '005-billing',
    statements: [
      // No foreign key to accounts: subscriptions are canceled after the account is deleted.
      `create table billing (
        account_id text primary key,
        customer_id text unique,
        reads bigint not null,
        applied_read bigint not null,
        granted_plan_id text,
        subscription text,
        read_at_ms bigint,
        check_at_ms bigint not null,
        closing_since_ms bigint
      )`,
      `create index billing_by_check on billing (check_at_ms)`,
      `create table billing_events (id text primary key, handled_at_ms bigint not null)`,
      `create index billing_events_by_time on billing_events (handled_at_ms)`,
      `create table upgrade_requests (
        id text primary key,
        account_id text not null,
        plan_id text not null,
        state text not null,
        created_at_ms bigint not null,
        decided_at_ms bigint
      )`,
      // At most one open request per account.
      `create unique index upgrade_requests_open on upgrade_requests (account_id) where state = 'requested'`,
      `create index upgrade_requests_by_account on upgrade_requests (account_id, created_at_ms)`,
    ],
  },
  {
    name: '006-sessions',
    statements: [
      `create table emails (
        address text primary key,
        account_id text not null references accounts (id),
        created_at_ms bigint not null
      )`,
      `create index emails_by_account on emails (account_id, created_at_ms)`,
      `create table sign_in_proofs (
        id text primary key,
        purpose text not null,
        address text,
        account_id text,
        code_digest text,
        link_digest text not null unique,
        tries bigint not null,
        created_at_ms bigint not null,
        expires_at_ms bigint not null,
        used_at_ms bigint
      )`,
      `create index sign_in_proofs_by_address on sign_in_proofs (address, created_at_ms)`,
      `create index sign_in_proofs_by_end on sign_in_proofs (expires_at_ms)`,
      `create table sessions (
        digest text primary key,
        id text not null unique,
        account_id text not null references accounts (id),
        method text not null,
        agent text not null,
        created_at_ms bigint not null,
        last_seen_at_ms bigint not null,
        expires_at_ms bigint not null
      )`,
      `create index sessions_by_account on sessions (account_id, last_seen_at_ms)`,
      `create table passkeys (
        id text primary key,
        account_id text not null references accounts (id),
        name text not null,
        public_key text not null,
        counter bigint not null,
        transports text not null,
        created_at_ms bigint not null,
        last_used_at_ms bigint
      )`,
      `create index passkeys_by_account on passkeys (account_id, created_at_ms)`,
      `create table used_challenges (digest text primary key, expires_at_ms bigint not null)`,
    ],
  },
  incidentsMigration,
  {
    name: '008-responses-by-account',
    // Without this index, an account that reads or deletes its stored answers would scan everybody's.
    statements: [`create index stored_responses_by_account on stored_responses (account_id, created_at_ms)`],
  },
  operatorsMigration,
  {
    name: '010-proofs-by-network',
    statements: [
      `alter table sign_in_proofs add column network text`,
      `create index sign_in_proofs_by_network on sign_in_proofs (network, created_at_ms)`,
    ],
  },
  {
    name: '011-key-limits',
    statements: [
      `alter table keys add column profiles text`,
      `alter table keys add column per_minute bigint`,
      `alter table keys add column addresses text`,
    ],
  },
  backendControlsMigration,
  {
    name: '013-tickets-by-state',
    // Without this index, counting open tickets would read every text.
    statements: [`create index tickets_by_state on tickets (closed_at_ms, id)`],
  },
  providerErrorsMigration,
  {
    name: '015-token-counts',
    // Providers' counts used to be stored unchecked. One beyond what a double represents exactly made every page that
    // read it fail.
    statements: [
      `update requests set
        input_tokens = case when input_tokens > 100000000 then 100000000 else input_tokens end,
        output_tokens = case when output_tokens > 100000000 then 100000000 else output_tokens end,
        cached_tokens = case when cached_tokens > 100000000 then 100000000 else cached_tokens end,
        reasoning_tokens = case when reasoning_tokens > 100000000 then 100000000 else reasoning_tokens end
      where input_tokens > 100000000 or output_tokens > 100000000
        or cached_tokens > 100000000 or reasoning_tokens > 100000000`,
    ],
  },
  storedBytesMigration,
  { name: '017-passed-by', statements: [`alter table requests add column passed_by text`] },
  conversationsMigration,
  refusedRequestsMigration,
  nodesMigration,
  {
    name: '021-earlier-versions',
    statements: [`alter table migrations add column works_with text`],
  },
  keyPeppersMigration,
  nodeReportsMigration,
  declaredMigration,
  expiringBatchesMigration,
  generationsMigration,
  cacheSessionsMigration,
  budgetsMigration,
  budgetAlertsMigration,
  costsMigration,
  requestSessionsMigration,
  alertDeliveriesMigration,
  webhooksMigration,
  orderedAdmissionsMigration,
  withoutJitMigration,
]
