import { recordOf, type ControlPlane } from './control-plane.ts'
import type { HoldingsStore } from './ports.ts'
import { AccountsError } from './refusals.ts'

/**
 * Deletes an account and all its data. Its keys stop working within a second, and the deletion cannot be undone; the
 * audit log keeps only its id. Its subscriptions are marked for cancellation: `closeBilling` does that immediately, the
 * background checks soon after. @throws AccountsError `account_unknown`, `account_name_differs`
 */
export async function deleteAccount(
  plane: ControlPlane<HoldingsStore>,
  accountId: string,
  typedName: string,
): Promise<void> {
  const account = await plane.store.findAccount(accountId)
  if (account === undefined) throw new AccountsError('account_unknown')
  if (typedName.trim() !== account.name) throw new AccountsError('account_name_differs')
  const record = recordOf(plane, { type: 'account.deleted', accountId })
  if (!(await plane.store.deleteAccount(accountId, record.atMs, record))) throw new AccountsError('account_unknown')
}
