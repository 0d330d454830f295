import { holdsOf } from '../../domain/backend-controls.ts'
import type { BackendState } from '../../domain/backend-state.ts'
import { describeBackend } from '../../domain/backend-status-text.ts'
import { parseObject } from '../../domain/json.ts'
import { describeNode } from '../../domain/node-status-text.ts'
import type { KnownNode, ServiceHealth } from '../../domain/service-health.ts'
import type { Command, Invocation, Result } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { findRunning } from '../process/running-file.ts'
import { recentResults, type ResultCounts } from '../recent-results.ts'
import { writeTable, writeTime } from '../terminal/table.ts'
import { ask } from './doctor/ask.ts'

const askLimitMs = 3_000

/** The nodes and backends of the service (contract 33.10). */
export const status: Command = {
  name: 'status',
  summary:
    'Show whether the service is running. On PostgreSQL or with several workers, also show each process and backend.',
  arguments: [],
  options: [],
  example: 'status',
  run: (invocation) =>
    invocation.withStore(async ({ config, backends, requests, health: readHealth }) => {
      const health = await readHealth()
      // A single process on SQLite writes no reports.
      if (health.nodes.length === 0 && config.databaseUrl === undefined)
        return statusOfProcess(invocation, config.dataDir)
      if (health.nodes.length === 0)
        throw new CommandError(
          exitCodes.unreachable,
          'no node sent a heartbeat in the last minute',
          `start one: ${invocation.command('start')}`,
        )
      const holds = holdsOf(await backends.store.listBackendControls())
      const results = await recentResults(requests, invocation.ports.clock)
      const conditions = config.backends.map(({ id }) => {
        const condition = health.condition(id)
        return { ...condition, state: holds.get(id)?.kind ?? condition.state, hour: results.of(id) }
      })
      return statusOfNodes(invocation, { health, conditions, caption: results.caption })
    }),
}

interface ShownNodes {
  readonly health: ServiceHealth
  readonly conditions: readonly (BackendState & { readonly hour: ResultCounts })[]
  /** What the counts of `hour` cover. */
  readonly caption: string
}

function statusOfNodes(invocation: Invocation, { health, conditions, caption }: ShownNodes): Result {
  const nodes = health.nodes.map((node) => ({ ...node, state: describeNode(node, health).words }))
  const isGood = health.serving().nodes > 0
  return {
    text: [
      writeTable([['NODE', 'PROCESS', 'STATE', 'VERSION', 'STARTED', 'LAST HEARTBEAT'], ...nodes.map(nodeRow)]),
      '',
      writeTable([
        ['BACKEND', 'STATE', 'SINCE', 'LAST FAILURE', 'ANSWERED', 'FAILED'],
        ...conditions.map((condition) => [
          condition.backendId,
          describeBackend(condition, condition.hour).words,
          condition.sinceMs === undefined ? '' : writeTime(condition.sinceMs),
          condition.lastFailure?.outcome ?? '',
          String(condition.hour.answered),
          String(condition.hour.failed),
        ]),
      ]),
    ].join('\n'),
    json: { serving: health.serving(), nodes, backends: conditions },
    talk: [caption, `Next: ${invocation.command('backends list')}`],
    exitCode: isGood ? exitCodes.ok : exitCodes.failure,
  }
}

function nodeRow({ id, report, state, startedAtMs, seenAtMs }: KnownNode & { readonly state: string }): string[] {
  return [
    report?.name ?? id,
    report === undefined ? '' : String(report.pid),
    state,
    report?.version ?? '',
    writeTime(startedAtMs),
    writeTime(seenAtMs),
  ]
}

/** One process that uses the data folder. */
async function statusOfProcess(invocation: Invocation, dataDir: string): Promise<Result> {
  const running = findRunning(dataDir)
  if (running === undefined)
    throw new CommandError(
      exitCodes.unreachable,
      `no service is running with the data folder ${dataDir}`,
      `start it: ${invocation.command('start')}`,
    )
  const { origin } = new URL(running.baseUrl)
  const answer = await ask(`${origin}/ready`, { headers: { accept: 'application/json' }, withinMs: askLimitMs })
  const { ready, reasons } = answer.kind === 'answer' ? (parseObject(answer.body) ?? {}) : {}
  const words = Array.isArray(reasons) ? reasons.filter((reason) => typeof reason === 'string') : []
  const isReady = ready === true
  const state = isReady ? 'serving' : ['rejects requests', ...words].join(': ')
  return {
    text: writeTable([
      ['SERVICE', 'STATE'],
      [running.baseUrl, answer.kind === 'answer' ? state : `does not answer: ${answer.reason}`],
    ]),
    json: { base_url: running.baseUrl, ready: isReady, reasons: words },
    talk: [`Next: ${invocation.command('backends list')}`],
    exitCode: isReady ? exitCodes.ok : exitCodes.failure,
  }
}
