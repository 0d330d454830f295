import type { Conversation, Usage, UsagePart } from '../../../domain/conversation.ts'
import type { CallRecord, CallRole, CallStatus } from '../../../domain/fusion-record.ts'
import { inDollars } from '../../../domain/money.ts'
import { costOf, worstCost } from '../../../domain/token-price.ts'
import { cautiousInputTokens, assumedOutputTokens } from './measure-conversation.ts'
import type { FusionMember } from './ports.ts'

/** The reserved worst-case cost of a call. */
export interface Reservation {
  readonly role: CallRole
  readonly member: FusionMember
  readonly worstUsd: number
}

/** Statuses of calls that no provider has started to bill. */
const unbilled: ReadonlySet<CallStatus> = new Set([
  'rejected_credentials',
  'rejected_content',
  'context_too_long',
  'not_capable',
  'not_found',
  'rate_limited',
  'unreachable',
  'unsayable',
])

const none: Usage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0, source: 'counted' }

/** The calls of one fusion, their usage, and whether another one is affordable (contract 15.14). */
export class CostTracker {
  readonly #records: CallRecord[] = []
  readonly #maxCostUsd: number | undefined
  /** Cost of answered calls, and the possible cost of unanswered ones: a provider may bill an aborted call. */
  #spentUsd = 0
  #reservedUsd = 0

  constructor(maxCostUsd: number | undefined) {
    this.#maxCostUsd = maxCostUsd
  }

  get records(): readonly CallRecord[] {
    return this.#records
  }

  /** The total usage of all calls: the sum of the records, field by field. */
  get usage(): Usage {
    return this.#records.reduce((sum, { usage }) => (usage === undefined ? sum : add(sum, usage)), none)
  }

  /**
   * The total usage with every call listed, for the caller. `modelOf` names the model if the caller may know it
   * (contract 15.12).
   */
  usageInParts(modelOf?: (member: string) => string | undefined): Usage {
    const parts = this.#records.map(({ role, member, status, ms, usage = none }): UsagePart => {
      const model = modelOf?.(member)
      return { ...usage, role, ...(model === undefined ? {} : { model }), status, ms }
    })
    return { ...this.usage, parts }
  }

  /** US dollars, with the worst case for calls that reported no usage; undefined if no price is known. */
  get costUsd(): number | undefined {
    return this.#maxCostUsd === undefined && this.#records.every(({ costUsd }) => costUsd === undefined)
      ? undefined
      : this.#spentUsd
  }

  /** Whether the caller set a cost limit: every call then has a maximum answer length. */
  get isCapped(): boolean {
    return this.#maxCostUsd !== undefined
  }

  /** Whether less than twice `usd` is left, so that optional calls are skipped. Always false without a limit. */
  isNearLimit(usd: number): boolean {
    const limit = this.#maxCostUsd
    return limit !== undefined && this.#spentUsd + this.#reservedUsd + 2 * usd > limit
  }

  /** The maximum cost of such a call, US dollars; 0 if there is no limit. */
  worstUsd(member: FusionMember, conversation: Conversation, furtherInputTokens = 0): number {
    if (this.#maxCostUsd === undefined || member.price === undefined) return 0
    const outputTokens = conversation.sampling.maxOutputTokens ?? assumedOutputTokens
    const inputTokens = cautiousInputTokens(conversation) + furtherInputTokens
    return inDollars(worstCost(member.price, { inputTokens, outputTokens })!)
  }

  /** Reserves the worst-case cost of a call, leaving `keepUsd` for later ones; undefined if that exceeds the limit. */
  reserve(role: CallRole, member: FusionMember, worstUsd: number, keepUsd = 0): Reservation | undefined {
    const limit = this.#maxCostUsd
    if (limit !== undefined && this.#spentUsd + this.#reservedUsd + worstUsd + keepUsd > limit) return undefined
    this.#reservedUsd += worstUsd
    return { role, member, worstUsd }
  }

  /** Settles a reserved call. */
  settle({ role, member, worstUsd }: Reservation, end: Pick<CallRecord, 'status' | 'ms' | 'usage'>): void {
    this.#reservedUsd -= worstUsd
    const { price } = member
    const { usage } = end
    const cost = costOf(usage, price)
    const knownUsd = cost === undefined ? undefined : inDollars(cost)
    this.#spentUsd += knownUsd ?? (unbilled.has(end.status) ? 0 : worstUsd)
    this.#records.push({ role, member: member.id, ...end, ...(knownUsd === undefined ? {} : { costUsd: knownUsd }) })
  }
}

/** The sum of what every format has a field for. Each call has its own service tier and cost. */
function add(a: Usage, b: Usage): Usage {
  const written = (a.cacheWriteTokens ?? 0) + (b.cacheWriteTokens ?? 0)
  const writtenLong = (a.cacheWrite1hTokens ?? 0) + (b.cacheWrite1hTokens ?? 0)
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    source: a.source === 'estimated' || b.source === 'estimated' ? 'estimated' : 'counted',
    ...(written > 0 && { cacheWriteTokens: written }),
    ...(writtenLong > 0 && { cacheWrite1hTokens: writtenLong }),
  }
}
