import type { ManagedRequest, ManagedAction } from '../../domain/managed-access.ts'
import { idMinter } from '../../runtime/ids.ts'
import { AccountsError } from '../accounts-error.ts'
import { type AccountsDeps, operatorOf, auditRecord } from '../control-plane.ts'
import type { AccountStore, ManagedAccessStore } from '../ports.ts'

/** Maximum number of requests an account may ever file, so that it cannot flood the review queue (contract 23.5). */
export const maxRequestsPerAccount = 20
/** Maximum number of requests in one listing. */
export const maxListedRequests = 1000

const noteShape = /^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$/
const providerShape = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
/** Prefixes of many vendors' credentials: a note id that starts with one is probably a credential. */
const credentialStart = /^(sk|pk|rk|ghp|gho|xox[a-z]|eyJ|AIza|AKIA)/

/** What decisions about managed access need. */
export type ManagedAccessDeps = AccountsDeps<ManagedAccessStore>

/**
 * Turns the operator's switch on or off. The switch alone does not open the gate: the three checks must pass too
 * (contract 23.3). @throws AccountsError `operator_only`, `managed_unchanged`
 */
export async function switchManagedAccess(deps: ManagedAccessDeps, on: boolean): Promise<void> {
  operatorOf(deps.actor)
  const record = auditRecord(deps, { type: on ? 'managed.switched_on' : 'managed.switched_off' })
  if (!(await deps.store.switchManagedAccess(on, record))) throw new AccountsError('managed_unchanged')
}

/**
 * Records that a provider allows reselling its service; `noteId` identifies the operator's copy of the agreement.
 * @throws AccountsError `operator_only`, `note_invalid`, `provider_invalid`, `resale_already_recorded`
 */
export async function recordResale(deps: ManagedAccessDeps, provider: string, noteId: string): Promise<void> {
  const recordedBy = operatorOf(deps.actor)
  if (!providerShape.test(provider)) throw new AccountsError('provider_invalid')
  if (!noteShape.test(noteId) || credentialStart.test(noteId)) throw new AccountsError('note_invalid')
  const record = auditRecord(deps, { type: 'managed.resale_recorded', provider, noteId })
  const control = { provider, noteId, recordedAtMs: record.atMs, recordedBy }
  if (!(await deps.store.recordResale(control, record))) throw new AccountsError('resale_already_recorded')
}

/**
 * Revokes a provider's resale controls: its managed backends stop serving within a second. @throws AccountsError
 * `operator_only`, `provider_invalid`, `resale_unknown`
 */
export async function revokeResale(deps: ManagedAccessDeps, provider: string): Promise<void> {
  operatorOf(deps.actor)
  if (!providerShape.test(provider)) throw new AccountsError('provider_invalid')
  const record = auditRecord(deps, { type: 'managed.resale_revoked', provider })
  if (!(await deps.store.revokeResale(provider, record.atMs, record))) throw new AccountsError('resale_unknown')
}

/**
 * Files an account's request; only a person reviews it (contract 23.5). @throws AccountsError `account_unknown`,
 * `managed_request_open`
 */
export async function requestManagedAccess(
  deps: AccountsDeps<ManagedAccessStore & Pick<AccountStore, 'findAccount'>>,
  accountId: string,
): Promise<ManagedRequest> {
  if ((await deps.store.findAccount(accountId)) === undefined) throw new AccountsError('account_unknown')
  const id = idMinter('mar_', () => deps.clock.nowMs(), deps.random)()
  const record = auditRecord(deps, { type: 'managed.requested', accountId, requestId: id })
  const request = { id, accountId, createdAtMs: record.atMs }
  if (!(await deps.store.addManagedRequest(request, maxRequestsPerAccount, record)))
    throw new AccountsError('managed_request_open')
  return { ...request, state: 'requested', decidedAtMs: null }
}

/**
 * Withdraws an account's own request, approved or not. @throws AccountsError `managed_request_unknown` (also for
 * another account's), `managed_request_decided`
 */
export async function withdrawManagedRequest(
  deps: ManagedAccessDeps,
  accountId: string,
  requestId: string,
): Promise<ManagedRequest> {
  const request = await deps.store.findManagedRequest(requestId)
  if (request?.accountId !== accountId) throw new AccountsError('managed_request_unknown')
  return step(deps, request, 'withdrawn')
}

/**
 * An operator's decision about a request; an approved one can be rejected later. @throws AccountsError `operator_only`,
 * `managed_request_unknown`, `managed_request_decided`
 */
export async function reviewManagedRequest(
  deps: ManagedAccessDeps,
  requestId: string,
  decision: 'approved' | 'rejected',
): Promise<ManagedRequest> {
  operatorOf(deps.actor)
  const request = await deps.store.findManagedRequest(requestId)
  if (request === undefined) throw new AccountsError('managed_request_unknown')
  return step(deps, request, decision)
}

async function step(deps: ManagedAccessDeps, request: ManagedRequest, to: ManagedAction): Promise<ManagedRequest> {
  const { id, accountId } = request
  const record = auditRecord(deps, { type: `managed.${to}`, accountId, requestId: id })
  if (!(await deps.store.stepManagedRequest(id, to, record.atMs, record)))
    throw new AccountsError('managed_request_decided')
  return { ...request, state: to, decidedAtMs: record.atMs }
}
