import { hostname } from 'node:os'
import type { RecentFailures } from '../accounts/status/recent-failures.ts'
import { StatusBoard } from '../accounts/status/status-board.ts'
import { publicBackends } from '../config/config.ts'
import type { BackendState } from '../domain/backend-state.ts'
import { type NodeReport, reportBackend, writeReport } from '../domain/node-report.ts'
import { type KnownNode, ServiceHealth } from '../domain/service-health.ts'
import type { CircuitBreakers } from '../gateway/routing/circuit-breakers.ts'
import { drainingReason, type Readiness } from '../http/readiness.ts'
import { errorName } from '../runtime/describe-bug.ts'
import { readVersion } from '../runtime/version.ts'
import type { Runtime } from './runtime.ts'
import { readNodes } from './service-health.ts'
import type { Storage } from './storage.ts'

/** How long the reports of other nodes are reused: a page asks for them several times. */
const freshMs = 1_000

export interface OpenStatusDeps {
  readonly storage: Pick<Storage, 'store' | 'ownNode'>
  readonly readiness: () => Readiness
  readonly breakers: Pick<CircuitBreakers, 'condition'>
  readonly recentFailures: RecentFailures
}

/** The health of this process and, through what nodes report to each other, of the whole service. */
export interface Status extends AsyncDisposable {
  /** The status page. The caller passes it every logged event. */
  readonly board: StatusBoard
  /** The whole service: this node as it is now, and others as they last reported (contract 36.10). */
  health(): Promise<ServiceHealth>
  /** Whether a backend fails on any node; if the database does not answer, other nodes are not considered. */
  readFailing(): Promise<(backendId: string) => boolean>
  /** Reports to other nodes from now on, as the node that listens on this port. */
  startReporting(port: number): void
}

export function openStatus(runtime: Runtime, deps: OpenStatusDeps): Status {
  const { config, served, clock, log } = runtime
  const { storage, breakers } = deps
  const { ownNode, store } = storage
  const onFailed = (error: unknown): void => log({ event: 'store_failing', reason: errorName(error) })
  // Read with every request, and changed only by operators.
  let shown: { readonly of: typeof served.backends; readonly ids: readonly string[] } | undefined
  const board: StatusBoard = new StatusBoard({
    clock,
    store,
    get profiles() {
      return served.profiles
    },
    get backends() {
      const { backends } = served
      if (shown?.of !== backends)
        shown = { of: backends, ids: publicBackends({ mode: config.mode, backends }).map(({ id }) => id) }
      return shown.ids
    },
    get configured() {
      return served.backendIds
    },
    condition: (id) => breakers.condition(id),
    health: async () => {
      const health = await read()
      return {
        condition: (id) => withHold(health.condition(id), breakers.condition(id)),
        lastHour: (id) => health.lastHour(id),
        serving: () => health.serving(),
      }
    },
    onFailed,
  })
  const startedAtMs = clock.nowMs()
  let { port } = config.listen
  const report = (): NodeReport => reportOf(runtime, deps, board, port)
  const own = (): KnownNode => ({ id: ownNode.id, startedAtMs, seenAtMs: clock.nowMs(), report: report() })
  let cached: { readonly nodes: Promise<readonly KnownNode[]>; readonly atMs: number } | undefined
  const readOthers = (): Promise<readonly KnownNode[]> => {
    const nowMs = clock.monotonicMs()
    if (cached === undefined || nowMs - cached.atMs >= freshMs) {
      const nodes = readNodes(store, () => clock.nowMs())
      cached = { nodes, atMs: nowMs }
      nodes.catch(() => {
        cached = undefined
      })
    }
    return cached.nodes
  }
  // This process knows itself better than the database does.
  const read = async (): Promise<ServiceHealth> => {
    const others = (await readOthers()).filter(({ id }) => id !== ownNode.id)
    return new ServiceHealth([own(), ...others], clock.nowMs())
  }
  const startReporting = (listening: number): void => {
    port = listening
    ownNode.reportWith(() => {
      try {
        return writeReport(report())
      } catch (error) {
        // The heartbeat matters more: without it, other nodes give this one up.
        onFailed(error)
        return undefined
      }
    })
  }
  const readFailing = (): Promise<(backendId: string) => boolean> =>
    read().then(
      (health) => (id) => health.isFailing(id),
      () => () => false,
    )
  return { board, health: read, readFailing, startReporting, [Symbol.asyncDispose]: () => board[Symbol.asyncDispose]() }
}

/** Holds reach every process within a second, so that this one knows them. */
function withHold(condition: BackendState, own: BackendState): BackendState {
  const { state, reason, sinceMs } = own
  if (state !== 'drained' && state !== 'quarantined') return condition
  return { ...condition, state, reason, sinceMs, untilMs: undefined }
}

function reportOf(
  { served, clock }: Runtime,
  { breakers, recentFailures, readiness }: OpenStatusDeps,
  board: StatusBoard,
  port: number,
): NodeReport {
  const nowMs = clock.nowMs()
  const { reasons } = readiness()
  const configured = new Set(served.backends.map(({ id }) => id))
  return {
    name: `${hostname()}:${port}`,
    pid: process.pid,
    version: readVersion(),
    isDraining: reasons.includes(drainingReason),
    reasons,
    backends: [...configured].map((id) =>
      reportBackend(breakers.condition(id), board.lastHour(id), board.usedAgoMs(id), nowMs),
    ),
    ownDown: recentFailures.down().filter((id) => !configured.has(id)),
    requests: recentFailures.requests(),
    failures: recentFailures.failures().map(({ part, atMs, reason }) => ({ part, agoMs: nowMs - atMs, reason })),
  }
}
