import { addAmounts, type Amounts, nanoPerUsd, noAmounts } from '../../domain/budgets.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { RequestOutcome } from '../../domain/requests.ts'
import { costOf } from '../../domain/token-price.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import type { Backend, CallGrant, HeldBudgets } from '../ports.ts'
import { dearestCost, inNanodollars, type PricedCall } from './dearest-cost.ts'
import { withinWindow } from './request-claim.ts'

/** What a request with budgets may cost, and what its budgets hold for it. */
interface HeldRequest extends Pick<PricedCall, 'tier' | 'searches'> {
  readonly nowMs: () => number
  /** Everything that is held at admission. */
  readonly amounts: Amounts
  /** The most input tokens, and the output limit, of one call. */
  readonly inputTokens: number
  readonly outputTokens: number
  /** The same, if budgets set that limit rather than the request. */
  readonly limitOfBudgets: number | undefined
  /** Whether a budget is in US dollars: then no backend without a known price is called. */
  readonly inUsd: boolean
  /** Answers per call. */
  readonly answers: number
}

interface OpenCall {
  readonly backend: Backend
  readonly atMs: number
  readonly worst: Amounts
}

/**
 * Makes sure that the upstream calls of one request never cost more than its budgets hold for it (contract 46.3): each call
 * needs its worst case, from what is held and not used, or from the budgets.
 */
export class RequestSpending {
  readonly #held: HeldBudgets
  readonly #request: HeldRequest
  /** Held, and not needed by any call. */
  #left: Amounts
  readonly #calls: OpenCall[] = []

  constructor(held: HeldBudgets, request: HeldRequest) {
    this.#held = held
    this.#request = request
    this.#left = request.amounts
  }

  /** The output limit of each call. */
  get outputTokens(): number {
    return this.#request.outputTokens
  }

  get limitOfBudgets(): number | undefined {
    return this.#request.limitOfBudgets
  }

  /**
   * What the request has spent: what its calls cost, and the worst case of calls whose cost is unknown (contract 46.5).
   */
  spent(outcome: RequestOutcome): Amounts {
    const { usage, fusions } = outcome
    if (usage === undefined) return sumOf(this.#calls)
    const tokens = usage.inputTokens + usage.outputTokens
    if (fusions !== undefined) {
      const usd = fusionUsd(outcome)
      return { nanoUsd: usd === undefined ? sumOf(this.#calls).nanoUsd : Math.ceil(usd * nanoPerUsd), tokens }
    }
    const answered = outcome.attempts.at(-1)?.backend
    const at = this.#calls.findLastIndex(({ backend }) => backend.id === answered)
    const call = this.#calls[at]
    if (call === undefined) return sumOf(this.#calls)
    const cost = costOf(usage, call.backend.price?.at(call.atMs))
    const nanoUsd = cost === undefined ? call.worst.nanoUsd : inNanodollars(cost)
    return addAmounts({ nanoUsd, tokens }, sumOf(this.#calls.toSpliced(at, 1)))
  }

  /** A grant that also takes the worst case of each call. */
  grant(given: CallGrant): CallGrant {
    return (backend, inputTokens) => {
      const granted = given(backend, inputTokens)
      return granted instanceof Promise
        ? granted.then(() => this.#begin(backend, inputTokens))
        : this.#begin(backend, inputTokens)
    }
  }

  /** A call has ended, answered or with an error. What its provider did not begin to answer costs nothing. */
  ended({ id }: { readonly id: string }, error: unknown): void {
    if (!(error instanceof UpstreamError) || !unbilled.has(error.outcome)) return
    const at = this.#calls.findIndex(({ backend }) => backend.id === id)
    if (at < 0) return
    const [call] = this.#calls.splice(at, 1)
    this.#left = addAmounts(this.#left, call!.worst)
  }

  /** @throws UpstreamError `not_sent` if the budgets do not allow the call */
  #begin(backend: Backend, inputTokens = this.#request.inputTokens): void | Promise<void> {
    const worst = this.#worstOf(backend, inputTokens)
    const nanoUsd = Math.max(0, worst.nanoUsd - this.#left.nanoUsd)
    const tokens = Math.max(0, worst.tokens - this.#left.tokens)
    this.#left = {
      nanoUsd: Math.max(0, this.#left.nanoUsd - worst.nanoUsd),
      tokens: Math.max(0, this.#left.tokens - worst.tokens),
    }
    this.#calls.push({ backend, atMs: this.#request.nowMs(), worst })
    if (nanoUsd > 0 || tokens > 0) return this.#takeMore(worst, { nanoUsd, tokens })
  }

  async #takeMore(worst: Amounts, missing: Amounts): Promise<void> {
    const taken = await this.#held.more(missing).catch((cause: unknown) => {
      throw new ServiceError('record_unavailable', { retryAfterSeconds: 1, cause })
    })
    if (taken) return
    this.#calls.splice(
      this.#calls.findIndex((call) => call.worst === worst),
      1,
    )
    this.#left = addAmounts(this.#left, {
      nanoUsd: worst.nanoUsd - missing.nanoUsd,
      tokens: worst.tokens - missing.tokens,
    })
    throw new UpstreamError('not_sent')
  }

  #worstOf(backend: Backend, inputTokens: number): Amounts {
    const { outputTokens, answers, inUsd, tier, searches, nowMs } = this.#request
    const input = withinWindow(inputTokens, backend)
    const cost = dearestCost(backend, { inputTokens: input, tier, searches, atMs: nowMs() })
    if (cost === undefined && inUsd) throw new UpstreamError('not_sent')
    return {
      nanoUsd: cost === undefined ? 0 : cost.input + cost.perOutputToken * outputTokens * answers,
      tokens: input + outputTokens * answers,
    }
  }
}

function sumOf(calls: readonly OpenCall[]): Amounts {
  return calls.reduce((sum, { worst }) => addAmounts(sum, worst), noAmounts)
}

/** What a fusion cost in US dollars; undefined if that is unknown. */
function fusionUsd({ fusions = [] }: RequestOutcome): number | undefined {
  let sum = 0
  for (const { costUsd } of fusions) {
    if (costUsd === undefined) return undefined
    sum += costUsd
  }
  return sum
}

/** Outcomes of calls that no provider has begun to answer, and so bills nothing for. */
const unbilled: ReadonlySet<string> = new Set([
  'rejected_credentials',
  'rejected_content',
  'context_too_long',
  'not_capable',
  'not_found',
  'not_sent',
  'rate_limited',
  'unreachable',
])
