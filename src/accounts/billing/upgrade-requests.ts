import type { AuditRecord } from '../../domain/audit.ts'
import type { UpgradeRequest, UpgradeState } from '../../domain/billing.ts'
import { idMinter } from '../../domain/ids.ts'
import { AccountsError } from '../refusals.ts'
import type { UpgradesPlane } from './billing-plane.ts'

/** How many decided requests are stored per account. */
const maxStoredRequests = 20
/** Most requests in one listing. */
export const maxListedRequests = 1000

/**
 * Requests another plan where plans are not sold; an operator decides. @throws AccountsError `account_unknown`,
 * `plan_unknown`, `plan_same`, `upgrade_open`
 */
export async function requestUpgrade(plane: UpgradesPlane, accountId: string, planId: string): Promise<UpgradeRequest> {
  checkPlan(plane, planId)
  const account = await plane.accounts.findAccount(accountId)
  if (account === undefined) throw new AccountsError('account_unknown')
  if (account.planId === planId) throw new AccountsError('plan_same')
  const nowMs = (): number => plane.clock.nowMs()
  const request: UpgradeRequest = {
    id: idMinter('upg_', nowMs, plane.random)(),
    accountId,
    planId,
    state: 'requested',
    createdAtMs: Math.floor(nowMs()),
    decidedAtMs: null,
  }
  if (!(await plane.store.addUpgradeRequest(request, maxStoredRequests, recordOf(plane, request, 'requested'))))
    throw new AccountsError('upgrade_open')
  return request
}

/** Withdraws an account's own open request. @throws AccountsError `upgrade_unknown`, `upgrade_decided` */
export async function withdrawUpgrade(plane: UpgradesPlane, accountId: string, requestId: string): Promise<void> {
  const request = await plane.store.findUpgradeRequest(requestId)
  // Treat another account's request as unknown.
  if (request?.accountId !== accountId) throw new AccountsError('upgrade_unknown')
  await decide(plane, request, 'withdrawn')
}

/**
 * Approves an open request; the account is on the new plan immediately. Returns the request as it was filed. @throws
 * AccountsError `upgrade_unknown`, `upgrade_decided`, `plan_unknown`, `account_unknown`
 */
export async function approveUpgrade(plane: UpgradesPlane, requestId: string): Promise<UpgradeRequest> {
  const request = await requestOf(plane, requestId)
  checkPlan(plane, request.planId)
  if ((await plane.accounts.findAccount(request.accountId)) === undefined) throw new AccountsError('account_unknown')
  await decide(plane, request, 'approved')
  return request
}

/** Rejects an open request; nothing else changes. @throws AccountsError `upgrade_unknown`, `upgrade_decided` */
export async function rejectUpgrade(plane: UpgradesPlane, requestId: string): Promise<UpgradeRequest> {
  const request = await requestOf(plane, requestId)
  await decide(plane, request, 'rejected')
  return request
}

async function requestOf(plane: UpgradesPlane, requestId: string): Promise<UpgradeRequest> {
  const request = await plane.store.findUpgradeRequest(requestId)
  if (request === undefined) throw new AccountsError('upgrade_unknown')
  return request
}

async function decide(
  plane: UpgradesPlane,
  request: UpgradeRequest,
  state: 'approved' | 'rejected' | 'withdrawn',
): Promise<void> {
  const decided = await plane.store.decideUpgradeRequest(request.id, state, recordOf(plane, request, state))
  if (!decided) throw new AccountsError('upgrade_decided')
}

function recordOf(
  { actor, clock }: UpgradesPlane,
  { id: requestId, accountId, planId }: UpgradeRequest,
  state: UpgradeState,
): AuditRecord {
  const event = { type: `upgrade.${state}`, accountId, planId, requestId } as const
  return { actor, atMs: Math.floor(clock.nowMs()), event }
}

function checkPlan(plane: UpgradesPlane, planId: string): void {
  if (!plane.plans.some((plan) => plan.id === planId)) throw new AccountsError('plan_unknown')
}
