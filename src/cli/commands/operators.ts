import {
  createOperator,
  findOperator,
  maxListedOperators,
  changeOperatorRole,
  removeOperator,
} from '../../accounts/operators/operators.ts'
import { operatorRoles, type OperatorRole } from '../../domain/operators.ts'
import type { Option } from '../command-line.ts'
import type { Command, Invocation } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { findRunning } from '../process/running-file.ts'
import { writeTable, writeTime } from '../terminal/table.ts'
import { emailAddress, oneOf } from '../value-shapes.ts'

const roleOption: Option = {
  name: 'role',
  value: 'ROLE',
  required: true,
  shape: oneOf(operatorRoles),
  summary:
    'viewer (read-only), support (can also change plans and budgets, suspend accounts, revoke keys, and handle tickets and incidents), or admin (full access).',
}

export const operatorsCreate: Command = {
  name: 'operators create',
  summary: 'Add an operator, who can sign in to the console.',
  arguments: ['EMAIL'],
  shapes: { EMAIL: emailAddress },
  options: [roleOption],
  example: 'operators create you@example.com --role admin',
  run(invocation) {
    const email = invocation.argument(0, 'the email address', 'operators create you@example.com --role admin')
    const role = readRole(invocation)
    return invocation.withStore(
      async ({ operators }) => {
        const operator = await createOperator(operators, email, role)
        return {
          text: operator.id,
          json: operator,
          talk: [
            `${operator.email} is an operator with the role ${operator.role}.`,
            `Next: ${invocation.command(`operators sign-in-link ${operator.email}`)}`,
          ],
        }
      },
      { none: 'make' },
    )
  },
}

export const operatorsSignInLink: Command = {
  name: 'operators sign-in-link',
  summary: 'Create a link that signs an operator in to the console. It works once, within 15 minutes.',
  arguments: ['OPERATOR'],
  options: [],
  example: 'operators sign-in-link you@example.com',
  run(invocation) {
    const named = invocation.argument(0, 'the ID or email address of the operator', 'operators list')
    return invocation.withStore(async ({ config, operators, operatorLink }) => {
      const operator = await findOperator(operators, named)
      const running = findRunning(config.dataDir)
      const link = await operatorLink(operator.id, running?.appUrl ?? config.appUrl)
      return {
        text: link.reveal(),
        json: { operator: operator.id, sign_in_url: link.reveal() },
        talk: [
          `The link signs in to the console as ${operator.email} once, within 15 minutes. Anyone who has it can use it.`,
          ...(running === undefined
            ? [`No service is running with this data folder. To start one: ${invocation.command('start')}`]
            : []),
        ],
      }
    })
  },
}

export const operatorsList: Command = {
  name: 'operators list',
  summary: `List the operators, removed ones last, at most ${maxListedOperators}.`,
  arguments: [],
  options: [],
  example: 'operators list',
  run: (invocation) =>
    invocation.withStore(async ({ operators }) => {
      const listed = await operators.store.listOperators(maxListedOperators)
      const rows = listed.map(({ id, email, role, state, createdAtMs }) => [
        id,
        email,
        role,
        state,
        writeTime(createdAtMs),
      ])
      const next = rows.length === 0 ? 'operators create EMAIL --role admin' : 'operators sign-in-link EMAIL'
      return {
        text: rows.length === 0 ? '' : writeTable([['ID', 'EMAIL', 'ROLE', 'STATE', 'CREATED'], ...rows]),
        json: listed,
        talk: [...(rows.length === 0 ? ['There are no operators yet.'] : []), `Next: ${invocation.command(next)}`],
      }
    }),
}

export const operatorsRole: Command = {
  name: 'operators role',
  summary: "Change an operator's role, effective immediately.",
  arguments: ['OPERATOR'],
  options: [roleOption],
  example: 'operators role you@example.com --role support',
  run(invocation) {
    const named = invocation.argument(0, 'the ID or email address of the operator', 'operators list')
    const role = readRole(invocation)
    return invocation.withStore(async ({ operators }) => {
      const operator = await findOperator(operators, named)
      await changeOperatorRole(operators, operator.id, role)
      return {
        text: operator.id,
        json: { ...operator, role },
        talk: [`${operator.email} now has the role ${role}.`, `Next: ${invocation.command('operators list')}`],
      }
    })
  },
}

export const operatorsRemove: Command = {
  name: 'operators remove',
  summary: 'Remove an operator and end all their console sessions.',
  arguments: ['OPERATOR'],
  options: [],
  example: 'operators remove you@example.com',
  run(invocation) {
    const named = invocation.argument(0, 'the ID or email address of the operator', 'operators list')
    return invocation.withStore(async ({ operators }) => {
      const operator = await findOperator(operators, named)
      await removeOperator(operators, operator.id)
      return {
        text: operator.id,
        json: { ...operator, state: 'removed' },
        talk: [
          `${operator.email} is no longer an operator and is signed out everywhere.`,
          `Next: ${invocation.command('operators list')}`,
        ],
      }
    })
  },
}

/** The role that `--role` names. @throws CommandError if it is missing or unknown */
function readRole(invocation: Invocation): OperatorRole {
  const named = invocation.line.option('role')
  const role = operatorRoles.find((known) => known === named)
  if (role !== undefined) return role
  const what = named === undefined ? 'the role is missing' : 'there is no such role'
  throw new CommandError(exitCodes.usage, what, `--role ${operatorRoles.join(' or --role ')}`)
}
