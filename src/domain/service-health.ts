import type { BackendState, HourCount } from './backend-state.ts'
import type { BackendReport, FailingPart, NodeReport } from './node-report.ts'

/** A node that has sent no heartbeat for this long says nothing about the service's health any more: three were missed. */
const silentAfterMs = 16_000
/** A node that used a backend within this time has an opinion about it; one that skips it always has. */
const usedWithinMs = 10 * 60_000

/** A node of the service and what it last reported. */
export interface KnownNode {
  readonly id: string
  readonly startedAtMs: number
  /** Its last heartbeat. */
  readonly seenAtMs: number
  /** Undefined while it starts, and if it runs an older version. */
  readonly report: NodeReport | undefined
}

/** A part that failed on a node. */
export interface FailedPart {
  readonly part: FailingPart
  readonly atMs: number
  readonly reason: string
}

interface Opinion {
  readonly nodeSeenMs: number
  readonly backend: BackendReport
}

/** The health of the whole service, from what its nodes report (contract 18.7, 36.10). */
export class ServiceHealth {
  /** Every known node, those that started first, first. */
  readonly nodes: readonly KnownNode[]
  readonly #nowMs: number
  /** Those that sent a recent heartbeat with a report. */
  readonly #reports: readonly { readonly seenAtMs: number; readonly report: NodeReport }[]

  constructor(nodes: readonly KnownNode[], nowMs: number) {
    this.#nowMs = nowMs
    this.nodes = nodes.toSorted((a, b) => a.startedAtMs - b.startedAtMs)
    this.#reports = this.nodes.flatMap(({ seenAtMs, report }) =>
      report === undefined || this.isSilent({ seenAtMs }) ? [] : [{ seenAtMs, report }],
    )
  }

  /** Whether a node missed several heartbeats: it was killed, or it cannot reach the database. */
  isSilent({ seenAtMs }: Pick<KnownNode, 'seenAtMs'>): boolean {
    return this.#nowMs - seenAtMs > silentAfterMs
  }

  /**
   * The state of a backend. It is down if most nodes that use it skip it. Operators' holds are not part of it: they are
   * the same on every node.
   */
  condition(backendId: string): BackendState {
    const opinions = this.#opinionsOn(backendId)
    const lastFailure = opinions
      .flatMap(({ nodeSeenMs, backend: { last } }) =>
        last === undefined ? [] : [{ outcome: last.outcome, atMs: nodeSeenMs - last.agoMs }],
      )
      .toSorted((a, b) => b.atMs - a.atMs)[0]
    const known = {
      backendId,
      isTroubled: opinions.some(({ backend }) => backend.isTroubled),
      failures: opinions.reduce((sum, { backend }) => sum + backend.failures, 0),
      lastFailure,
    }
    const skipping = opinions.filter(({ backend }) => backend.state !== 'closed')
    const using = opinions.filter(({ backend: { usedAgoMs } }) => usedAgoMs !== undefined && usedAgoMs < usedWithinMs)
    const of = new Set([...skipping, ...using]).size
    const longest = skipping.toSorted((a, b) => sinceMs(a) - sinceMs(b))[0]
    if (longest === undefined || skipping.length * 2 <= of) {
      const skippedBy = longest && { nodes: skipping.length, of }
      const since = longest && sinceMs(longest)
      return { ...known, state: 'closed', reason: undefined, sinceMs: since, untilMs: undefined, skippedBy }
    }
    const isOpen = skipping.some(({ backend }) => backend.state === 'open')
    const untilMs = Math.min(...skipping.map(({ nodeSeenMs, backend }) => nodeSeenMs + (backend.untilInMs ?? 0)))
    const { reason } = longest.backend
    return { ...known, state: isOpen ? 'open' : 'half_open', reason, sinceMs: sinceMs(longest), untilMs }
  }

  /** Its results in the last hour. */
  lastHour(backendId: string): HourCount {
    return this.#opinionsOn(backendId).reduce<HourCount>(
      (sum, { backend: { hour } }) => ({
        answered: sum.answered + hour.answered,
        failed: sum.failed + hour.failed,
        timed: sum.timed + hour.timed,
        sumMs: sum.sumMs + hour.sumMs,
      }),
      { answered: 0, failed: 0, timed: 0, sumMs: 0 },
    )
  }

  /** Whether any node skips the backend, or its last request there failed, or it fails often. */
  isFailing(backendId: string): boolean {
    const { state, failures, isTroubled, skippedBy } = this.condition(backendId)
    const isSkipped = state !== 'closed' || skippedBy !== undefined || this.ownDown().includes(backendId)
    return isSkipped || failures > 0 || isTroubled
  }

  /** Requests of the last five minutes. */
  requests(): { readonly answered: number; readonly failed: number } {
    const all = this.#reports.map(({ report: { requests } }) => requests)
    return {
      answered: all.reduce((sum, { answered }) => sum + answered, 0),
      failed: all.reduce((sum, { failed }) => sum + failed, 0),
    }
  }

  /** Recently failed parts, the latest first, each once. */
  failures(): readonly FailedPart[] {
    const latest = new Map<FailingPart, FailedPart>()
    for (const { seenAtMs, report } of this.#reports)
      for (const { part, agoMs, reason } of report.failures) {
        const atMs = seenAtMs - agoMs
        if (atMs > (latest.get(part)?.atMs ?? 0)) latest.set(part, { part, atMs, reason })
      }
    return [...latest.values()].toSorted((a, b) => b.atMs - a.atMs)
  }

  /** Accounts' own backends that a node skips. */
  ownDown(): readonly string[] {
    return [...new Set(this.#reports.flatMap(({ report }) => report.ownDown))]
  }

  /** How many nodes should serve, and how many of them do. Nodes that drain are about to end, and are not counted. */
  serving(): { readonly nodes: number; readonly of: number; readonly reason: string | undefined } {
    const meant = this.#reports.filter(({ report }) => !report.isDraining)
    const failing = meant.flatMap(({ report: { reasons } }) => reasons.slice(0, 1))
    const drains = this.#reports.flatMap(({ report: { reasons } }) => reasons.slice(0, 1))
    return { nodes: meant.length - failing.length, of: meant.length, reason: failing[0] ?? drains[0] }
  }

  #opinionsOn(backendId: string): readonly Opinion[] {
    return this.#reports.flatMap(({ seenAtMs, report }) => {
      const backend = report.backends.find(({ id }) => id === backendId)
      return backend === undefined ? [] : [{ nodeSeenMs: seenAtMs, backend }]
    })
  }
}

function sinceMs({ nodeSeenMs, backend }: Opinion): number {
  return nodeSeenMs - (backend.sinceAgoMs ?? 0)
}
