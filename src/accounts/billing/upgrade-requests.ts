import type { AuditRecord } from '../../domain/audit.ts'
import type { UpgradeRequest, UpgradeState } from '../../domain/billing.ts'
import { idMinter } from '../../runtime/ids.ts'
import { AccountsError } from '../accounts-error.ts'
import type { UpgradesDeps } from './billing-deps.ts'

/** How many decided requests are stored per account. */
const maxStoredRequests = 20
/** Maximum number of requests in one listing. */
export const maxListedRequests = 1000

/**
 * Requests another plan where plans are not sold; an operator decides. @throws AccountsError `account_unknown`,
 * `plan_unknown`, `plan_same`, `upgrade_open`
 */
export async function requestUpgrade(deps: UpgradesDeps, accountId: string, planId: string): Promise<UpgradeRequest> {
  checkPlan(deps, planId)
  const account = await deps.accounts.findAccount(accountId)
  if (account === undefined) throw new AccountsError('account_unknown')
  if (account.planId === planId) throw new AccountsError('plan_same')
  const nowMs = (): number => deps.clock.nowMs()
  const request: UpgradeRequest = {
    id: idMinter('upg_', nowMs, deps.random)(),
    accountId,
    planId,
    state: 'requested',
    createdAtMs: Math.floor(nowMs()),
    decidedAtMs: null,
  }
  if (!(await deps.store.addUpgradeRequest(request, maxStoredRequests, upgradeRecord(deps, request, 'requested'))))
    throw new AccountsError('upgrade_open')
  return request
}

/** Withdraws an account's own open request. @throws AccountsError `upgrade_unknown`, `upgrade_decided` */
export async function withdrawUpgrade(deps: UpgradesDeps, accountId: string, requestId: string): Promise<void> {
  const request = await deps.store.findUpgradeRequest(requestId)
  // Treat another account's request as unknown.
  if (request?.accountId !== accountId) throw new AccountsError('upgrade_unknown')
  await decide(deps, request, 'withdrawn')
}

/**
 * Approves an open request; the account is on the new plan immediately. Returns the request as it was filed. @throws
 * AccountsError `upgrade_unknown`, `upgrade_decided`, `plan_unknown`, `account_unknown`
 */
export async function approveUpgrade(deps: UpgradesDeps, requestId: string): Promise<UpgradeRequest> {
  const request = await requestOf(deps, requestId)
  checkPlan(deps, request.planId)
  if ((await deps.accounts.findAccount(request.accountId)) === undefined) throw new AccountsError('account_unknown')
  await decide(deps, request, 'approved')
  return request
}

/** Rejects an open request; nothing else changes. @throws AccountsError `upgrade_unknown`, `upgrade_decided` */
export async function rejectUpgrade(deps: UpgradesDeps, requestId: string): Promise<UpgradeRequest> {
  const request = await requestOf(deps, requestId)
  await decide(deps, request, 'rejected')
  return request
}

async function requestOf(deps: UpgradesDeps, requestId: string): Promise<UpgradeRequest> {
  const request = await deps.store.findUpgradeRequest(requestId)
  if (request === undefined) throw new AccountsError('upgrade_unknown')
  return request
}

async function decide(
  deps: UpgradesDeps,
  request: UpgradeRequest,
  state: 'approved' | 'rejected' | 'withdrawn',
): Promise<void> {
  const decided = await deps.store.decideUpgradeRequest(request.id, state, upgradeRecord(deps, request, state))
  if (!decided) throw new AccountsError('upgrade_decided')
}

function upgradeRecord(
  { actor, clock }: UpgradesDeps,
  { id: requestId, accountId, planId }: UpgradeRequest,
  state: UpgradeState,
): AuditRecord {
  const event = { type: `upgrade.${state}`, accountId, planId, requestId } as const
  return { actor, atMs: Math.floor(clock.nowMs()), event }
}

function checkPlan(deps: UpgradesDeps, planId: string): void {
  if (!deps.plans.some((plan) => plan.id === planId)) throw new AccountsError('plan_unknown')
}
