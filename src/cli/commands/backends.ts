import { controlBackend, type BackendCommand } from '../../accounts/backends/backend-controls.ts'
import { suggest } from '../../config/check-shape.ts'
import { type BackendControl, holdReasons, type HoldReason } from '../../domain/backend-controls.ts'
import type { BackendState } from '../../domain/backend-state.ts'
import { describeBackend } from '../../domain/backend-status-text.ts'
import type { ServiceHealth } from '../../domain/service-health.ts'
import { counted } from '../../runtime/counted.ts'
import type { Command, Invocation } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { type RecentResults, recentResults } from '../recent-results.ts'
import { writeTable, writeTime } from '../terminal/table.ts'
import { oneOf } from '../value-shapes.ts'

export const backendsList: Command = {
  name: 'backends list',
  summary:
    'List the configured backends: their results in the last hour, and whether they are drained or quarantined. With PostgreSQL or several workers, also whether they are skipped.',
  arguments: [],
  options: [],
  example: 'backends list',
  run: (invocation) =>
    invocation.withStore(async ({ config, backends, requests, health: readHealth }) => {
      const [results, health] = await Promise.all([recentResults(requests, invocation.ports.clock), readHealth()])
      const controls = await backends.store.listBackendControls()
      // A hold outlives the backend's removal from the configuration, in case the backend comes back.
      const held = controls.filter(({ kind }) => kind !== 'released').map(({ backendId }) => backendId)
      const names = [...new Set([...config.backends.map(({ id }) => id), ...held])]
      const rows = names.map((name) => lookAt(name, { controls, results, health }))
      return {
        text: writeTable([['BACKEND', 'STATE', 'SINCE', 'BY', 'REASON', 'ANSWERED', 'FAILED'], ...rows.map(writeRow)]),
        json: rows,
        talk: [
          results.caption,
          health.nodes.length === 0
            ? 'Circuit breakers exist only in the running service: see /operator/backends in the web app.'
            : `STATE combines the latest reports of ${counted(health.nodes.length, 'node')}.`,
          `Next: ${invocation.command('backends drain BACKEND')}`,
        ],
      }
    }),
}

interface BackendRow {
  readonly backend: string
  readonly holds: readonly Pick<BackendControl, 'kind' | 'atMs' | 'by' | 'reason'>[]
  /** Of its circuit breakers on the nodes that report; `closed` if none does. */
  readonly breaker: Pick<BackendState, 'state' | 'reason' | 'sinceMs' | 'isTroubled' | 'lastFailure' | 'skippedBy'>
  readonly answered: number
  readonly failed: number
}

interface Looked {
  readonly controls: readonly BackendControl[]
  readonly results: RecentResults
  readonly health: ServiceHealth
}

function lookAt(backend: string, { controls, results, health }: Looked): BackendRow {
  const holds = controls
    .filter(({ backendId, kind }) => backendId === backend && kind !== 'released')
    .map(({ kind, atMs, by, reason }) => ({ kind, atMs, by, reason }))
  const { state, reason, sinceMs, isTroubled, lastFailure, skippedBy } = health.condition(backend)
  const breaker = { state, reason, sinceMs, isTroubled, lastFailure, skippedBy }
  return { backend, holds, breaker, ...results.of(backend) }
}

function writeRow({ backend, holds, breaker, answered, failed }: BackendRow): readonly string[] {
  const [hold] = holds
  const counts = { answered, failed }
  const kinds = holds.flatMap(({ kind }) => (kind === 'released' ? [] : [kind]))
  const states = kinds.length === 0 ? [breaker] : kinds.map((state) => ({ ...breaker, state }))
  const state = states.map((each) => describeBackend(each, counts).words).join(', ')
  const sinceMs = hold?.atMs ?? breaker.sinceMs
  return [
    backend,
    state,
    sinceMs === undefined ? '' : writeTime(sinceMs),
    hold?.by ?? '',
    hold?.reason ?? breaker.reason ?? '',
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
  'Stop sending new requests to a backend that you do not trust, until you release it.',
)
export const backendsUndrain = free(
  'undrain',
  'undrained',
  'End a drain. Unless the backend is also quarantined, it gets requests again.',
)
export const backendsRelease = free(
  'release',
  'released',
  'End a quarantine, and close the circuit breaker of the backend. If the backend is also drained, it stays drained.',
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
