import type { AssistantPart, Conversation, InputPart } from '../../domain/conversation.ts'
import { charsPerToken } from '../estimate-tokens.ts'
import type { FusionMember } from './ports.ts'

/** For limits rather than estimates: most texts have fewer tokens. */
const cautiousCharactersPerToken = 2.5
/** What a message costs besides its text, and one picture or file. */
const tokensPerTurn = 8
const tokensPerAttachment = 2_000
/** A window is filled to this part only: the count is an estimate. */
const windowFactor = 1.1
/** The longest answer that is reckoned with where neither caller nor model has a limit, in tokens. */
export const unsaidOutputTokens = 8_192

/** The most tokens that a conversation is reckoned to have as input. */
export function cautiousInputTokens(conversation: Conversation): number {
  const { characters, attachments } = sizeOf(conversation)
  return Math.ceil(characters / cautiousCharactersPerToken) + overheadOf(conversation, attachments)
}

/** Tokens of a conversation as input, estimated. */
export function estimateInputTokens(conversation: Conversation): number {
  const { characters, attachments } = sizeOf(conversation)
  return Math.ceil(characters / charsPerToken) + overheadOf(conversation, attachments)
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

function overheadOf({ turns }: Conversation, attachments: number): number {
  return turns.length * tokensPerTurn + attachments * tokensPerAttachment
}

function sizeOf({ turns, tools, hints }: Conversation): { characters: number; attachments: number } {
  let characters = hints.instructions?.length ?? 0
  let attachments = 0
  for (const turn of turns) {
    for (const part of turn.parts) {
      if ('text' in part) characters += part.text.length
      else if (part.type === 'call') characters += part.name.length + part.arguments.length
      else attachments += 1
    }
  }
  if (tools.length > 0) characters += JSON.stringify(tools).length
  return { characters, attachments }
}
