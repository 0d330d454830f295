import type { Kysely } from 'kysely'
import type { AdminTokenStore } from '../accounts/admin/admin-ports.ts'
import type { AlertQueries, WebhookQueries } from '../accounts/alerts/alert-ports.ts'
import type { BackendControlStore } from '../accounts/backends/backend-ports.ts'
import type { BillingStore } from '../accounts/billing/ports.ts'
import type { DeclaredQueries, DeclaredStore } from '../accounts/declared/declared-ports.ts'
import type { AccountSearchStore, OperatorStore } from '../accounts/operators/operator-ports.ts'
import type {
  AccountDataStore,
  AccountStore,
  ActivityStore,
  AuditStore,
  BudgetQueries,
  IdentityStore,
  ManagedAccessStore,
} from '../accounts/ports.ts'
import type { StatusStore } from '../accounts/status/status-ports.ts'
import type { SupportStore } from '../accounts/support/support-ports.ts'
import type { KeyStore } from '../gateway/ports.ts'
import { accountDataStore } from './account-data.ts'
import { accountSearchStore } from './account-search.ts'
import { accountStore } from './accounts.ts'
import { activityStore } from './activity.ts'
import { adminTokenStore } from './admin-tokens.ts'
import { alertStore } from './alerts.ts'
import { auditStore } from './audit.ts'
import { backendControlStore } from './backend-controls.ts'
import { billingStore } from './billing.ts'
import { budgetStore } from './budgets.ts'
import { type CacheSessionList, cacheSessionStore } from './cache-sessions.ts'
import { emailStore } from './emails.ts'
import { incidentStore } from './incidents.ts'
import { type KeyPepperStore, keyStore } from './keys.ts'
import { managedAccessStore } from './managed-access.ts'
import { type NodeStore, nodeStore } from './nodes.ts'
import { operatorSessionStore } from './operator-sessions.ts'
import { operatorStore } from './operators.ts'
import { passkeyStore } from './passkeys.ts'
import { proofStore } from './proofs.ts'
import { type ProviderErrorStore, providerErrorStore } from './provider-errors.ts'
import { type RefusedRequestStore, refusedRequestStore } from './refused-requests.ts'
import { type RequestStore, requestStore } from './requests.ts'
import { atRevision } from './revision.ts'
import type { Tables } from './schema/schema.ts'
import { type SealedStore, sealedStore } from './sealed-values.ts'
import { sessionStore } from './sessions.ts'
import { settingStore } from './settings.ts'
import { ticketStore } from './tickets.ts'
import { upgradeRequestStore } from './upgrade-requests.ts'
import { upstreamStore } from './upstreams.ts'
import { uptimeStore } from './uptime.ts'
import { webhookStore } from './webhooks.ts'

/** All storage, on either engine. `close` closes the underlying database. */
export interface Store
  extends
    AccountStore,
    KeyPepperStore,
    AccountSearchStore,
    ActivityStore,
    AdminTokenStore,
    AuditStore,
    BackendControlStore,
    CacheSessionList,
    AlertQueries,
    BudgetQueries,
    DeclaredQueries,
    AccountDataStore,
    IdentityStore,
    ManagedAccessStore,
    KeyStore,
    NodeStore,
    ProviderErrorStore,
    RefusedRequestStore,
    RequestStore,
    SealedStore,
    StatusStore,
    SupportStore,
    WebhookQueries {
  readonly billing: BillingStore
  readonly operators: OperatorStore
  /** Changes several things in one transaction. */
  readonly declared: DeclaredStore
  close(): Promise<void>
}

/** Implements the storage ports with the queries of one open database. */
export function createStore(db: Kysely<Tables>): Store {
  return {
    ...accountStore(db),
    ...accountSearchStore(db),
    ...accountDataStore(db),
    ...adminTokenStore(db),
    ...activityStore(db),
    ...alertStore(db),
    ...auditStore(db),
    ...backendControlStore(db),
    ...cacheSessionStore(db),
    ...budgetStore(db),
    ...emailStore(db),
    ...incidentStore(db),
    ...keyStore(db),
    ...managedAccessStore(db),
    ...nodeStore(db),
    ...passkeyStore(db),
    ...proofStore(db),
    ...providerErrorStore(db),
    ...refusedRequestStore(db),
    ...requestStore(db),
    ...sealedStore(db),
    ...sessionStore(db),
    ...settingStore(db),
    ...ticketStore(db),
    ...upstreamStore(db),
    ...uptimeStore(db),
    ...webhookStore(db),
    billing: { ...billingStore(db), ...upgradeRequestStore(db) },
    operators: { ...operatorStore(db), ...operatorSessionStore(db) },
    declared: {
      atRevision: (revision, work) => atRevision(db, revision, (transaction) => work(createStore(transaction))),
    },
    close: () => db.destroy(),
  }
}
