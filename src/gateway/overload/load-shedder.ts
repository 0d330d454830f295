import { ServiceError } from '../../domain/errors.ts'
import { type EventLog, type ShedLoad, shedLoads } from '../../domain/events.ts'
import type { Plan } from '../../domain/plans.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'

/** How often the delay of the event loop is sampled, and how often the level changes because of it. */
const sampleMs = 250
const samplesPerStep = 8
/** The event loop is overloaded if timers are this late on average, and no longer if they are less late than half of it. */
const lateMs = 200
/** A sample counts as at most this late, so that a single pause of the process is no overload. */
const mostLateMs = 500

/**
 * The open requests at which each level begins, as a share of their limit. A single account gets at most four fifths of
 * the limit, so it cannot reach the first one alone (contract 29.2).
 */
const openShares = [0.85, 0.9, 0.95, 0.9625, 0.975, 0.9875]
const mostLevel = openShares.length
/** The levels at which each kind of load is shed. From there on, each level sheds another quarter of the free plan. */
const levelOf: Readonly<Record<ShedLoad, number>> = { retries: 1, fusion: 2, free_plan: 3 }

export interface LoadShedderDeps {
  readonly clock: Clock
  /** From 0 to 1. Need not be unguessable. */
  readonly random: () => number
  readonly log: EventLog
}

/**
 * Rejects some of the load while this process has more than it can do: first retries, then fusion, then the free plan,
 * and nothing else (contract 41.1, 41.3). The level rises by one every 2 s while the event loop is late, and at once with the
 * open requests. It falls by one every 2 s.
 */
export class LoadShedder implements Disposable {
  readonly #deps: LoadShedderDeps
  #level = 0
  #openShare: () => number = () => 0
  #timer: Timer | undefined
  #samples = 0
  #lateSumMs = 0

  constructor(deps: LoadShedderDeps) {
    this.#deps = deps
  }

  /** Starts to watch this process. `openShare`: the open requests as a share of their limit. */
  start(openShare: () => number): void {
    this.#openShare = openShare
    this.#sampleLater()
  }

  [Symbol.dispose](): void {
    this.#timer?.cancel()
  }

  sheds(kind: ShedLoad): boolean {
    return this.#level >= levelOf[kind]
  }

  /**
   * Rejects a request that is shed, before it costs anything. `isRetry`: the client has sent it before.
   * @throws ServiceError `load_shed`
   */
  assertAccepted({ premium, name }: Pick<Plan, 'premium' | 'name'>, isRetry: boolean): void {
    if (this.#level === 0) return
    if (isRetry) throw this.rejection('retries', 'retries')
    const shedQuarters = this.#level - levelOf.free_plan + 1
    if (!premium && this.#deps.random() * 4 < shedQuarters)
      throw this.rejection('free_plan', `requests on the ${name} plan`)
  }

  /** The error for what is shed. `what` names it in the message. */
  rejection(kind: ShedLoad, what: string): ServiceError {
    const seconds = ((this.#level - levelOf[kind] + 1) * samplesPerStep * sampleMs) / 1_000
    return new ServiceError('load_shed', { retryAfterSeconds: seconds, words: { what, seconds } })
  }

  #sampleLater(): void {
    const { clock } = this.#deps
    const dueMs = clock.monotonicMs() + sampleMs
    this.#timer = clock.after(sampleMs, () => {
      this.#sample(clock.monotonicMs() - dueMs)
      this.#sampleLater()
    })
  }

  #sample(delayMs: number): void {
    this.#samples += 1
    this.#lateSumMs += Math.min(mostLateMs, Math.max(0, delayMs))
    const openShare = this.#openShare()
    const least = openShares.filter((share) => openShare >= share).length
    let next = Math.max(this.#level, least)
    if (this.#samples === samplesPerStep) {
      const meanMs = this.#lateSumMs / samplesPerStep
      if (meanMs >= lateMs) next = Math.min(mostLevel, next + 1)
      else if (meanMs < lateMs / 2 && next > least) next -= 1
      this.#samples = 0
      this.#lateSumMs = 0
    }
    this.#setLevel(next, Math.round(delayMs), openShare)
  }

  #setLevel(level: number, delayMs: number, openShare: number): void {
    const before = shedLoads.filter((kind) => this.sheds(kind))
    this.#level = level
    const now = shedLoads.filter((kind) => this.sheds(kind))
    if (now.length === before.length) return
    this.#deps.log({ event: 'load_shedding', sheds: now, eventLoopDelayMs: delayMs, openShare: roundShare(openShare) })
  }
}

function roundShare(share: number): number {
  return Math.round(share * 100) / 100
}
