import { readEmailAddress } from '../../domain/identity.ts'
import type { Operator, OperatorRole } from '../../domain/operators.ts'
import { idMinter } from '../../runtime/ids.ts'
import { AccountsError } from '../accounts-error.ts'
import { auditRecord, type AccountsDeps } from '../control-plane.ts'
import type { OperatorChange, OperatorStore } from './operator-ports.ts'

/** Maximum number of active operators. */
const maxOperators = 200
/** Maximum number of operators in one listing, removed ones included. */
export const maxListedOperators = 500

/** What changes to operators need. */
export type OperatorsDeps = AccountsDeps<OperatorStore>

/** Creates an operator. @throws AccountsError `email_invalid`, `operator_exists`, `operator_limit` */
export async function createOperator(deps: OperatorsDeps, address: string, role: OperatorRole): Promise<Operator> {
  const email = readEmailAddress(address)
  if (email === undefined) throw new AccountsError('email_invalid')
  const nowMs = Math.floor(deps.clock.nowMs())
  const id = idMinter('opr_', () => nowMs, deps.random)()
  const operator: Operator = { id, email, role, state: 'active', createdAtMs: nowMs, removedAtMs: null }
  const record = auditRecord(deps, { type: 'operator.created', operatorId: id, role })
  const added = await deps.store.addOperator(operator, maxOperators, record)
  if (added !== 'done') throw new AccountsError(added === 'taken' ? 'operator_exists' : 'operator_limit')
  return operator
}

/** The active operator with this id or address. @throws AccountsError `operator_unknown` */
export async function findOperator(deps: Pick<OperatorsDeps, 'store'>, idOrEmail: string): Promise<Operator> {
  const found =
    (await deps.store.findOperator(idOrEmail)) ??
    (await deps.store.findOperatorByEmail(readEmailAddress(idOrEmail) ?? ''))
  if (found?.state !== 'active') throw new AccountsError('operator_unknown')
  return found
}

/**
 * Changes an operator's role, effective immediately. @throws AccountsError `operator_unknown`, `operator_same_role`,
 * `operator_last_admin`, `operator_self`
 */
export async function changeOperatorRole(deps: OperatorsDeps, id: string, role: OperatorRole): Promise<void> {
  assertNotSelf(deps, id)
  const record = auditRecord(deps, { type: 'operator.role_changed', operatorId: id, role })
  assertDone(await deps.store.setOperatorRole(id, role, record))
}

/**
 * Removes an operator and ends all their sessions. @throws AccountsError `operator_unknown`, `operator_last_admin`,
 * `operator_self`
 */
export async function removeOperator(deps: OperatorsDeps, id: string): Promise<void> {
  assertNotSelf(deps, id)
  const record = auditRecord(deps, { type: 'operator.removed', operatorId: id })
  assertDone(await deps.store.removeOperator(id, record.atMs, record))
}

/**
 * Prevents operators from removing or demoting themselves by mistake: another operator or the command line does it
 * (contract 24.6).
 */
function assertNotSelf({ actor }: OperatorsDeps, id: string): void {
  if (actor.kind === 'operator' && actor.operatorId === id) throw new AccountsError('operator_self')
}

function assertDone(change: OperatorChange): void {
  if (change === 'unknown') throw new AccountsError('operator_unknown')
  if (change === 'same') throw new AccountsError('operator_same_role')
  if (change === 'last_admin') throw new AccountsError('operator_last_admin')
}
