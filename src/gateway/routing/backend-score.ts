import type { RequestRouting } from '../../domain/routing-policy.ts'
import type { Backend } from '../ports.ts'
import type { BackendReading, BackendStatistics } from './backend-statistics.ts'
import { priorMsOf, type PromptKind } from './prompt-kind.ts'
import type { SlowCalls } from './slow-calls.ts'

/** How much a price weighs against speed: 0 not at all, 1 as much. */
const priceExponent = 0.3
/** A load of all calls that a backend is assumed to take makes it as bad as one that is three times as slow. */
const loadFactor = 2
/** Each failure since the last success makes a backend as bad as one that is this many times as slow, up to a limit. */
const failureFactor = 4
const mostFailures = 4
/** Output tokens of a typical answer, for comparing prices. */
const usualOutputTokens = 500
/** Added to all prices, US dollars per million tokens, so that a free backend does not outweigh everything else. */
const priceFloor = 0.1

/** What choosing depends on besides the backends. */
export interface ScoreContext {
  readonly routing: RequestRouting
  readonly kind: PromptKind
  /** Approximate tokens of the prompt. */
  readonly promptTokens: number
  readonly nowMs: number
  /** The calls of a backend that were begun after the newest one that was answered in time; undefined if it had none. */
  readonly unanswered: (backend: Backend) => Pick<SlowCalls, 'count' | 'sinceMs'> | undefined
}

/** A backend with its score: the lower, the better. */
export interface ScoredBackend {
  readonly backend: Backend
  readonly score: number
  readonly reading: BackendReading
}

/**
 * The score of each backend, in milliseconds: its expected time to first content, multiplied for load, errors, and
 * price, and divided by its weight (contract 7.24). An unmeasured backend counts as the fastest measured one, so that it
 * is tried soon.
 */
export function scoreBackends(
  backends: readonly Backend[],
  statistics: BackendStatistics,
  context: ScoreContext,
): readonly ScoredBackend[] {
  const { routing, kind, promptTokens, nowMs } = context
  let fastestMs = Infinity
  let cheapest = Infinity
  let highest = 0
  const readings: BackendReading[] = []
  const costs: (number | undefined)[] = []
  for (const backend of backends) {
    const reading = statistics.read(backend.id, kind, nowMs)
    readings.push(reading)
    if (reading.firstContentMs !== undefined && reading.firstContentMs < fastestMs) fastestMs = reading.firstContentMs
    const cost = routing.sort === 'latency' ? undefined : costOf(backend, promptTokens)
    costs.push(cost)
    if (cost === undefined) continue
    cheapest = Math.min(cheapest, cost)
    highest = Math.max(highest, cost)
  }
  if (fastestMs === Infinity) fastestMs = priorMsOf(kind)
  return backends.map((backend, index) => {
    const reading = readings[index]!
    const { inFlight, limit, errorRate, failuresInARow, firstContentMs = fastestMs } = reading
    // A backend without a price counts as the most expensive one.
    const price = cheapest === Infinity ? 1 : ((costs[index] ?? highest) / cheapest) ** priceExponent
    const load = loadOf(inFlight, limit)
    const failing = failureFactor ** Math.min(failuresInARow, mostFailures)
    const score = (Math.max(1, firstContentMs) * load * price * failing) / (1 - errorRate) ** 2
    return { backend, score, reading }
  })
}

/** How many times longer a backend is expected to take because of the calls that are open. */
export function loadOf(inFlight: number, limit: number): number {
  return 1 + (loadFactor * inFlight) / limit
}

/** The expected price of an answer, for comparison; undefined if the backend's prices are unknown. */
export function costOf({ usdPerMillion }: Backend, promptTokens: number): number | undefined {
  if (usdPerMillion === undefined) return undefined
  const { input, output } = usdPerMillion
  return (input + priceFloor) * promptTokens + (output + priceFloor) * usualOutputTokens
}
