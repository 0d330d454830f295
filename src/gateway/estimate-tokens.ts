import type { AssistantPart, Conversation, InputPart, Turn, Usage } from '../domain/conversation.ts'

/** A token of text takes about this many characters. */
export const charsPerToken = 4
/** Around each turn and each tool models put a few tokens of their own. */
const tokensPerTurn = 4
/** What the largest image comes to that models look at as it is. */
const tokensPerImage = 1_600
/** A page of a document: its text and its picture. */
const tokensPerPage = 2_000
/** Bytes of a page in a usual document, for where only its size is known. */
const bytesPerPage = 40_000
/** A second of sound is about this many tokens. */
const tokensPerAudioSecond = 10
/** Of sound as it is usually compressed. */
const bytesPerAudioSecond = 16_000

/**
 * How many tokens a conversation is for a model, about: right within a third for prose and code in Western languages,
 * without asking any provider and without any model's tokenizer.
 */
export function estimateTokens({ turns, tools, outputFormat, hints }: Conversation): number {
  let tokens = textTokens(hints.instructions ?? '')
  for (const turn of turns) tokens += tokensPerTurn + turnTokens(turn)
  for (const tool of tools) tokens += tokensPerTurn + textTokens(JSON.stringify(tool))
  if (outputFormat?.type === 'json_schema') tokens += textTokens(JSON.stringify(outputFormat.schema))
  return tokens
}

/** What an answer of about `outputTokens` took, for where its backend did not count. */
export function estimateUsage(conversation: Conversation, outputTokens: number): Usage {
  return estimatedUsage(estimateTokens(conversation), outputTokens)
}

/** Usage that says that nobody counted it. */
export function estimatedUsage(inputTokens: number, outputTokens: number): Usage {
  return { inputTokens, outputTokens, cachedTokens: 0, reasoningTokens: 0, source: 'estimated' }
}

function turnTokens(turn: Turn): number {
  let tokens = 0
  for (const part of turn.parts) tokens += partTokens(part)
  return tokens
}

function partTokens(part: InputPart | AssistantPart): number {
  switch (part.type) {
    case 'text':
    case 'refusal':
    case 'reasoning':
      return textTokens(part.text)
    case 'call':
      return textTokens(part.name) + textTokens(part.arguments)
    case 'image':
      return tokensPerImage
    case 'audio':
      return tokensPerAudioSecond * Math.ceil(decodedBytes(part.data) / bytesPerAudioSecond)
    case 'file':
      return fileTokens(part.data)
  }
}

/** A text counts as text; anything else, and what only a provider can fetch, in pages. */
function fileTokens(data = ''): number {
  if (data.startsWith('data:text/')) return Math.ceil(decodedBytes(data) / charsPerToken)
  return tokensPerPage * Math.max(1, Math.ceil(decodedBytes(data) / bytesPerPage))
}

/** What base64 stands for, a data URL's head not taken off. */
function decodedBytes(base64: string): number {
  return Math.ceil((base64.length * 3) / 4)
}

/** By UTF-8 bytes, since scripts of many bytes take more tokens for each character. */
function textTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / charsPerToken)
}
