import { addAmounts, type Amounts, noAmounts, subtractAmounts } from '../../domain/budgets.ts'
import type { Usage } from '../../domain/conversation.ts'
import { ServiceError } from '../../domain/errors.ts'
import { inNanodollars, type Picodollars } from '../../domain/money.ts'
import { costOf } from '../../domain/token-price.ts'
import { type Attempt, mayBeBilled, UpstreamError } from '../../domain/upstream.ts'
import type { Backend, CallGrant, HeldBudgets } from '../ports.ts'
import type { CallBill, CutAnswer } from './call-bill.ts'
import { highestCost, possibleTiers, type PricedCall } from './highest-cost.ts'
import { inputAt, type InputBound, mediaAt } from './input-bound.ts'
import type { RefusedCall } from './refused-call.ts'

/** What a request with budgets may cost, and what its budgets hold for it. */
interface HeldRequest extends Pick<PricedCall, 'tier' | 'searches' | 'isAudioFree'> {
  readonly nowMs: () => number
  readonly monotonicMs: () => number
  /** Everything that is held at admission. */
  readonly amounts: Amounts
  /** The most input, and the output limit, of one call. */
  readonly input: InputBound
  readonly outputTokens: number
  /** The same, if budgets set that limit rather than the request. */
  readonly limitOfBudgets: number | undefined
  /** Whether a budget is in US dollars: then no backend without a known price is called. */
  readonly inUsd: boolean
  /** Answers per call. */
  readonly answers: number
  /** The error of a request whose budgets cannot pay for a further call. */
  readonly refusalOf?: ((call: RefusedCall) => Promise<ServiceError | undefined>) | undefined
}

interface OpenCall {
  readonly backend: Backend
  readonly input: InputBound
  readonly bill: CallBill
  readonly worst: Amounts
  /** What it took of the worst case until now: all of it, unless the budgets are still asked for the rest. */
  held: Amounts
  /** Of the worst case: nanodollars for each token of its output. */
  readonly nanoPerToken: number
  /** Monotonic milliseconds. */
  readonly startedMs: number
  endedMs: number | undefined
}

/** Faster than any provider writes one answer. */
const fastestTokensPerSecond = 3_000
/** As fast as the models of the large providers reason. */
const usualTokensPerSecond = 200
/** How long a provider may take to notice that nobody reads its stream any more. */
const stopsWithinMs = 2_000

/**
 * Makes sure that the upstream calls of one request never cost more than its budgets hold for it (contract 46.3): each call
 * needs its worst case, from what is held and not used, or from the budgets.
 */
export class RequestSpending {
  readonly #held: HeldBudgets
  readonly #request: HeldRequest
  /** Held, and not needed by any call. */
  #left: Amounts
  /** Everything that it holds. */
  #all: Amounts
  /** What the last call could cost for which the budgets could not pay. */
  #refused: Amounts | undefined
  readonly #calls: OpenCall[] = []
  /** Calls that ended, perhaps before they were granted. */
  readonly #ended = new Set<CallBill>()

  constructor(held: HeldBudgets, request: HeldRequest) {
    this.#held = held
    this.#request = request
    this.#left = request.amounts
    this.#all = request.amounts
  }

  /** The output limit of each call. */
  get outputTokens(): number {
    return this.#request.outputTokens
  }

  get limitOfBudgets(): number | undefined {
    return this.#request.limitOfBudgets
  }

  /**
   * What the request has spent (contract 46.5): what its calls cost, as its record says (42.8), and of calls whose cost is
   * unknown, the most that it can be.
   */
  spent(): Amounts {
    let cost = 0n
    let sum = noAmounts
    for (const call of this.#calls) {
      const { usage, hasContent, cut, isFree } = call.bill
      if (isFree) continue
      // A provider that counts its reasoning while it writes has said what a stream costs before its content.
      const isKnown = hasContent || usage?.source === 'counted' || cut?.countsReasoning === true
      if (usage === undefined || !isKnown) {
        sum = addAmounts(sum, this.#mostOf(call))
        continue
      }
      const used = this.#usedBy(call, usage)
      const amount = amountOf(call.bill, used)
      if (amount !== undefined) cost += amount
      const nanoUsd = amount === undefined ? call.worst.nanoUsd : 0
      sum = addAmounts(sum, { nanoUsd, tokens: used.inputTokens + used.outputTokens })
    }
    return addAmounts(sum, { nanoUsd: inNanodollars(cost), tokens: 0 })
  }

  /** A grant that also takes the worst case of each call. */
  grant(given: CallGrant): CallGrant {
    return (backend, input, bill) => {
      const granted = given(backend, input, bill)
      return granted instanceof Promise
        ? granted.then(() => this.#begin(backend, input, bill))
        : this.#begin(backend, input, bill)
    }
  }

  refusal(attempts: readonly Attempt[]): Promise<ServiceError | undefined> | undefined {
    const worst = this.#refused
    return worst && this.#request.refusalOf?.({ worst, held: this.#all, spent: this.spent(), attempts })
  }

  /** A call has ended, answered or with an error. One that its provider rejected or did not get costs nothing. */
  ended(bill: CallBill, error: unknown): void {
    this.#ended.add(bill)
    const call = this.#calls.find((one) => one.bill === bill)
    if (call === undefined) return
    call.endedMs = this.#request.monotonicMs()
    if (!bill.isAccepted && (bill.isFree || isUnbilled(error))) this.#drop(call)
  }

  /** @throws UpstreamError `not_sent` if the budgets do not allow the call */
  #begin(backend: Backend, input = this.#request.input, bill: CallBill): void | Promise<void> {
    if (this.#ended.has(bill)) throw new UpstreamError('not_sent')
    // The call was granted before, and is checked once more.
    if (this.#calls.some((call) => call.bill === bill)) return undefined
    const { worst, nanoPerToken } = this.#worstOf(backend, input)
    const held = {
      nanoUsd: Math.min(worst.nanoUsd, this.#left.nanoUsd),
      tokens: Math.min(worst.tokens, this.#left.tokens),
    }
    this.#left = subtractAmounts(this.#left, held)
    const { monotonicMs } = this.#request
    const call = { backend, input, bill, worst, held, nanoPerToken, startedMs: monotonicMs(), endedMs: undefined }
    this.#calls.push(call)
    if (held.nanoUsd < worst.nanoUsd || held.tokens < worst.tokens) return this.#takeMore(call)
  }

  /**
   * The most that a call can cost of which no content arrived. Providers stop writing a stream soon after nobody reads it, so
   * its output is also limited by the time that it took.
   */
  #mostOf({ bill, worst, nanoPerToken, startedMs, endedMs }: OpenCall): Amounts {
    const { outputTokens, answers, monotonicMs } = this.#request
    if (!bill.isStream) return worst
    const writingMs = (endedMs ?? monotonicMs()) - startedMs + stopsWithinMs
    const written = Math.ceil((writingMs * fastestTokensPerSecond) / 1_000)
    const unwritten = Math.max(0, outputTokens - written) * answers
    return { nanoUsd: worst.nanoUsd - nanoPerToken * unwritten, tokens: worst.tokens - unwritten }
  }

  /**
   * What counts as the usage of a call (contract 46.5). An estimate of an answer that broke off has its media at their largest
   * sizes, and the reasoning that the model may not have shown: otherwise, a client that always leaves early would pay for
   * nearly nothing of them.
   */
  #usedBy({ bill, backend, input, startedMs, endedMs }: OpenCall, usage: Usage): Usage {
    const { cut } = bill
    if (cut === undefined) return usage
    const { outputTokens, answers, monotonicMs } = this.#request
    const media = cut.hasInput ? 0 : mediaAt(input, backend) - input.usualMedia
    const reasonedMs = mayReason(backend, cut) ? (endedMs ?? monotonicMs()) - startedMs : 0
    const written = usage.outputTokens + Math.ceil((reasonedMs * usualTokensPerSecond) / 1_000)
    const limit = Math.max(usage.outputTokens, outputTokens * answers)
    return {
      ...usage,
      inputTokens: Math.max(usage.inputTokens, Math.min(usage.inputTokens + media, inputAt(input, backend))),
      outputTokens: Math.min(written, limit),
    }
  }

  /** Takes the rest of a call's worst case from the budgets. The call may end meanwhile. */
  async #takeMore(call: OpenCall): Promise<void> {
    const missing = subtractAmounts(call.worst, call.held)
    let taken = false
    try {
      taken = await this.#held.more(missing)
    } catch (cause) {
      throw new ServiceError('record_unavailable', { retryAfterSeconds: 1, cause })
    } finally {
      if (taken) this.#all = addAmounts(this.#all, missing)
      if (!taken) this.#drop(call)
      else if (this.#calls.includes(call)) call.held = call.worst
      else this.#left = addAmounts(this.#left, missing)
    }
    if (taken) return
    this.#refused = call.worst
    throw new UpstreamError('not_sent')
  }

  /** A call that is not sent, or for which nothing is due: others can use what it held. */
  #drop(call: OpenCall): void {
    const at = this.#calls.indexOf(call)
    if (at < 0) return
    this.#calls.splice(at, 1)
    this.#left = addAmounts(this.#left, call.held)
  }

  #worstOf(backend: Backend, bound: InputBound): { readonly worst: Amounts; readonly nanoPerToken: number } {
    const { outputTokens, answers, inUsd, tier, searches, isAudioFree, nowMs } = this.#request
    const input = inputAt(bound, backend)
    const cost = highestCost(backend, { inputTokens: input, tier, searches, isAudioFree, atMs: nowMs() })
    if (cost === undefined && inUsd) throw new UpstreamError('not_sent')
    const nanoPerToken = cost?.perOutputToken ?? 0
    const output = outputTokens * answers
    return {
      worst: { nanoUsd: (cost?.input ?? 0) + nanoPerToken * output, tokens: input + output },
      nanoPerToken,
    }
  }
}

/** Whether a model may reason uncounted for a request. In the Messages format, it only does so if it is asked to. */
function mayReason({ capabilities, format }: Backend, { effort, countsReasoning }: CutAnswer): boolean {
  if (capabilities?.reasoning !== true || effort === 'none' || countsReasoning) return false
  return effort !== undefined || format !== 'anthropic-messages'
}

/** What a usage costs. If an estimate has no service tier, the most expensive one that the provider may bill counts. */
function amountOf({ price, hasTier }: CallBill, usage: Usage): Picodollars | undefined {
  let highest = costOf(usage, price)
  if (hasTier || usage.source === 'counted' || price === undefined) return highest
  for (const serviceTier of possibleTiers(undefined, price)) {
    const amount = serviceTier === undefined ? undefined : costOf({ ...usage, serviceTier }, price)
    if (highest !== undefined && amount !== undefined && amount > highest) highest = amount
  }
  return highest
}

function isUnbilled(error: unknown): boolean {
  return error instanceof UpstreamError && !mayBeBilled(error)
}
