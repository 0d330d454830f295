import {
  switchManagedAccess,
  recordResale,
  revokeResale,
  maxListedRequests,
  reviewManagedRequest,
} from '../../accounts/managed-access/managed-access.ts'
import { checkReadiness, type ReadinessDeps } from '../../accounts/managed-access/managed-readiness.ts'
import { suggest } from '../../config/check-shape.ts'
import { isManagedOn, type ManagedRequestState } from '../../domain/managed-access.ts'
import type { Command } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { writeTable, writeTime } from '../terminal/table.ts'
import { oneOf } from '../value-shapes.ts'

export const managedAccessStatus: Command = {
  name: 'managed-access status',
  summary:
    'Show whether managed access is on, and check now that quotas and audit events are stored durably and that resale agreements with the providers are recorded. Managed access lets accounts use your provider credentials.',
  arguments: [],
  options: [],
  example: 'managed-access status',
  run: (invocation) =>
    invocation.withStore(async ({ config, audit, managed, proveQuotas }) => {
      const store: ReadinessDeps['store'] = {
        managedAccess: () => managed.store.managedAccess(),
        proveAudit: (record) => audit.proveAudit(record),
      }
      const readiness = await checkReadiness({ store, proveQuotas, clock: invocation.ports.clock }, 'always')
      const names = new Set(config.backends.filter((backend) => backend.managed).map(({ provider }) => provider.name))
      const providers = [...names].map((provider) => ({
        provider,
        resaleRecorded: readiness.providers.includes(provider),
        on: isManagedOn(readiness, provider),
      }))
      const say = (holds: boolean, good: string, bad: string): string => (holds ? good : bad)
      return {
        text: writeTable([
          ['CHECK', 'STATUS'],
          ['switch', say(readiness.switchedOn, 'on', 'off')],
          ['durable quotas', say(readiness.durableQuotas, 'proven', 'NOT proven')],
          ['durable audit events', say(readiness.durableAudit, 'proven', 'NOT proven')],
          ...providers.map(({ provider, resaleRecorded, on }) => [
            `resale agreement with ${provider}`,
            `${say(resaleRecorded, 'recorded', 'NOT recorded')}: managed access is ${say(on, 'on', 'off')}`,
          ]),
        ]),
        json: { ...readiness, providers },
        talk:
          providers.length === 0
            ? ['The configuration has no managed backends, so managed access serves no accounts.']
            : [`Next: ${invocation.command('managed-access requests')}`],
      }
    }),
}

export const managedAccessOn = switching(
  'on',
  'Turn on managed access: approved accounts can use your credentials for each provider with a recorded resale agreement, while the other checks in managed-access status pass.',
)
export const managedAccessOff = switching('off', 'Turn off managed access for all accounts.')

function switching(to: 'on' | 'off', summary: string): Command {
  return {
    name: `managed-access ${to}`,
    summary,
    arguments: [],
    options: [],
    example: `managed-access ${to}`,
    run: (invocation) =>
      invocation.withStore(async ({ managed }) => {
        await switchManagedAccess(managed, to === 'on')
        return {
          text: to,
          json: { switched_on: to === 'on' },
          talk: [
            `Managed access is turned ${to}. Running servers apply this within a second.`,
            `Next: ${invocation.command('managed-access status')}`,
          ],
        }
      }),
  }
}

export const managedAccessResale: Command = {
  name: 'managed-access resale',
  summary: 'Record that a provider allows resale of its service, or revoke that record.',
  arguments: ['PROVIDER'],
  options: [
    {
      name: 'note',
      value: 'NOTE',
      summary:
        'The ID of the contract or ticket that contains the agreement: at most 40 letters, digits, ".", "_", or "-". Required unless you add --revoke.',
    },
    {
      name: 'revoke',
      summary: 'Revoke the record. The managed backends of the provider stop serving accounts within a second.',
    },
  ],
  example: 'managed-access resale openai --note CONTRACT-17',
  run(invocation) {
    const { line } = invocation
    const provider = invocation.argument(0, 'the provider', 'managed-access resale PROVIDER --note NOTE')
    const note = line.option('note')
    const revokes = line.flag('revoke')
    if ((note === undefined) !== revokes)
      throw new CommandError(
        exitCodes.usage,
        'give either the ID of the agreement or --revoke',
        'add --note NOTE, or --revoke',
      )
    return invocation.withStore(async ({ config, managed }) => {
      const known = config.providers.map(({ name }) => name)
      // A record can be revoked even if the provider was removed from the configuration.
      if (!revokes && !known.includes(provider))
        throw new CommandError(
          exitCodes.failure,
          'the configuration has no provider with that name',
          known.length === 0
            ? 'add it to "providers" in the configuration, with a managed backend'
            : suggest(provider, known),
        )
      if (note === undefined) await revokeResale(managed, provider)
      else await recordResale(managed, provider, note)
      return {
        text: provider,
        json: { provider, note, recorded: !revokes },
        talk: [
          `The resale agreement with ${provider} is ${revokes ? 'revoked' : 'recorded'}.`,
          `Next: ${invocation.command('managed-access status')}`,
        ],
      }
    })
  },
}

const states = ['requested', 'approved', 'rejected', 'withdrawn'] as const satisfies readonly ManagedRequestState[]

export const managedAccessRequests: Command = {
  name: 'managed-access requests',
  summary: `List accounts’ requests for managed access, newest first, at most ${maxListedRequests}.`,
  arguments: [],
  options: [
    {
      name: 'state',
      value: 'STATE',
      shape: oneOf(states),
      summary: `Only requests in this state: ${states.join(', ')}. Default: all.`,
    },
  ],
  example: 'managed-access requests --state requested',
  run(invocation) {
    const named = invocation.line.option('state')
    const state = states.find((known) => known === named)
    if (named !== undefined && state === undefined)
      throw new CommandError(exitCodes.usage, `--state must be one of ${states.join(', ')}`, '--state requested')
    return invocation.withStore(async ({ managed }) => {
      const selection = { limit: maxListedRequests, ...(state !== undefined && { state }) }
      const requests = await managed.store.listManagedRequests(selection)
      const rows = requests.map(({ id, accountId, createdAtMs, state: stands }) => [
        id,
        accountId,
        writeTime(createdAtMs),
        stands,
      ])
      return {
        text: rows.length === 0 ? '' : writeTable([['ID', 'ACCOUNT', 'REQUESTED', 'STATE'], ...rows]),
        json: requests,
        talk: [
          rows.length === 0
            ? 'No requests. Accounts make them on their managed access page.'
            : `Next: ${invocation.command('managed-access approve ID')}`,
        ],
      }
    })
  },
}

export const managedAccessApprove = review('approve', 'approved', 'Approve an account’s request for managed access.')
export const managedAccessReject = review('reject', 'rejected', 'Reject a request, or end approved access.')

function review(verb: string, decision: 'approved' | 'rejected', summary: string): Command {
  return {
    name: `managed-access ${verb}`,
    summary,
    arguments: ['ID'],
    options: [],
    example: `managed-access ${verb} ID`,
    run(invocation) {
      const id = invocation.argument(0, 'the ID of the request', 'managed-access requests')
      return invocation.withStore(async ({ managed }) => {
        const request = await reviewManagedRequest(managed, id, decision)
        return {
          text: request.id,
          json: request,
          talk: [
            `The request from ${request.accountId} is ${decision}. Running servers apply this within a second.`,
            `Next: ${invocation.command('managed-access status')}`,
          ],
        }
      })
    },
  }
}
