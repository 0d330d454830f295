import type { BackendState, HourCount, OpenReason } from './backend-state.ts'
import { parseObject } from './json.ts'
import type { AttemptOutcome } from './upstream.ts'

/** Parts of the service whose failures are shown to operators, by the events that report them. */
export const failingParts = [
  'ledger_failing',
  'store_failing',
  'audit_failing',
  'mail_failing',
  'billing_failing',
] as const
export type FailingPart = (typeof failingParts)[number]

/** Reports of another form are ignored: they come from another version. */
const form = 1
/** Backends in a report: those with something to say first. */
const maxBackends = 300
/** Accounts' own backends with an open circuit breaker. */
const maxOwnDown = 50
/** Larger reports are written without their backends, so that every node stays visible. */
const maxCharacters = 128 * 1024

/**
 * What one node reports with each heartbeat (contract 36.10). All times are ages in milliseconds, because the
 * clocks of nodes may differ.
 */
export interface NodeReport {
  /** The machine and the port of the API, such as `web-1:8787`. */
  readonly name: string
  readonly pid: number
  readonly version: string
  readonly isDraining: boolean
  /** Why it rejects requests; empty if it accepts them. */
  readonly reasons: readonly string[]
  readonly backends: readonly BackendReport[]
  /** Accounts' own backends with an open circuit breaker. */
  readonly ownDown: readonly string[]
  /** Requests of the last five minutes: answered, and failed through no fault of their callers. */
  readonly requests: { readonly answered: number; readonly failed: number }
  /** Parts that failed in the last ten minutes. */
  readonly failures: readonly { readonly part: FailingPart; readonly agoMs: number; readonly reason: string }[]
}

/** One backend as one node sees it, without operators' holds, which are the same on every node. */
export interface BackendReport {
  readonly id: string
  /** The state of the circuit breaker. */
  readonly state: 'closed' | 'open' | 'half_open'
  /** Undefined if it is closed. */
  readonly reason?: OpenReason | undefined
  readonly sinceAgoMs?: number | undefined
  readonly untilInMs?: number | undefined
  readonly isTroubled: boolean
  readonly failures: number
  readonly last?: { readonly outcome: AttemptOutcome; readonly agoMs: number } | undefined
  readonly hour: HourCount
  /** How long ago the last request to it ended; undefined if none did within the last hour. */
  readonly usedAgoMs?: number | undefined
}

/** Describes one backend. `state` is that of this process. */
export function reportBackend(
  { backendId, state, reason, sinceMs, untilMs, isTroubled, failures, lastFailure }: BackendState,
  hour: HourCount,
  usedAgoMs: number | undefined,
  nowMs: number,
): BackendReport {
  const isHeld = state === 'drained' || state === 'quarantined'
  const isOpen = !isHeld && reason !== undefined && reason !== 'drained' && reason !== 'quarantined'
  return {
    id: backendId,
    state: isHeld ? 'closed' : state,
    reason: isOpen ? reason : undefined,
    sinceAgoMs: isOpen && sinceMs !== undefined ? Math.round(nowMs - sinceMs) : undefined,
    untilInMs: isOpen && untilMs !== undefined ? Math.round(untilMs - nowMs) : undefined,
    isTroubled,
    failures,
    last: lastFailure && { outcome: lastFailure.outcome, agoMs: Math.round(nowMs - lastFailure.atMs) },
    hour,
    usedAgoMs: usedAgoMs === undefined ? undefined : Math.round(usedAgoMs),
  }
}

/** The text that is stored. */
export function writeReport(report: NodeReport): string {
  const told = report.backends.filter(
    ({ state, failures, usedAgoMs }) => state !== 'closed' || failures > 0 || usedAgoMs !== undefined,
  )
  const backends = told
    .toSorted((a, b) => Number(a.state === 'closed') - Number(b.state === 'closed'))
    .slice(0, maxBackends)
  const bounded = { form, ...report, backends, ownDown: report.ownDown.slice(0, maxOwnDown) }
  const text = JSON.stringify(bounded)
  return text.length <= maxCharacters ? text : JSON.stringify({ ...bounded, backends: [], ownDown: [] })
}

/** Reads a stored report; undefined if there is none that this version understands. */
export function readReport(text: string | null): NodeReport | undefined {
  const value = text === null ? undefined : parseObject(text)
  return value?.['form'] === form ? (value as unknown as NodeReport) : undefined
}
