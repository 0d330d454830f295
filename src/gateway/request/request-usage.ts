import type { Conversation, Sampling, Usage } from '../../domain/conversation.ts'
import { estimateUsage, estimatedUsage, tokensOfBytes, withDeliveredOutput } from '../../domain/estimate-tokens.ts'
import type { TokenPrice } from '../../domain/token-price.ts'
import { readTier } from '../../formats/token-count.ts'
import type { Lane } from '../lanes/lane.ts'

/** A count is only absurd if it is far above what a request allows: reasoning can be outside of its limit. */
const safetyFactor = 4
/** More than the input of any call with files and tools, and than any model writes in one answer. */
const mostInput = 10_000_000
const mostOutput = 200_000

/** The answer to a call, and what its tokens cost. */
interface PricedAnswer {
  readonly lane: Lane
  readonly bill: { readonly price: TokenPrice | undefined }
}

interface AnsweredRequest {
  readonly context: { readonly conversation: Conversation }
  readonly request: { readonly bytes: Buffer }
}

/**
 * The usage that the backend reported, or an estimate marked as such. If it reported only the input, or its answer was cut
 * before it had counted the output, the output is at least what was delivered. Counts that the request cannot have caused are
 * estimated, too (contract 10.13).
 */
export function usageOf(
  { lane, bill }: PricedAnswer,
  conversation: Conversation | undefined,
  bodyLength: number,
): Usage {
  const usage = countedOrEstimated(lane, conversation, bodyLength)
  if (usage.source === 'counted' || usage.serviceTier !== undefined) return usage
  const serviceTier = likelyTier(lane, conversation, bill.price)
  return serviceTier === undefined ? usage : { ...usage, serviceTier }
}

function countedOrEstimated(lane: Lane, conversation: Conversation | undefined, bodyLength: number): Usage {
  const { usage, estimatedTokens } = lane
  if (usage !== undefined && !isAbsurd(usage, conversation?.sampling, bodyLength))
    return withDeliveredOutput(usage, estimatedTokens)
  // Images and files are not as long in tokens as in bytes. Requests for embeddings are not conversations.
  if (conversation !== undefined && conversation.turns.length > 0) return estimateUsage(conversation, estimatedTokens)
  return estimatedUsage(tokensOfBytes(bodyLength), estimatedTokens)
}

/** The service tier of an answer without counts: the one that it named so far, or the requested one if that has a price. */
function likelyTier(
  { serviceTier: named, usage }: Lane,
  conversation: Conversation | undefined,
  price: TokenPrice | undefined,
): string | undefined {
  if (isNamed(named)) return readTier(named)
  if (usage !== undefined) return usage.serviceTier
  const requested = readTier(conversation?.hints.serviceTier)
  return requested !== undefined && Object.hasOwn(price?.tiers ?? {}, requested) ? requested : undefined
}

/** Whether it is known which service tier an answer has without counts: it named one, or the request did. */
export function isTierKnown({ serviceTier, usage }: Lane, requested: string | undefined): boolean {
  return usage !== undefined || isNamed(serviceTier) || isNamed(requested)
}

/** With `auto`, the provider decides. */
function isNamed(tier: string | undefined): boolean {
  return tier !== undefined && tier.toLowerCase() !== 'auto'
}

/** Whether the backend's counts were replaced by an estimate, because the request cannot have caused them. */
export function isReplaced(
  lane: Pick<Lane, 'usage'> | undefined,
  used: Usage | undefined,
  { context, request }: AnsweredRequest,
): boolean {
  const counted = lane?.usage
  if (counted === undefined || used?.source !== 'estimated') return false
  return isAbsurd(counted, context.conversation.sampling, request.bytes.length)
}

/** Whether a request with a body of this length cannot have caused these counts (contract 10.13). */
export function isAbsurd({ inputTokens, outputTokens }: Usage, sampling: Sampling = {}, bodyLength: number): boolean {
  if (inputTokens > Math.max(mostInput, safetyFactor * bodyLength)) return true
  const { maxOutputTokens = mostOutput, choices = 1, candidates = choices } = sampling
  return outputTokens > candidates * Math.max(mostOutput, safetyFactor * maxOutputTokens)
}
