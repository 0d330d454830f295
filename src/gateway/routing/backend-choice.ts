import type { RequestRouting } from '../../domain/routing-policy.ts'
import type { Backend } from '../ports.ts'
import { costOf, scoreBackends, type ScoreContext, type ScoredBackend } from './backend-score.ts'
import type { BackendStatistics } from './backend-statistics.ts'

/** A backend that was not called for this long can be tried, although others have better scores. */
const untriedMs = 10_000

/** Scores up to this many times the best one are good. */
const goodFactor = 2

/** A backend with this many unanswered calls, or more if its weight is larger, gets no more while another has fewer. */
const mostUnanswered = 3
/** If the best backend has more, scores up to this many times as bad are good. */
const pressedFactor = 1.5

/** Why one backend is chosen more often than another. */
export interface ChoiceDetails {
  /** Milliseconds; lower is better. */
  readonly score: number
  /** The probability to be asked first, from 0 to 1. */
  readonly share: number
}

/**
 * Chooses among backends that may answer: for the first attempt by weighted power of two choices, afterwards the one
 * with the best score (contract 7.24). Two draws avoid what always choosing the best one causes: all requests at once
 * go to the same backend until its measurements have caught up.
 */
export class BackendChoice {
  readonly #statistics: BackendStatistics
  readonly #context: ScoreContext
  readonly #random: (() => number) | undefined
  #isFirst = true

  /** `random`: numbers from 0 to 1; absent in a dry run, which always gets the best backend. */
  constructor(statistics: BackendStatistics, context: ScoreContext, random: (() => number) | undefined) {
    this.#statistics = statistics
    this.#context = context
    this.#random = random
  }

  /** One of the backends, of which there is at least one. */
  choose(backends: readonly Backend[]): Backend {
    if (backends.length === 1) return backends[0]!
    const random = this.#isFirst ? this.#random : undefined
    this.#isFirst = false
    const scored = this.#scored(backends)
    if (random === undefined) return best(scored).backend
    const trial = this.#statistics.mayTry() ? longestUncalled(scored, this.#context.nowMs - untriedMs) : undefined
    if (trial !== undefined) {
      this.#statistics.tried()
      return trial
    }
    const shares = sharesOf(scored, this.#context)
    return best([draw(scored, shares, random), draw(scored, shares, random)]).backend
  }

  /** Each backend's score, and how likely it is to be asked first if only those in `preferred` can be. */
  explain(backends: readonly Backend[], preferred: readonly Backend[]): ReadonlyMap<string, ChoiceDetails> {
    const details = new Map<string, ChoiceDetails>()
    for (const { backend, score } of scoreBackends(backends, this.#statistics, this.#context))
      details.set(backend.id, { score, share: 0 })
    const scored = this.#scored(preferred)
    const shares = choiceShares(scored, this.#context)
    for (const [index, { backend, score }] of scored.entries())
      details.set(backend.id, { score, share: shares[index]! })
    return details
  }

  /** The backends among which the price leaves a choice, with their scores. */
  #scored(backends: readonly Backend[]): readonly ScoredBackend[] {
    const { routing, promptTokens } = this.#context
    if (routing.sort !== 'price') return this.#answering(scoreBackends(backends, this.#statistics, this.#context))
    const costs = backends.map((backend) => costOf(backend, promptTokens) ?? Infinity)
    const cheapest = Math.min(...costs)
    const chosen = backends.filter((_, index) => costs[index] === cheapest)
    return this.#answering(scoreBackends(chosen, this.#statistics, this.#context))
  }

  /**
   * Those with few unanswered calls. If no backend with a good score has few, the one of these whose unanswered calls
   * are the fewest and the newest. One that has just begun to hang cannot be told from one that takes its usual time, so
   * none gets many calls before it answers one (contract 7.34).
   */
  #answering(scored: readonly ScoredBackend[]): readonly ScoredBackend[] {
    if (scored.length === 1) return scored
    const { unanswered, nowMs } = this.#context
    const share = this.#callShare(scored)
    const good = this.#good(scored, share)
    const answering: ScoredBackend[] = []
    let isGood = false
    let likeliest: ScoredBackend | undefined
    let least = Infinity
    for (const one of scored) {
      const { count = 0, sinceMs = nowMs } = unanswered(one.backend) ?? {}
      const calls = count * share(one.backend)
      if (calls < mostUnanswered) {
        answering.push(one)
        isGood ||= one.score <= good
      } else if (one.score <= good && calls * (nowMs - sinceMs) < least) {
        likeliest = one
        least = calls * (nowMs - sinceMs)
      }
    }
    return isGood ? answering : [likeliest!]
  }

  /** By what to multiply the calls of a backend, so that those of a large one count less. */
  #callShare(scored: readonly ScoredBackend[]): (backend: Backend) => number {
    const { routing } = this.#context
    if (routing.weights === undefined) return () => 1
    const meanWeight = meanOf(scored.map(({ backend }) => weightOf(backend, routing)))
    return (backend) => meanWeight / weightOf(backend, routing)
  }

  /** Scores up to this one are good: its calls make a backend worse, so that others get some before it has many. */
  #good(scored: readonly ScoredBackend[], share: (backend: Backend) => number): number {
    let good = Infinity
    for (const { backend, score } of scored) {
      const calls = (this.#context.unanswered(backend)?.count ?? 0) * share(backend)
      good = Math.min(good, score * Math.min(pressedFactor, Math.max(1, (calls + 1) / mostUnanswered)))
    }
    return good * goodFactor
  }
}

function weightOf({ id }: Backend, { weights }: RequestRouting): number {
  return weights?.[id] ?? 1
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/**
 * How likely each backend is to be drawn. They add up to 1. Proportional to the weights of those with about the best
 * score, so that small differences do not send everything to one backend, and the less the worse the score.
 */
function sharesOf(scored: readonly ScoredBackend[], { routing }: ScoreContext): readonly number[] {
  const good = best(scored).score * goodFactor
  let sum = 0
  const shares: number[] = []
  for (const { backend, score } of scored) {
    const share = weightOf(backend, routing) * Math.min(1, good / score) ** 2
    shares.push(share)
    sum += share
  }
  return shares.map((share) => share / sum)
}

/** The probability of each to be chosen first. */
function choiceShares(scored: readonly ScoredBackend[], context: ScoreContext): readonly number[] {
  const shares = sharesOf(scored, context)
  return scored.map(({ score }, index) => {
    let chosen = shares[index]! ** 2
    for (const [other, { score: otherScore }] of scored.entries()) {
      if (other === index || otherScore < score) continue
      chosen += shares[index]! * shares[other]! * (otherScore === score ? 1 : 2)
    }
    return chosen
  })
}

/** The backend whose last call began first, if it was before this time. */
function longestUncalled(scored: readonly ScoredBackend[], beforeMs: number): Backend | undefined {
  let found: Backend | undefined
  let earliestMs = beforeMs
  for (const { backend, reading } of scored) {
    const { calledMs } = reading
    if (calledMs === undefined || calledMs >= earliestMs) continue
    found = backend
    earliestMs = calledMs
  }
  return found
}

function draw(scored: readonly ScoredBackend[], shares: readonly number[], random: () => number): ScoredBackend {
  let left = random()
  for (const [index, share] of shares.entries()) {
    left -= share
    if (left < 0) return scored[index]!
  }
  return scored.at(-1)!
}

/** The one with the lowest score, the first of equals. */
function best(scored: readonly ScoredBackend[]): ScoredBackend {
  let found = scored[0]!
  for (const candidate of scored) if (candidate.score < found.score) found = candidate
  return found
}
