import { operatorRoles, type OperatorRole } from '../domain/operators.ts'
import type { Option } from './command-line.ts'
import type { Invocation } from './command.ts'
import { oneOf } from './value-shapes.ts'
import { CommandError, exitCodes } from './failures.ts'

export const roleOption: Option = {
  name: 'role',
  value: 'ROLE',
  required: true,
  shape: oneOf(operatorRoles),
  summary: 'viewer (read-only), support (helps accounts), or admin (full access).',
}

/** The role that `--role` names. @throws CommandError if it is missing or unknown */
export function readRole(invocation: Invocation): OperatorRole {
  const named = invocation.line.option('role')
  const role = operatorRoles.find((known) => known === named)
  if (role !== undefined) return role
  const what = named === undefined ? 'the role is missing' : 'there is no such role'
  throw new CommandError(exitCodes.usage, what, `--role ${operatorRoles.join(' or --role ')}`)
}
