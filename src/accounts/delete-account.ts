import { recordOf, type ControlPlane } from './control-plane.ts'
import type { HoldingsStore } from './ports.ts'
import { AccountsError } from './refusals.ts'

/**
 * Deletes an account and everything about it. Its keys are refused within a second, and nothing brings it back; the
 * audit log keeps that it was there, by its id alone. What it subscribes is marked to be cancelled: `closeBilling`
 * does so at once, the checks soon. @throws AccountsError `account_unknown`, `account_name_differs`
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
