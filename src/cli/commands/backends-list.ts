import type { BackendControl } from '../../domain/backend-controls.ts'
import { describeBackend } from '../../domain/backend-status-text.ts'
import type { RequestRecord } from '../../domain/requests.ts'
import { failedBackends } from '../../domain/upstream.ts'
import type { Command } from '../command.ts'
import { writeTable, writeTime } from '../terminal/table.ts'

/** How many of the latest request records are examined. */
const maxLooked = 2_000
const hourMs = 3_600_000

export const backendsList: Command = {
  name: 'backends list',
  summary: 'List the configured backends, which ones operators took out of use, and their results in the last hour.',
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
  const failed = failedBackends(attempts)?.length ?? 0
  return { backend, holds, failed, answered: attempts.filter(({ outcome }) => outcome === 'answered').length }
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
