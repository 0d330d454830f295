import { AccountsError } from './accounts-error.ts'
import { auditRecord, type AccountsDeps } from './control-plane.ts'
import type { AccountDataStore } from './ports.ts'

/**
 * Deletes an account and all its data (contract 19.12). Its keys stop working within a second, and the deletion cannot
 * be undone; the audit log keeps only its id. Its subscriptions are marked for cancellation: `closeBilling` does that
 * immediately, the background checks soon after. @throws AccountsError `account_unknown`, `account_name_mismatch`
 */
export async function deleteAccount(
  deps: AccountsDeps<AccountDataStore>,
  accountId: string,
  typedName: string,
): Promise<void> {
  const account = await deps.store.findAccount(accountId)
  if (account === undefined) throw new AccountsError('account_unknown')
  if (typedName.trim() !== account.name) throw new AccountsError('account_name_mismatch')
  const record = auditRecord(deps, { type: 'account.deleted', accountId })
  if (!(await deps.store.deleteAccount(accountId, record.atMs, record))) throw new AccountsError('account_unknown')
}
