import type { AssistantPart, Conversation, InputPart } from '../../domain/conversation.ts'

/** What providers add to a request by themselves, such as instructions for tools, in tokens. */
const addedTokens = 1_024
/** More than any provider counts for one image. */
const tokensPerImage = 6_000
/** Audio of the lowest usual bit rate has this many bytes per token. */
const bytesPerAudioToken = 32
/** Of a file that only the provider reads: its text and images of 100 pages. */
const tokensOfUnknownFile = 300_000

/**
 * The most input tokens that a request of so many bytes can be counted as (contract 46.3). Tokenizers of today's models never
 * make more tokens than there are bytes of UTF-8; images and audio count by themselves instead of by their base64.
 */
export function inputBound(bytes: number, { turns }: Pick<Conversation, 'turns'>): number {
  let tokens = bytes + addedTokens
  for (const { parts } of turns) for (const part of parts) tokens += mediaTokens(part)
  return Math.max(0, tokens)
}

/** What a part counts as, beyond its bytes in the request; negative for base64. */
function mediaTokens(part: InputPart | AssistantPart): number {
  switch (part.type) {
    case 'image':
      return tokensPerImage - (part.url.startsWith('data:') ? part.url.length : 0)
    case 'audio':
      return Math.ceil(part.data.length / bytesPerAudioToken) - part.data.length
    case 'file':
      return part.data === undefined ? tokensOfUnknownFile : 0
    default:
      return 0
  }
}
