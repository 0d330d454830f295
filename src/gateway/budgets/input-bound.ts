import type { AssistantPart, Conversation, InputPart } from '../../domain/conversation.ts'
import { estimateMedia } from '../../domain/estimate-tokens.ts'
import { isGiven, isObject, type Json, type JsonObject } from '../../domain/json.ts'
import { statedType } from '../../formats/media-types.ts'
import { gptVersion } from '../../formats/openai/gpt-version.ts'
import type { Backend } from '../ports.ts'
import { audioTokensOf, mostAudioTokens } from './audio-tokens.ts'

/** What providers add to a request by themselves, such as instructions for tools, in tokens. */
const addedTokens = 1_024
/** Of a file that only the provider reads: its text and images of 100 pages. */
const tokensOfUnknownFile = 300_000
/** Larger than the context windows of today's models. */
const unknownWindow = 2_000_000
/** More than any provider counts for one image, except for these models. */
const tokensPerImage = 6_000
const tokensPerPatchedImage = 25_000
/** The first model of OpenAI that counts images by patches. */
const firstPatching = 5.04
/**
 * The most tokens of one image, by the published rules of the models: GPT-4o mini counts 2,833 and up to 8 tiles of 5,667, GPT
 * from 5.4 on up to 10,000 patches with a factor of at most 2.46, and Qwen up to 16,384.
 */
const imageTokens: readonly (readonly [models: RegExp, tokens: number])[] = [
  [/gpt-4o-mini/i, 50_000],
  [/qwen|qvq/i, 16_400],
]
/** Types of parts whose content only the provider reads, besides the files of a conversation. */
const unreadParts = /video|upload|audio_url|^media$/
/** Hosted tools that add nothing large to the input: clients run them, or they only write. */
const boundedTools = /^(?:local_shell|apply_patch|computer|tool_search|custom|function|namespace)/
/** Members with which a provider searches, opens something stored, or calls other servers (contract 46.3). */
const openMembers = ['mcp_servers', 'container', 'web_search_options', 'search_parameters', 'data_sources']

/** The most input that one call can have; what it counts as depends on the model. */
export interface InputBound {
  readonly tokens: number
  readonly images: number
  /** What its audio and files have at most, without those of plain text. */
  readonly media: number
  /** What an estimate of its input counts for the same, and for its images. */
  readonly usualMedia: number
  /** Whether the provider can add as much as fits into the window. */
  readonly isOpen: boolean
  /** Whether the provider may first read all of it to summarize it. */
  readonly isSummarized?: boolean
}

/**
 * The most input that a request of so many bytes can have (contract 46.3). Tokenizers of today's models never make more tokens
 * than there are bytes of UTF-8; images and audio count by themselves instead of by their base64. `body` is absent for a
 * request that the service wrote itself, which has nothing that the conversation lacks.
 */
export function inputBound(
  bytes: number,
  { turns, tools }: Pick<Conversation, 'turns' | 'tools'>,
  body: JsonObject = {},
): InputBound {
  let text = bytes + addedTokens
  let media = 0
  let images = 0
  let usualMedia = 0
  for (const { parts } of turns) {
    for (const part of parts) {
      const most = mediaTokens(part)
      text -= base64Length(part)
      media += most
      // A plain text file is text.
      if (most > 0 || part.type === 'image') usualMedia += estimateMedia(part)
      if (part.type === 'image' && isImage(part.url)) images += 1
    }
  }
  images += countUnreadImages(body['input'])
  media += (countUnread(body['messages']) + countUnread(body['input'])) * tokensOfUnknownFile
  const isOpen =
    tools.some((tool) => tool.type === 'hosted' && canAddInput(tool.declaration)) ||
    openMembers.some((name) => isUsed(body[name])) ||
    [body, body['extra_body']].some(hasCachedContent) ||
    // The prompt of a Responses request is a template that the provider stores.
    isObject(body['prompt'])
  const tokens = Math.max(0, text) + media
  return { tokens, images, media, usualMedia, isOpen, ...(asksForSummary(body) && { isSummarized: true }) }
}

/** What the input of a call counts as at most: never more than the window of the model, in each of its readings. */
export function inputAt(
  { tokens, images, isOpen, isSummarized = false }: Omit<InputBound, 'media' | 'usualMedia'>,
  { model, contextWindow }: Pick<Backend, 'model' | 'contextWindow'>,
): number {
  const readings = isSummarized ? 2 : 1
  if (isOpen) return (contextWindow ?? unknownWindow) * readings
  const perImage = imageTokens.find(([models]) => models.test(model))?.[1] ?? usualImageTokens(model)
  return Math.min(tokens + images * perImage, contextWindow ?? Number.MAX_SAFE_INTEGER) * readings
}

function usualImageTokens(model: string): number {
  return gptVersion(model) >= firstPatching ? tokensPerPatchedImage : tokensPerImage
}

/** Whether the provider summarizes a long prompt itself before it answers, and bills that call, too. */
function asksForSummary({ compaction, context_management: management }: JsonObject): boolean {
  const edits = isObject(management) ? management['edits'] : management
  if (!Array.isArray(edits)) return isUsed(compaction)
  const isCompaction = (edit: Json) =>
    isObject(edit) && typeof edit['type'] === 'string' && edit['type'].startsWith('compact')
  return isUsed(compaction) || (edits as readonly Json[]).some(isCompaction)
}

/** The most that the media of a request have as input, as far as their sizes are known or assumed. */
export function mediaAt(
  { media, images }: Pick<InputBound, 'media' | 'images'>,
  backend: Pick<Backend, 'model' | 'contextWindow'>,
): number {
  return inputAt({ tokens: media, images, isOpen: false }, backend)
}

/** The base64 of a part that does not count as text. */
function base64Length(part: InputPart | AssistantPart): number {
  if (part.type === 'audio') return part.data.length
  return part.type === 'image' && part.url.startsWith('data:') && isImage(part.url) ? part.url.length : 0
}

/** What a part counts as beside the text of the request, if it is not an image. */
function mediaTokens(part: InputPart | AssistantPart): number {
  switch (part.type) {
    case 'image':
      return isImage(part.url) ? 0 : fileTokens(part.url)
    case 'audio':
      return mostAudioTokens(part.data, part.format) ?? Math.max(tokensOfUnknownFile, audioTokensOf(part.data))
    case 'file':
      return fileTokens(part.data)
    default:
      return 0
  }
}

/** Formats such as PDF are compressed, and providers also read their pages as images. Plain text counts with its bytes. */
function fileTokens(data: string | undefined): number {
  return data?.startsWith('data:text/') === true ? 0 : tokensOfUnknownFile
}

/** Whether the URL of an image can be one. Some models read whatever it is: a video, or all pages of a PDF. */
export function isImage(url: string): boolean {
  return statedType(url)?.startsWith('image/') !== false
}

/** The parts that only the provider reads, and that a conversation does not have. */
function countUnread(list: Json | undefined): number {
  if (!Array.isArray(list)) return 0
  let count = 0
  for (const item of list as readonly Json[]) {
    if (!isObject(item)) continue
    const { type, content, output } = item
    if ((typeof type === 'string' && unreadParts.test(type)) || isEarlierAudio(item)) count += 1
    count += countUnread(content) + countUnread(output)
  }
  return count
}

/** An answer in audio that the provider stored, as a message of a later chat request refers to it. */
function isEarlierAudio({ audio }: JsonObject): boolean {
  return isObject(audio) && typeof audio['id'] === 'string'
}

/** The images that the provider stored or fetches, in items that a conversation does not have: screenshots, and images it made. */
function countUnreadImages(input: Json | undefined): number {
  if (!Array.isArray(input)) return 0
  let count = 0
  for (const item of input as readonly Json[]) {
    if (!isObject(item)) continue
    const { type, result, output } = item
    const isMade = type === 'image_generation_call' && typeof result !== 'string'
    if (isMade || (type === 'computer_call_output' && isObject(output) && !hasData(output))) count += 1
  }
  return count
}

/** Whether a screenshot is in the request, where its bytes count. */
function hasData({ image_url: url }: JsonObject): boolean {
  return typeof url === 'string' && /^data:/i.test(url)
}

/** Whether a hosted tool adds input of the provider. */
export function canAddInput({ type }: JsonObject): boolean {
  return typeof type !== 'string' || !boundedTools.test(type)
}

/** Whether a request to Google's endpoint for OpenAI's format begins with a prompt that is stored there. */
function hasCachedContent(body: Json | undefined): boolean {
  if (!isObject(body)) return false
  const { google } = body
  return isObject(google) && isUsed(google['cached_content'])
}

/** Whether a member says something; an empty text names nothing. */
function isUsed(value: Json | undefined): boolean {
  return isGiven(value) && value !== ''
}
