import type { Account } from '../domain/accounts.ts'
import { idMinter } from '../domain/ids.ts'
import type { Plan } from '../domain/plans.ts'
import { recordOf, type ControlPlane } from './control-plane.ts'
import { AccountsError, checkName } from './refusals.ts'

/** Most accounts in one listing, and the most that a lookup by name searches. */
export const maxListedAccounts = 10_000

/**
 * Creates an account on a plan. @throws AccountsError `name_invalid`, `account_name_taken`, `plan_unknown`,
 * `account_limit`
 */
export async function createAccount(
  plane: ControlPlane,
  name: string,
  planId: string,
  plans: readonly Plan[],
): Promise<Account> {
  const checked = checkName(name)
  checkPlan(planId, plans)
  const known = await plane.store.listAccounts(maxListedAccounts)
  if (known.length >= maxListedAccounts) throw new AccountsError('account_limit')
  if (known.some((account) => account.name === checked)) throw new AccountsError('account_name_taken')
  const nowMs = (): number => plane.clock.nowMs()
  const account: Account = {
    id: idMinter('acc_', nowMs, plane.random)(),
    name: checked,
    planId,
    suspended: false,
    createdAtMs: Math.floor(nowMs()),
  }
  await plane.store.addAccount(account, recordOf(plane, { type: 'account.created', accountId: account.id, planId }))
  return account
}

/** Moves an account to another plan. @throws AccountsError `plan_unknown`, `account_unknown` */
export async function changePlan(
  plane: ControlPlane,
  accountId: string,
  planId: string,
  plans: readonly Plan[],
): Promise<void> {
  checkPlan(planId, plans)
  const record = recordOf(plane, { type: 'account.plan_changed', accountId, planId })
  if (!(await plane.store.setPlan(accountId, planId, record))) throw new AccountsError('account_unknown')
}

/**
 * Rejects every key of an account until it is resumed. @throws AccountsError `account_unknown`,
 * `account_suspended_before`
 */
export function suspendAccount(plane: ControlPlane, accountId: string): Promise<void> {
  return setSuspended(plane, accountId, true)
}

/** Lets the keys of a suspended account work again. @throws AccountsError `account_unknown`, `account_not_suspended` */
export function resumeAccount(plane: ControlPlane, accountId: string): Promise<void> {
  return setSuspended(plane, accountId, false)
}

async function setSuspended(plane: ControlPlane, accountId: string, suspended: boolean): Promise<void> {
  if ((await plane.store.findAccount(accountId)) === undefined) throw new AccountsError('account_unknown')
  const record = recordOf(plane, { type: suspended ? 'account.suspended' : 'account.resumed', accountId })
  if (!(await plane.store.setSuspended(accountId, suspended, record)))
    throw new AccountsError(suspended ? 'account_suspended_before' : 'account_not_suspended')
}

/** The account with this id or name. @throws AccountsError `account_unknown` */
export async function findAccount(plane: Pick<ControlPlane, 'store'>, idOrName: string): Promise<Account> {
  const byId = await plane.store.findAccount(idOrName)
  if (byId !== undefined) return byId
  const known = await plane.store.listAccounts(maxListedAccounts)
  const byName = known.find((account) => account.name === idOrName)
  if (byName === undefined) throw new AccountsError('account_unknown')
  return byName
}

function checkPlan(planId: string, plans: readonly Plan[]): void {
  if (!plans.some((plan) => plan.id === planId)) throw new AccountsError('plan_unknown')
}
