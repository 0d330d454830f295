import type { Conversation, Sampling, Usage } from '../../domain/conversation.ts'
import { withDeliveredOutput } from '../../domain/estimate-tokens.ts'
import { type Picodollars, writeDollars } from '../../domain/money.ts'
import {
  addCosts,
  type CostRecord,
  costRecord,
  type PossibleCost,
  type RequestCost,
  unknownCost,
} from '../../domain/request-cost.ts'
import { cacheSavings, costOf, type TokenPrice } from '../../domain/token-price.ts'
import { type Attempt, mayBeBilled } from '../../domain/upstream.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { CallBill, CutAnswer } from '../budgets/call-bill.ts'
import type { Lane } from '../lanes/lane.ts'
import type { CallTarget } from '../ports.ts'
import { isAbsurd, isTierKnown, usageOf } from './request-usage.ts'

const nothingDue: RequestCost = { amount: 0n, saved: 0n, isEstimated: false }

/**
 * What one call costs. Its input is due once the provider has accepted it with a successful status, and its output as
 * far as it was delivered; a call without that costs nothing (contract 42.8).
 */
export class AttemptBill implements CallBill {
  readonly isStream: boolean
  readonly #target: CallTarget
  readonly #startedAtMs: number
  #conversation: Conversation | undefined
  readonly #sampling: Sampling | undefined
  readonly #effort: string | undefined
  #bodyLength = 0
  /** Whether its provider may have begun to work on it. */
  #mayCost = false
  #isAccepted = false
  #hasContent = false
  #hasTier = true
  #cut: CutAnswer | undefined
  #lane: Lane | undefined
  #usage: Usage | undefined

  constructor(
    target: CallTarget,
    clock: Clock,
    { stream, conversation }: { readonly stream: boolean; readonly conversation: Conversation | undefined },
  ) {
    this.isStream = stream
    this.#target = target
    this.#startedAtMs = clock.nowMs()
    this.#conversation = conversation
    this.#sampling = conversation?.sampling
    this.#effort = conversation?.reasoning?.effort
  }

  /** The request is sent as soon as it has a connection, with a body of this length. */
  sent(bodyLength: number): void {
    this.#bodyLength = bodyLength
    this.#mayCost = true
  }

  /** The provider answers with a status that is not successful. */
  rejected(): void {
    this.#mayCost = false
  }

  /** The provider answers with a successful status. */
  accepted(lane: Lane): void {
    this.#isAccepted = true
    this.#lane = lane
  }

  /** Another lane reads the answer. */
  follow(lane: Lane): void {
    if (this.#lane !== undefined) this.#lane = lane
  }

  /** Nothing more is read: keeps the usage instead of what it was read from. A call without a connection was never sent. */
  close(isSent = true): void {
    if (!isSent) this.#mayCost = false
    this.#usage = this.usage
    this.#hasTier = this.hasTier
    this.#cut = this.cut
    this.#hasContent = this.hasContent
    this.#lane = this.#conversation = undefined
  }

  /** The answer's counts arrived after its end. */
  countedLate({ usage, estimatedTokens }: Lane): void {
    if (!this.#isAccepted || usage?.source !== 'counted') return
    if (!isAbsurd(usage, this.#sampling, this.#bodyLength)) this.#usage = withDeliveredOutput(usage, estimatedTokens)
  }

  /** Undefined if nothing is due. */
  get usage(): Usage | undefined {
    const lane = this.#lane
    return lane === undefined ? this.#usage : usageOf({ lane, bill: this }, this.#conversation, this.#bodyLength)
  }

  get isFree(): boolean {
    return !this.#mayCost
  }

  get isAccepted(): boolean {
    return this.#isAccepted
  }

  get hasContent(): boolean {
    return this.#lane?.hasContent ?? this.#hasContent
  }

  get hasTier(): boolean {
    return this.#lane === undefined ? this.#hasTier : isTierKnown(this.#lane, this.#conversation?.hints.serviceTier)
  }

  get cut(): CutAnswer | undefined {
    const lane = this.#lane
    if (lane === undefined) return this.#cut
    const { usage } = lane
    if (lane.finished || usage?.source === 'counted') return undefined
    const countsReasoning = usage !== undefined && usage.reasoningTokens > 0
    return { hasInput: usage !== undefined, effort: this.#effort, countsReasoning }
  }

  get amount(): Picodollars | undefined {
    const { usage } = this
    return usage === undefined ? 0n : costOf(usage, this.price)
  }

  get price(): TokenPrice | undefined {
    return this.#target.price?.at(this.#startedAtMs)
  }

  /** The cost of the attempt that ended with this outcome. */
  costFor(attempt: Pick<Attempt, 'outcome' | 'status'>): PossibleCost {
    const { usage, amount } = this
    if (usage === undefined) return { ...nothingDue, isEstimated: this.#mayCost && mayBeBilled(attempt) }
    const { price } = this.#target
    if (amount === undefined) return unknownCost
    return {
      amount,
      saved: cacheSavings(usage, this.price),
      isEstimated: usage.source === 'estimated',
      ...(price === undefined ? {} : { prices: price.version }),
    }
  }
}

/** The bill of an attempt. Not part of its record: JSON has no symbols. */
export const billed = Symbol('bill')

/** An attempt whose final cost is not known yet. */
export interface OpenAttempt extends Attempt {
  readonly [billed]?: AttemptBill
}

/**
 * The final records of a request's attempts, and what they cost together, absent if that is unknown. If there are
 * several, each one has its own usage and cost; a single one has those of the request.
 */
export function billFor(attempts: readonly OpenAttempt[]): {
  readonly attempts: readonly Attempt[]
  readonly cost?: CostRecord
} {
  let total: PossibleCost = nothingDue
  const closed: Attempt[] = []
  for (const attempt of attempts) {
    const bill = attempt[billed]
    const cost = bill?.costFor(attempt) ?? nothingDue
    total = addCosts(total, cost)
    const usage = bill?.usage
    if (attempts.length === 1 || usage === undefined) closed.push(attempt)
    else closed.push({ ...attempt, usage, costUsd: cost === unknownCost ? null : writeDollars(cost.amount) })
  }
  return total === unknownCost ? { attempts: closed } : { attempts: closed, cost: costRecord(total) }
}
