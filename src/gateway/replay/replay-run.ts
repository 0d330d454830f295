import type { Usage } from '../../domain/conversation.ts'
import { usageCostUsd, type FindPrice } from '../../domain/request-cost.ts'
import type { RequestRouting } from '../../domain/routing-policy.ts'
import { hashText, seededRandom } from '../fusion/engine/seeded-random.ts'
import type { Backend } from '../ports.ts'
import { BackendStatistics } from '../routing/backend-statistics.ts'
import { CircuitBreakers } from '../routing/circuit-breakers.ts'
import { HedgeBudget } from '../routing/hedge-budget.ts'
import { typicalTokens } from '../routing/prompt-kind.ts'
import { RetryBudget } from '../routing/retry-budget.ts'
import { EventQueue } from './event-queue.ts'
import { observationsOf, type Observation, type Observations, type Position } from './observations.ts'
import { ReplayedRequest, type ReplayedOutcome, type ReplayWorld } from './replayed-request.ts'
import type { ReplayableRecord } from './select-records.ts'

/** How requests are routed: the requirements and the choice, and the backends that serve an account. */
export interface ReplayPolicy {
  readonly routing: RequestRouting
  /** Without those that do not meet a requirement; possibly none. */
  readonly backendsFor: (accountId: string) => readonly Backend[]
}

/** The result of one request of a run. */
export interface RunOutcome {
  /** No answer, or one that broke off. */
  readonly failed: boolean
  /** Milliseconds; undefined without an answer. */
  readonly firstContentMs: number | undefined
  /** US dollars; undefined if it is unknown. */
  readonly costUsd: number | undefined
  readonly calls: number
  /** The backend that answered. */
  readonly backend: string | undefined
}

export interface UnseenCall {
  readonly backend: string
  readonly kind: number
  readonly position: Position
}

interface Borrowed {
  calls: number
  readonly results: Set<Observation>
}

/**
 * Replays records once under one policy. The same seed gives a call of a request to a backend the same result under
 * every policy, so that policies are compared on common random numbers.
 */
export class ReplayRun {
  /** By index of the record; undefined if a call's result is unknown. */
  readonly outcomes: (RunOutcome | undefined)[] = []
  readonly unseen: UnseenCall[] = []
  /** By backend: calls that got the results of other requests, and which results those were. */
  readonly borrowed = new Map<string, Borrowed>()
  /** The most calls that were open at the same time, by backend. */
  readonly openCalls = new Map<string, number>()
  readonly #records: readonly ReplayableRecord[]
  readonly #observations: Observations
  readonly #policy: ReplayPolicy
  readonly #seed: number
  readonly #priceOf: FindPrice
  readonly #world: ReplayWorld

  constructor(
    records: readonly ReplayableRecord[],
    observations: Observations,
    policy: ReplayPolicy,
    { seed, priceOf }: { readonly seed: number; readonly priceOf: FindPrice },
  ) {
    this.#records = records
    this.#observations = observations
    this.#policy = policy
    this.#seed = seed
    this.#priceOf = priceOf
    const clock = new EventQueue(records[0]?.record.admittedAtMs ?? 0)
    const random = seededRandom(seed)
    this.#world = {
      clock,
      random,
      breakers: new CircuitBreakers({ clock, random, log: () => {} }),
      statistics: new BackendStatistics(clock),
      budget: new RetryBudget(clock),
      hedges: new HedgeBudget(),
    }
  }

  run(): this {
    const { clock } = this.#world
    for (const [index, { record }] of this.#records.entries()) {
      this.outcomes.push(undefined)
      clock.at(record.admittedAtMs, () => this.#start(index))
    }
    clock.run()
    return this
  }

  #start(index: number): void {
    const { record, kind } = this.#records[index]!
    const { accountId, stream, usage } = record
    const own = observationsOf(record, kind)
    new ReplayedRequest({
      world: this.#world,
      accountId,
      kind,
      stream,
      promptTokens: usage?.inputTokens ?? typicalTokens(kind),
      routing: this.#policy.routing,
      backends: this.#policy.backendsFor(accountId),
      resultOf: (backend, position) => this.#resultOf(index, own, backend, position),
      onEnd: (outcome) => {
        if (outcome.unseen === undefined) this.outcomes[index] = this.#outcomeOf(outcome, usage)
        else this.unseen.push({ ...outcome.unseen, kind })
      },
    }).start()
  }

  /** A request that was asked at this backend has its own result there; otherwise it borrows one. */
  #resultOf(index: number, own: readonly Observation[], backend: string, position: Position): Observation | undefined {
    const { kind } = this.#records[index]!
    const { clock, statistics } = this.#world
    const { inFlight } = statistics.read(backend, kind, clock.monotonicMs())
    this.openCalls.set(backend, Math.max(inFlight, this.openCalls.get(backend) ?? 0))
    const ownResult = own.find((one) => one.backend === backend)
    if (ownResult !== undefined && ownResult.outcome !== 'cancelled') return ownResult
    const random = seededRandom(hashText(`${this.#seed} ${index} ${backend}`))
    const call = { backend, kind, position: ownResult?.position ?? position, atMs: clock.nowMs() }
    const found = this.#observations.draw(call, random, ownResult?.ms)
    if (found !== undefined) this.#borrow(found)
    return found
  }

  #borrow(result: Observation): void {
    const known = this.borrowed.get(result.backend)
    if (known === undefined) this.borrowed.set(result.backend, { calls: 1, results: new Set([result]) })
    else {
      known.calls += 1
      known.results.add(result)
    }
  }

  #outcomeOf(outcome: ReplayedOutcome, usage: Usage | undefined): RunOutcome {
    const { answer, firstContentMs, calls } = outcome
    return {
      failed: answer === undefined || answer.isBroken,
      firstContentMs: answer === undefined ? undefined : firstContentMs,
      costUsd: this.#costOf(outcome, usage),
      calls,
      backend: answer?.backend,
    }
  }

  /** As many tokens as recorded, of which the share is cached that was cached for the call that gave the result. */
  #costOf({ answer, aborted }: ReplayedOutcome, recorded: Usage | undefined): number | undefined {
    if (answer === undefined) return 0
    const usage = recorded ?? answer.usage
    const price = this.#priceOf(answer.backend)
    if (usage === undefined || price === undefined) return undefined
    const { inputTokens = 0, cachedTokens = 0 } = answer.usage ?? {}
    const cached = inputTokens === 0 ? 0 : (cachedTokens / inputTokens) * usage.inputTokens
    let cost = usageCostUsd(price, { ...usage, cachedTokens: cached })
    for (const backend of aborted) {
      const abortedPrice = this.#priceOf(backend)
      if (abortedPrice === undefined) return undefined
      cost += (abortedPrice.input * usage.inputTokens) / 1_000_000
    }
    return cost
  }
}
