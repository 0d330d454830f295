import type { JsonObject } from '../../domain/json.ts'
import { BoundedMap } from '../../runtime/bounded-map.ts'
import { hourMs } from '../../runtime/durations.ts'
import { isHourMark, messagesBlocks, nameOf, type PromptBlock, withoutOldThoughts } from './prompt-blocks.ts'
import {
  bytesPerToken,
  chain,
  type AskedAt,
  type CacheRejection,
  type CacheReport,
  type SimulatedCache,
} from './simulated-cache.ts'

const mostMarks = 4
const lookback = 20
const fiveMinutesMs = hourMs / 12
const maxEntries = 100_000

interface Entry {
  lifetimeMs: number
  readonly visibleMs: number
  expiresMs: number
}

interface Mark {
  /** The block that has it. */
  readonly at: number
  readonly isHour: boolean
}

export interface AnthropicCacheOptions {
  /** The number of tokens below which nothing is stored. */
  readonly minimum: number
  /** Whether thoughts before the user's last message are removed from the prompt, as by models before Opus 4.5. */
  readonly dropsThoughts?: boolean
  /** Reads the blocks of a request. Default: the Messages format. */
  readonly read?: (body: JsonObject) => readonly PromptBlock[]
}

/**
 * Anthropic's prompt cache: it stores a prompt up to each mark, and each mark finds what is stored up to 20 blocks
 * before it. Lifetimes count from the start of a request, and each read renews them.
 */
export class AnthropicCache implements SimulatedCache {
  readonly #options: AnthropicCacheOptions
  readonly #entries = new BoundedMap<string, Entry>(maxEntries)

  constructor(options: AnthropicCacheOptions) {
    this.#options = options
  }

  ask(body: JsonObject, { nowMs, firstByteMs = 0 }: AskedAt): CacheReport | CacheRejection {
    const { read = messagesBlocks } = this.#options
    const all = read(body)
    const blocks = this.#options.dropsThoughts === true ? withoutOldThoughts(all) : all
    const marks = marksOf(body, blocks)
    const rejected = problemOf(body, all, marks)
    if (rejected !== undefined) return { rejected }
    const digests = digestsOf(body, blocks)
    const ends = endsOf(blocks)
    const total = ends.at(-1) ?? 0
    const hit = this.#find(marks, digests, nowMs)
    const last = marks.at(-1)?.at ?? -1
    for (const { at, isHour } of marks) {
      if (ends[at]! < this.#options.minimum) continue
      const lifetimeMs = isHour ? hourMs : fiveMinutesMs
      const known = this.#entries.get(digests[at]!)
      if (known !== undefined && known.expiresMs > nowMs) {
        known.lifetimeMs = Math.max(known.lifetimeMs, lifetimeMs)
        known.expiresMs = Math.max(known.expiresMs, nowMs + lifetimeMs)
      } else
        this.#entries.setLast(digests[at]!, {
          lifetimeMs,
          visibleMs: nowMs + firstByteMs,
          expiresMs: nowMs + lifetimeMs,
        })
    }
    const readTokens = hit < 0 ? 0 : ends[hit]!
    const isStored = last >= 0 && ends[last]! >= this.#options.minimum
    const marked = isStored ? Math.max(ends[last]!, readTokens) : readTokens
    const lastHour = marks.findLast(({ isHour, at }) => isHour && ends[at]! >= this.#options.minimum)?.at ?? -1
    const written1hTokens = lastHour < 0 ? 0 : Math.max(0, ends[lastHour]! - readTokens)
    return {
      newTokens: total - marked,
      readTokens,
      written5mTokens: marked - readTokens - written1hTokens,
      written1hTokens,
    }
  }

  /** The longest stored prefix that a mark finds; -1 if there is none. */
  #find(marks: readonly Mark[], digests: readonly string[], nowMs: number): number {
    let longest = -1
    for (const { at } of marks) {
      for (let block = at; block > Math.max(longest, at - lookback); block -= 1) {
        const entry = block < 0 ? undefined : this.#entries.get(digests[block]!)
        if (entry === undefined || entry.expiresMs <= nowMs || entry.visibleMs > nowMs) continue
        entry.expiresMs = Math.max(entry.expiresMs, nowMs + entry.lifetimeMs)
        longest = block
        break
      }
    }
    return longest
  }
}

function marksOf({ cache_control: automatic }: JsonObject, blocks: readonly PromptBlock[]): Mark[] {
  const marks = blocks.flatMap(({ mark }, at) => (mark === undefined ? [] : [{ at, isHour: isHourMark(mark) }]))
  const tail = automatic === undefined || automatic === null ? -1 : blocks.findLastIndex(({ takesMark }) => takesMark)
  if (tail >= 0 && blocks[tail]!.mark === undefined) marks.push({ at: tail, isHour: isHourMark(automatic) })
  return marks
}

/** Why the provider answers 400; undefined if it does not. */
function problemOf(body: JsonObject, blocks: readonly PromptBlock[], marks: readonly Mark[]): string | undefined {
  const inner = JSON.stringify(body['messages'] ?? []).split('"cache_control":{').length - 1
  const outer = blocks.filter(({ section, mark }) => section === 'messages' && mark !== undefined).length
  const isAutomatic = body['cache_control'] !== undefined && body['cache_control'] !== null
  const explicit = blocks.filter(({ mark }) => mark !== undefined).length
  if (explicit + Math.max(0, inner - outer) + (isAutomatic ? 1 : 0) > mostMarks) return 'more than 4 marks'
  if (blocks.some(({ mark, takesMark }) => mark !== undefined && !takesMark)) return 'a mark on a block that takes none'
  const firstShort = marks.findIndex(({ isHour }) => !isHour)
  if (firstShort >= 0 && marks.slice(firstShort).some(({ isHour }) => isHour)) return 'an hour after five minutes'
  return undefined
}

/** One digest for each prefix. Settings that a provider reads with the messages are part of those. */
function digestsOf(body: JsonObject, blocks: readonly PromptBlock[]): string[] {
  const { model, tool_choice: choice, thinking, output_config: config } = body
  const hasImages = blocks.some(({ text }) => text.includes('"type":"image"'))
  const settings = JSON.stringify([choice, thinking, config, hasImages])
  let digest = chain('', nameOf(model))
  let isMessages = false
  return blocks.map(({ section, role, text }) => {
    if (section === 'messages' && !isMessages) digest = chain(digest, settings)
    isMessages ||= section === 'messages'
    return (digest = chain(digest, section, role, text))
  })
}

/** The number of tokens up to the end of each block. */
function endsOf(blocks: readonly PromptBlock[]): number[] {
  let bytes = 0
  return blocks.map((block) => Math.ceil((bytes += block.bytes) / bytesPerToken))
}
