import type { AssistantPart, Conversation, InputPart } from '../../domain/conversation.ts'
import { charsPerToken, estimateTokens } from '../estimate-tokens.ts'
import type { FusionMember } from './ports.ts'

/** For limits rather than estimates: most texts have more characters to a token. */
export const cautiousCharsPerToken = 2.5
/** A window is filled to this part only: the count is an estimate. */
const windowFactor = 1.1
/** The longest answer that is reckoned with where neither caller nor model has a limit, in tokens. */
export const unsaidOutputTokens = 8_192
/** Models that reason spend of the same limit on it. */
const reasoningFactor = 4

/** The most tokens that a conversation is reckoned to have as input. */
export function cautiousInputTokens(conversation: Conversation): number {
  return Math.ceil((estimateTokens(conversation) * charsPerToken) / cautiousCharsPerToken)
}

/** The limit under which this model can say `tokens`, its reasoning aside. */
export function outputLimit({ capabilities }: Pick<FusionMember, 'capabilities'>, tokens: number): number {
  return capabilities?.reasoning === true ? tokens * reasoningFactor : tokens
}

/** Whether the conversation and an answer fit into the model's window, as far as that is known. */
export function fitsWindow({ contextWindow }: FusionMember, inputTokens: number, outputTokens: number): boolean {
  return contextWindow === undefined || inputTokens * windowFactor + outputTokens <= contextWindow
}

/** Whether the conversation holds pictures. */
export function hasImages({ turns }: Conversation): boolean {
  return turns.some(({ parts }) =>
    (parts as readonly (InputPart | AssistantPart)[]).some(({ type }) => type === 'image'),
  )
}
