import type { Account } from '../domain/accounts.ts'
import type { Plan } from '../domain/plans.ts'
import { idMinter } from '../runtime/ids.ts'
import { AccountsError, checkName } from './accounts-error.ts'
import { auditRecord, type AccountsDeps } from './control-plane.ts'

/** Maximum number of accounts in one listing, and in a lookup by name. */
export const maxListedAccounts = 10_000

/**
 * Creates an account on a plan. @throws AccountsError `name_invalid`, `account_name_taken`, `plan_unknown`,
 * `account_limit`
 */
export async function createAccount(
  deps: AccountsDeps,
  name: string,
  planId: string,
  plans: readonly Plan[],
): Promise<Account> {
  const checked = checkName(name)
  checkPlan(planId, plans)
  if ((await deps.store.countAccounts()) >= maxListedAccounts) throw new AccountsError('account_limit')
  const nowMs = (): number => deps.clock.nowMs()
  const account: Account = {
    id: idMinter('acc_', nowMs, deps.random)(),
    name: checked,
    planId,
    suspended: false,
    createdAtMs: Math.floor(nowMs()),
  }
  const record = auditRecord(deps, { type: 'account.created', accountId: account.id, planId })
  if (!(await deps.store.addAccount(account, record))) throw new AccountsError('account_name_taken')
  return account
}

/** Moves an account to another plan. @throws AccountsError `plan_unknown`, `account_unknown` */
export async function changePlan(
  deps: AccountsDeps,
  accountId: string,
  planId: string,
  plans: readonly Plan[],
): Promise<void> {
  checkPlan(planId, plans)
  const record = auditRecord(deps, { type: 'account.plan_changed', accountId, planId })
  if (!(await deps.store.setPlan(accountId, planId, record))) throw new AccountsError('account_unknown')
}

/**
 * Rejects every key of an account until it is resumed (contract 19.13). @throws AccountsError `account_unknown`,
 * `account_already_suspended`
 */
export function suspendAccount(deps: AccountsDeps, accountId: string): Promise<void> {
  return setSuspended(deps, accountId, true)
}

/** Lets the keys of a suspended account work again. @throws AccountsError `account_unknown`, `account_not_suspended` */
export function resumeAccount(deps: AccountsDeps, accountId: string): Promise<void> {
  return setSuspended(deps, accountId, false)
}

async function setSuspended(deps: AccountsDeps, accountId: string, suspended: boolean): Promise<void> {
  if ((await deps.store.findAccount(accountId)) === undefined) throw new AccountsError('account_unknown')
  const record = auditRecord(deps, { type: suspended ? 'account.suspended' : 'account.resumed', accountId })
  if (!(await deps.store.setSuspended(accountId, suspended, record)))
    throw new AccountsError(suspended ? 'account_already_suspended' : 'account_not_suspended')
}

/** The account with this id or name. @throws AccountsError `account_unknown` */
export async function findAccount(deps: Pick<AccountsDeps, 'store'>, idOrName: string): Promise<Account> {
  const byId = await deps.store.findAccount(idOrName)
  if (byId !== undefined) return byId
  const known = await deps.store.listAccounts(maxListedAccounts)
  const byName = known.find((account) => account.name === idOrName)
  if (byName === undefined) throw new AccountsError('account_unknown')
  return byName
}

function checkPlan(planId: string, plans: readonly Plan[]): void {
  if (!plans.some((plan) => plan.id === planId)) throw new AccountsError('plan_unknown')
}
