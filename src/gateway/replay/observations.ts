import type { Usage } from '../../domain/conversation.ts'
import type { UnseenReason } from '../../domain/replay.ts'
import { brokenBackend, type RequestRecord } from '../../domain/requests.ts'
import { blameOf, type Attempt, type AttemptOutcome } from '../../domain/upstream.ts'
import type { PromptKind } from '../routing/prompt-kind.ts'

/** An observation stands for calls at most this long before and after it. */
const windowMs = 120_000
/** A call gets the result of one of this many observations, the nearest ones in time. */
const nearest = 5
/** An observation that was cut short is continued by another one, at most this often. */
const mostContinued = 5

/** `first`: the backend was the first choice of its request. `later`: it was asked after or beside another one. */
export type Position = 'first' | 'later'

/** What one backend did with one recorded call. */
export interface Observation {
  readonly backend: string
  readonly kind: PromptKind
  readonly position: Position
  readonly atMs: number
  readonly outcome: AttemptOutcome
  readonly status: number | undefined
  /** To its first content, or to its failure. If it was cut short, the time it was waited for. */
  readonly ms: number
  /** From its first content to its end. */
  readonly restMs: number
  /** Whether the answer broke off after its first content. */
  readonly isBroken: boolean
  readonly usage: Usage | undefined
}

/** The calls of a record that show something of their backends: not those that failed because of the request. */
export function observationsOf(record: RequestRecord, kind: PromptKind): readonly Observation[] {
  const found: Observation[] = []
  const broken = brokenBackend(record)
  const last = record.attempts.at(-1)
  const restMs = Math.max(0, record.totalMs - (record.firstContentMs ?? record.totalMs))
  let atMs = record.admittedAtMs
  for (const [index, attempt] of record.attempts.entries()) {
    const { backend, outcome, status, ms, hedge } = attempt
    const startMs = atMs
    if (hedge !== true && outcome !== 'cancelled') atMs += ms
    // A backend that was asked again at once counts as one call.
    const isRepeated = record.attempts[index + 1]?.backend === backend
    if (isRepeated || !showsBackend(attempt, record)) continue
    const isAnswer = attempt === last && outcome === 'answered'
    const isFirst =
      hedge !== true && record.attempts.slice(0, index).every((one) => one.hedge === true || one.backend === backend)
    found.push({
      backend,
      kind,
      position: isFirst ? 'first' : 'later',
      atMs: startMs,
      outcome,
      status,
      ms,
      restMs: isAnswer ? restMs : 0,
      isBroken: isAnswer ? broken === backend : outcome === 'answered',
      usage: isAnswer ? record.usage : undefined,
    })
  }
  return found
}

/** A call that lost against a faster one shows that it took longer; one that the client ended shows nothing. */
function showsBackend({ outcome }: Attempt, { errorCode, attempts }: RequestRecord): boolean {
  if (outcome === 'answered') return true
  if (outcome === 'cancelled') return errorCode !== 'client_closed' && attempts.at(-1)?.outcome === 'answered'
  return blameOf(outcome) === 'backend'
}

/** Observed calls by backend and kind of request, from which calls that were not made get their results. */
export class Observations {
  readonly #all = new Map<string, Observation[]>()
  readonly #first = new Map<string, Observation[]>()

  /** `observations` in any order. */
  constructor(observations: readonly Observation[]) {
    for (const one of observations.toSorted((a, b) => a.atMs - b.atMs)) {
      const key = keyOf(one.backend, one.kind)
      add(this.#all, key, one)
      if (one.position === 'first') add(this.#first, key, one)
    }
  }

  /**
   * The result of a call: that of a random one of the nearest observations in time. As the first choice of a request
   * only first choices count, because a backend that others fail before is asked at special times. Undefined if there
   * is none.
   */
  draw(
    call: { readonly backend: string; readonly kind: PromptKind; readonly position: Position; readonly atMs: number },
    random: () => number,
    longerThanMs = -1,
  ): Observation | undefined {
    const pool = (call.position === 'first' ? this.#first : this.#all).get(keyOf(call.backend, call.kind)) ?? []
    let least = longerThanMs
    for (let count = 0; count < mostContinued; count++) {
      const near = nearestOf(pool, call.atMs, least)
      const found = near[Math.floor(random() * near.length)]
      if (found === undefined || found.outcome !== 'cancelled') return found
      least = Math.max(least, found.ms)
    }
    return undefined
  }

  /** Why there is no result for a call. */
  whyUnseen(backend: string, kind: PromptKind, position: Position): UnseenReason {
    const key = keyOf(backend, kind)
    if (!this.#all.has(key)) return 'never'
    return position === 'first' && !this.#first.has(key) ? 'only_after_failures' : 'not_then'
  }
}

function keyOf(backend: string, kind: PromptKind): string {
  return `${kind} ${backend}`
}

function add(map: Map<string, Observation[]>, key: string, one: Observation): void {
  const list = map.get(key)
  if (list === undefined) map.set(key, [one])
  else list.push(one)
}

/** The nearest observations in time, within the window, that took longer than a time. The pool is sorted by time. */
function nearestOf(pool: readonly Observation[], atMs: number, longerThanMs: number): readonly Observation[] {
  let after = firstFrom(pool, atMs)
  let before = after - 1
  const found: Observation[] = []
  while (found.length < nearest) {
    const earlier = pool[before]
    const later = pool[after]
    const earlierMs = earlier === undefined ? Infinity : atMs - earlier.atMs
    const laterMs = later === undefined ? Infinity : later.atMs - atMs
    if (Math.min(earlierMs, laterMs) > windowMs) break
    const one = earlierMs <= laterMs ? pool[before--]! : pool[after++]!
    if (one.ms > longerThanMs) found.push(one)
  }
  return found
}

/** The index of the first observation at or after a time. */
function firstFrom(pool: readonly Observation[], atMs: number): number {
  let [low, high] = [0, pool.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (pool[middle]!.atMs < atMs) low = middle + 1
    else high = middle
  }
  return low
}
