import { idMinter } from '../domain/ids.ts'
import { readEmailAddress } from '../domain/identity.ts'
import type { Operator, OperatorRole } from '../domain/operators.ts'
import { recordOf, type ControlPlane } from './control-plane.ts'
import type { OperatorChange, OperatorStore } from './operator-ports.ts'
import { AccountsError } from './refusals.ts'

/** Operators at once. */
const maxOperators = 200
/** Operators that are listed, the removed ones included. */
export const maxListedOperators = 500

/** What changes of who operates the service work with. */
export type OperatorsPlane = ControlPlane<OperatorStore>

/** Makes an operator. @throws AccountsError `email_invalid`, `operator_exists`, `operator_limit` */
export async function createOperator(plane: OperatorsPlane, address: string, role: OperatorRole): Promise<Operator> {
  const email = readEmailAddress(address)
  if (email === undefined) throw new AccountsError('email_invalid')
  const nowMs = Math.floor(plane.clock.nowMs())
  const id = idMinter('opr_', () => nowMs, plane.random)()
  const operator: Operator = { id, email, role, state: 'active', createdAtMs: nowMs, removedAtMs: null }
  const record = recordOf(plane, { type: 'operator.created', operatorId: id, role })
  const added = await plane.store.addOperator(operator, maxOperators, record)
  if (added !== 'done') throw new AccountsError(added === 'taken' ? 'operator_exists' : 'operator_limit')
  return operator
}

/** The active operator with this id or address. @throws AccountsError `operator_unknown` */
export async function findOperator(plane: Pick<OperatorsPlane, 'store'>, idOrEmail: string): Promise<Operator> {
  const found =
    (await plane.store.findOperator(idOrEmail)) ??
    (await plane.store.findOperatorByEmail(readEmailAddress(idOrEmail) ?? ''))
  if (found?.state !== 'active') throw new AccountsError('operator_unknown')
  return found
}

/** Gives an operator another role, at once. @throws AccountsError `operator_unknown`, `operator_same_role`, `operator_last_admin`, `operator_self` */
export async function changeOperatorRole(plane: OperatorsPlane, id: string, role: OperatorRole): Promise<void> {
  refuseSelf(plane, id)
  const record = recordOf(plane, { type: 'operator.role_changed', operatorId: id, role })
  assertDone(await plane.store.setOperatorRole(id, role, record))
}

/** Ends an operator and every session of it. @throws AccountsError `operator_unknown`, `operator_last_admin`, `operator_self` */
export async function removeOperator(plane: OperatorsPlane, id: string): Promise<void> {
  refuseSelf(plane, id)
  const record = recordOf(plane, { type: 'operator.removed', operatorId: id })
  assertDone(await plane.store.removeOperator(id, record.atMs, record))
}

/** Nobody ends or demotes themselves by mistake: another operator does it, or the command line. */
function refuseSelf({ actor }: OperatorsPlane, id: string): void {
  if (actor.kind === 'operator' && actor.operatorId === id) throw new AccountsError('operator_self')
}

function assertDone(change: OperatorChange): void {
  if (change === 'unknown') throw new AccountsError('operator_unknown')
  if (change === 'same') throw new AccountsError('operator_same_role')
  if (change === 'last_admin') throw new AccountsError('operator_last_admin')
}
