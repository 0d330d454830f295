import type { CallRecord, CallRole, CallStatus } from '../../domain/fusion-record.ts'
import type { Conversation, Usage, UsagePart } from '../../domain/conversation.ts'
import { usageCostUsd } from '../../domain/request-cost.ts'
import { cautiousInputTokens, unsaidOutputTokens } from './measure.ts'
import type { FusionMember } from './ports.ts'

/** What a call may still have kept back for it. */
export interface Reservation {
  readonly role: CallRole
  readonly member: FusionMember
  readonly worstUsd: number
}

/** Ends at which no provider has begun to count. */
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

/** The calls of one fusion, what they used, and whether another one may be afforded (contract 15.14). */
export class Book {
  readonly #records: CallRecord[] = []
  readonly #maxCostUsd: number | undefined
  /** What answered calls cost, and what unanswered ones may have cost: whoever is hung up on may still bill. */
  #spentUsd = 0
  #reservedUsd = 0

  constructor(maxCostUsd: number | undefined) {
    this.#maxCostUsd = maxCostUsd
  }

  get records(): readonly CallRecord[] {
    return this.#records
  }

  /** All that the calls used: the sum of the records, field by field. */
  get usage(): Usage {
    return this.#records.reduce((sum, { usage }) => (usage === undefined ? sum : add(sum, usage)), none)
  }

  /** The same with every call that was made, for the caller: `modelOf` where it may know who was asked. */
  usageInParts(modelOf?: (member: string) => string | undefined): Usage {
    const parts = this.#records.map(({ role, member, status, ms, usage = none }): UsagePart => {
      const model = modelOf?.(member)
      return { ...usage, role, ...(model === undefined ? {} : { model }), status, ms }
    })
    return { ...this.usage, parts }
  }

  /** US dollars, the worst case where a call did not say what it used; undefined where no price is known. */
  get costUsd(): number | undefined {
    return this.#maxCostUsd === undefined && this.#records.every(({ costUsd }) => costUsd === undefined)
      ? undefined
      : this.#spentUsd
  }

  /** Whether the caller set a limit in money: every call then has a longest answer. */
  get isCapped(): boolean {
    return this.#maxCostUsd !== undefined
  }

  /** Whether less than twice of `usd` is left: then what is not needed is not done. Never without a limit. */
  isTight(usd: number): boolean {
    const limit = this.#maxCostUsd
    return limit !== undefined && this.#spentUsd + this.#reservedUsd + 2 * usd > limit
  }

  /** The most that one such call can cost, US dollars; 0 where there is no limit to keep. */
  worstUsd(member: FusionMember, conversation: Conversation, furtherInputTokens = 0): number {
    if (this.#maxCostUsd === undefined || member.price === undefined) return 0
    const outputTokens = conversation.sampling.maxOutputTokens ?? unsaidOutputTokens
    const inputTokens = cautiousInputTokens(conversation) + furtherInputTokens
    return usageCostUsd(member.price, { inputTokens, outputTokens, cachedTokens: 0 })
  }

  /** Takes the worst case of a call out of what is left, keeping `keepUsd` for later ones; undefined where it is too much. */
  reserve(role: CallRole, member: FusionMember, worstUsd: number, keepUsd = 0): Reservation | undefined {
    const limit = this.#maxCostUsd
    if (limit !== undefined && this.#spentUsd + this.#reservedUsd + worstUsd + keepUsd > limit) return undefined
    this.#reservedUsd += worstUsd
    return { role, member, worstUsd }
  }

  /** Ends a call that was reserved. */
  close({ role, member, worstUsd }: Reservation, end: Pick<CallRecord, 'status' | 'ms' | 'usage'>): void {
    this.#reservedUsd -= worstUsd
    const { price } = member
    const { usage } = end
    const knownUsd = price === undefined || usage === undefined ? undefined : usageCostUsd(price, usage)
    this.#spentUsd += knownUsd ?? (unbilled.has(end.status) ? 0 : worstUsd)
    this.#records.push({ role, member: member.id, ...end, ...(knownUsd === undefined ? {} : { costUsd: knownUsd }) })
  }
}

function add(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    source: a.source === 'estimated' || b.source === 'estimated' ? 'estimated' : 'counted',
  }
}
