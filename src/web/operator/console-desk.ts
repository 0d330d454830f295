import type { AuditDesk } from '../../accounts/audit-desk.ts'
import type { AccountSearchStore } from '../../accounts/operator-ports.ts'

/** What only the console works with; app.ts gives it. */
export interface ConsoleDesk {
  readonly accounts: AccountSearchStore
  readonly audit: AuditDesk
}
