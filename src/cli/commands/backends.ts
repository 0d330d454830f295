import { controlBackend, type BackendCommand } from '../../accounts/backends/backend-controls.ts'
import { suggest } from '../../config/check-shape.ts'
import { type BackendControl, holdReasons, type HoldReason } from '../../domain/backend-controls.ts'
import { describeBackend } from '../../domain/backend-status-text.ts'
import { brokenBackend, failedBackends, type RequestRecord } from '../../domain/requests.ts'
import { hourMs } from '../../runtime/durations.ts'
import type { Command, Invocation } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { writeTable, writeTime } from '../terminal/table.ts'
import { oneOf } from '../value-shapes.ts'

/** How many of the latest request records are examined. */
const maxLooked = 2_000

export const backendsList: Command = {
  name: 'backends list',
  summary:
    'List the configured backends with their results in the last hour, and which ones are drained or quarantined.',
  arguments: [],
  options: [],
  example: 'backends list',
  run: (invocation) =>
    invocation.withStore(async ({ config, backends, requests }) => {
      const sinceMs = invocation.ports.clock.nowMs() - hourMs
      const looked = await requests.list(maxLooked, undefined)
      const recent = looked.filter(({ admittedAtMs }) => admittedAtMs >= sinceMs)
      const controls = await backends.store.listBackendControls()
      // A hold outlives the backend's removal from the configuration, in case the backend comes back.
      const held = controls.filter(({ kind }) => kind !== 'released').map(({ backendId }) => backendId)
      const names = [...new Set([...config.backends.map(({ id }) => id), ...held])]
      const rows = names.map((name) => lookAt(name, controls, recent))
      return {
        text: writeTable([['BACKEND', 'STATE', 'SINCE', 'BY', 'REASON', 'ANSWERED', 'FAILED'], ...rows.map(writeRow)]),
        json: rows,
        talk: [
          looked.length === maxLooked && recent.length === maxLooked
            ? `ANSWERED and FAILED count the latest ${maxLooked} requests.`
            : 'ANSWERED and FAILED count the requests of the last hour.',
          'Circuit breakers exist only in the running service: see /operator/backends in the web app.',
          `Next: ${invocation.command('backends drain BACKEND')}`,
        ],
      }
    }),
}

interface BackendRow {
  readonly backend: string
  readonly holds: readonly Pick<BackendControl, 'kind' | 'atMs' | 'by' | 'reason'>[]
  readonly answered: number
  readonly failed: number
}

function lookAt(backend: string, controls: readonly BackendControl[], records: readonly RequestRecord[]): BackendRow {
  const holds = controls
    .filter(({ backendId, kind }) => backendId === backend && kind !== 'released')
    .map(({ kind, atMs, by, reason }) => ({ kind, atMs, by, reason }))
  const attempts = records.flatMap((record) => record.attempts).filter((attempt) => attempt.backend === backend)
  const answered = attempts.filter(({ outcome }) => outcome === 'answered').length
  const broken = records.filter((record) => brokenBackend(record) === backend).length
  const failed = records.flatMap((record) => failedBackends(record) ?? []).filter((failing) => failing === backend)
  return { backend, holds, failed: failed.length, answered: answered - broken }
}

function writeRow({ backend, holds, answered, failed }: BackendRow): readonly string[] {
  const [hold] = holds
  const states =
    holds.length === 0 ? (['closed'] as const) : holds.map(({ kind }) => (kind === 'released' ? 'closed' : kind))
  const counted = { answered, failed }
  const state = states
    .map((each) => describeBackend({ state: each, reason: undefined, isTroubled: false }, counted).words)
    .join(', ')
  return [
    backend,
    state,
    hold === undefined ? '' : writeTime(hold.atMs),
    hold?.by ?? '',
    hold?.reason ?? '',
    String(answered),
    String(failed),
  ]
}

const reasonOption = {
  name: 'reason',
  value: 'REASON',
  shape: oneOf(holdReasons),
  summary: `The reason for the audit log: ${holdReasons.join(', ')}. Default: ${holdReasons[0]} (someone asked for it).`,
} as const

export const backendsDrain = hold(
  'drain',
  'drained',
  'Stop sending new requests to a backend. Requests in progress complete.',
)
export const backendsQuarantine = hold(
  'quarantine',
  'quarantined',
  'Take a backend that you do not trust out of service until you release it.',
)
export const backendsUndrain = free('undrain', 'undrained', 'Send requests to a drained backend again.')
export const backendsRelease = free(
  'release',
  'released',
  'End a quarantine, including one that the service started automatically.',
)

function hold(verb: string, step: 'drained' | 'quarantined', summary: string): Command {
  return command(verb, summary, [reasonOption], (invocation, backend) => {
    const given = invocation.line.option('reason') ?? holdReasons[0]
    const reason = holdReasons.find((known): known is HoldReason => known === given)
    if (reason === undefined)
      throw new CommandError(exitCodes.usage, 'there is no such reason', `--reason ${holdReasons.join('|')}`)
    return { step, backend, reason }
  })
}

function free(verb: string, step: 'undrained' | 'released', summary: string): Command {
  return command(verb, summary, [], (_, backend) => ({ step, backend }))
}

function command(
  verb: string,
  summary: string,
  options: Command['options'],
  read: (invocation: Invocation, backend: string) => BackendCommand,
): Command {
  return {
    name: `backends ${verb}`,
    summary,
    arguments: ['BACKEND'],
    options,
    example: `backends ${verb} BACKEND`,
    run(invocation) {
      const backend = invocation.argument(0, 'the backend', 'backends list')
      const order = read(invocation, backend)
      return invocation.withStore(async ({ config, backends }) => {
        const known = config.backends.map(({ id }) => id)
        const isHold = order.step === 'drained' || order.step === 'quarantined'
        // A backend that was removed from the configuration can still be released.
        if (isHold && !known.includes(backend))
          throw new CommandError(
            exitCodes.failure,
            'the configuration has no backend with that name',
            suggest(backend, known),
          )
        await controlBackend(backends, order)
        return {
          text: backend,
          json: order,
          talk: [
            `${backend} is ${order.step}. Running servers apply this within a second.`,
            `Next: ${invocation.command('backends list')}`,
          ],
        }
      })
    },
  }
}
