import type { AnswerEvent, AssistantPart, Conversation, InputPart, Turn, Usage } from './conversation.ts'

/** Approximate bytes of UTF-8 text per token. */
export const bytesPerToken = 4
/** Models add a few tokens around each turn and each tool. */
const tokensPerTurn = 4
/** Tokens of the largest image that models process without downscaling. */
const tokensPerImage = 1_600
/** Tokens of a document page: its text and its image. */
const tokensPerPage = 2_000
/** Bytes per page of a typical document, if only its size is known. */
const bytesPerPage = 40_000
/** Approximate tokens per second of audio. */
const tokensPerAudioSecond = 10
/** Bytes per second of typically compressed audio. */
const bytesPerAudioSecond = 16_000

/** Estimates the tokens of a text by its bytes in UTF-8. */
export function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / bytesPerToken)
}

/**
 * Estimates the input tokens of a conversation without a provider or a tokenizer. Within a third of the real count
 * for prose and code in Western languages.
 */
export function estimateTokens({ turns, tools, outputFormat, hints }: Conversation): number {
  let tokens = textTokens(hints.instructions ?? '')
  for (const turn of turns) tokens += tokensPerTurn + turnTokens(turn)
  for (const tool of tools) tokens += tokensPerTurn + textTokens(JSON.stringify(tool))
  if (outputFormat?.type === 'json_schema') tokens += textTokens(JSON.stringify(outputFormat.schema))
  return tokens
}

/** Estimated usage of an answer of about `outputTokens`, for a backend that reports none. */
export function estimateUsage(conversation: Conversation, outputTokens: number): Usage {
  return estimatedUsage(estimateTokens(conversation), outputTokens)
}

/**
 * Usage with at least the output that the backend delivered, if it did not count that, or not to the end. If output was
 * delivered, a count of 0 is not a count.
 */
export function withDeliveredOutput(usage: Usage, deliveredTokens: number): Usage {
  const isCounted = usage.source === 'counted' && usage.outputTokens > 0
  if (isCounted || usage.outputTokens >= deliveredTokens) return usage
  return withEstimatedOutput(usage, deliveredTokens)
}

/** The usage of an answer that is not finished: its counts may still grow, so its stated cost is dropped. */
export function unfinishedUsage({ statedCost: _cost, ...usage }: Usage): Usage {
  return withEstimatedOutput(usage, usage.outputTokens)
}

/** Usage of which at least the output is estimated. */
export function withEstimatedOutput(usage: Usage, outputTokens: number): Usage {
  const isCounted = hasCountedInput(usage)
  return { ...usage, outputTokens, source: 'estimated', ...(isCounted && { isInputCounted: true }) }
}

/** Whether the backend counted the input, even if the output is estimated. */
export function hasCountedInput({ source, isInputCounted }: Usage): boolean {
  return source === 'counted' || isInputCounted === true
}

/** The usage of an answer, estimated as far as its backend did not count it. */
export function completeUsage(usage: Usage | undefined, conversation: Conversation, deliveredTokens: number): Usage {
  return usage === undefined
    ? estimateUsage(conversation, deliveredTokens)
    : withDeliveredOutput(usage, deliveredTokens)
}

/** The text that the model wrote in an event, in UTF-8: also a call without arguments has a name (contract 10.13). */
export function outputBytes(event: AnswerEvent): number {
  if ('text' in event) return Buffer.byteLength(event.text)
  return event.type === 'call' ? Buffer.byteLength(event.name) : 0
}

/** Usage marked as estimated. */
export function estimatedUsage(inputTokens: number, outputTokens: number): Usage {
  return { inputTokens, outputTokens, cachedTokens: 0, reasoningTokens: 0, source: 'estimated' }
}

function turnTokens(turn: Turn): number {
  let tokens = 0
  for (const part of turn.parts) tokens += partTokens(part)
  return tokens
}

/** Estimates the input tokens of an image, audio, or a file; 0 for other parts. */
export function estimateMedia(part: InputPart | AssistantPart): number {
  return part.type === 'image' || part.type === 'audio' || part.type === 'file' ? partTokens(part) : 0
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

/** Text counts as text; anything else, including files that only a provider can fetch, counts in pages. */
function fileTokens(data = ''): number {
  if (data.startsWith('data:text/')) return tokensOfBytes(decodedBytes(data))
  return tokensPerPage * Math.max(1, Math.ceil(decodedBytes(data) / bytesPerPage))
}

/** The decoded size of base64 data, including the data URL prefix if there is one. */
function decodedBytes(base64: string): number {
  return Math.ceil((base64.length * 3) / 4)
}

/** Counts UTF-8 bytes, because scripts with multi-byte characters take more tokens per character. */
function textTokens(text: string): number {
  return tokensOfBytes(Buffer.byteLength(text))
}
