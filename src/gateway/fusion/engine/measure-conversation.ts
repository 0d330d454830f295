import type { AssistantPart, Conversation, InputPart } from '../../../domain/conversation.ts'
import { bytesPerToken, estimateTokens } from '../../../domain/estimate-tokens.ts'
import type { FusionMember } from './ports.ts'

/** For limits rather than estimates: most texts have more bytes per token. */
export const cautiousBytesPerToken = 2.5
/** Safety factor for filling a window, because the count is an estimate. */
const windowFactor = 1.1
/** The assumed longest answer if neither caller nor model has a limit, in tokens. */
export const assumedOutputTokens = 8_192
/** Reasoning models use the same limit for their reasoning. */
const reasoningFactor = 4

/** An upper estimate of a conversation's input tokens. */
export function cautiousInputTokens(conversation: Conversation): number {
  return Math.ceil((estimateTokens(conversation) * bytesPerToken) / cautiousBytesPerToken)
}

/** The limit that lets this model write `tokens` of text, in addition to its reasoning. */
export function outputLimit({ capabilities }: Pick<FusionMember, 'capabilities'>, tokens: number): number {
  return capabilities?.reasoning === true ? tokens * reasoningFactor : tokens
}

/** Whether the conversation and an answer fit into the model's window, if the window is known. */
export function fitsWindow({ contextWindow }: FusionMember, inputTokens: number, outputTokens: number): boolean {
  return contextWindow === undefined || inputTokens * windowFactor + outputTokens <= contextWindow
}

/** Whether the conversation contains images. */
export function hasImages({ turns }: Conversation): boolean {
  return turns.some(({ parts }) =>
    (parts as readonly (InputPart | AssistantPart)[]).some(({ type }) => type === 'image'),
  )
}
