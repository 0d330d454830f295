import type { AccountStore, ManagedAccessStore } from '../../accounts/ports.ts'
import type { ManagedReadiness } from '../../domain/managed-access.ts'

/** Dependencies of the managed access page, composed in app.ts. */
export interface ManagedAccessView {
  readonly store: ManagedAccessStore & Pick<AccountStore, 'findAccount'>
  /** The switch and the three checks, at most a few seconds old. Rejects if the store does not respond. */
  readiness(): Promise<ManagedReadiness>
}
