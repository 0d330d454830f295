import type { AccountStore, ManagedAccessStore } from '../accounts/ports.ts'
import type { ManagedReadiness } from '../domain/managed-access.ts'

/** What the page of managed access works with; app.ts gives it. */
export interface ManagedDesk {
  readonly store: ManagedAccessStore & Pick<AccountStore, 'findAccount'>
  /** The switch and the three checks, made at most a few seconds ago. Rejects where the store does not answer. */
  readiness(): Promise<ManagedReadiness>
}
