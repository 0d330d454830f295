import type { JsonObject } from '../../domain/json.ts'
import { BoundedMap } from '../../runtime/bounded-map.ts'
import { hourMs } from '../../runtime/durations.ts'
import { openAiBlocks, type PromptBlock, withoutOldThoughts } from './prompt-blocks.ts'
import {
  bytesPerToken,
  chain,
  type AskedAt,
  type CacheRejection,
  type CacheReport,
  type SimulatedCache,
} from './simulated-cache.ts'

const leastTokens = 1_024
const stepTokens = 128
const idleMs = hourMs / 12
const markedMs = hourMs / 2
const maxEntries = 200_000
/** Requests per minute with one key and one beginning that one machine takes. */
const mostPerMinute = 15
/** What a marked prompt is searched for: its first marks, its latest ones, and the ends of earlier messages. */
const firstMarks = 2
const latestMarks = 50
const earlierEnds = 20
const mostWrites = 4

/** Settings that decide whether a cached prompt can be read. */
const settingNames = [
  'model',
  'parallel_tool_calls',
  'text',
  'response_format',
  'reasoning',
  'reasoning_effort',
  'verbosity',
  'service_tier',
  'prompt_cache_key',
]

export interface OpenAiCacheOptions {
  /** Whether reasoning before the user's last message is removed from the prompt. */
  readonly dropsThoughts?: boolean
}

/**
 * OpenAI's prompt cache before GPT-5.6: automatic, in steps of 128 tokens from 1,024 on, in the memory of one machine
 * that the beginning of the prompt and the key decide.
 */
export class OpenAiCache implements SimulatedCache {
  readonly #entries = new BoundedMap<string, number>(maxEntries)
  readonly #arrivals = new BoundedMap<string, readonly number[]>(maxEntries)
  readonly #options: OpenAiCacheOptions

  constructor(options: OpenAiCacheOptions = {}) {
    this.#options = options
  }

  ask(body: JsonObject, { nowMs }: AskedAt): CacheReport | CacheRejection {
    const blocks = blocksOf(body, this.#options)
    const rejected = problemOf(blocks, false)
    if (rejected !== undefined) return { rejected }
    const text = Buffer.from(blocks.map((block) => block.text).join('\n'))
    const total = Math.ceil(text.length / bytesPerToken)
    const start = text.toString('latin1', 0, leastTokens * bytesPerToken)
    const machine = this.#machine(chain('', settingsOf(body), start), nowMs)
    let digest = machine
    let readTokens = 0
    let isRead = true
    for (let tokens = leastTokens, from = 0; tokens <= total; tokens += stepTokens) {
      const to = tokens * bytesPerToken
      digest = chain(digest, text.toString('latin1', from, to))
      from = to
      isRead &&= (this.#entries.get(digest) ?? 0) > nowMs
      if (isRead) readTokens = tokens
      this.#entries.setLast(digest, nowMs + idleMs)
    }
    return { newTokens: total - readTokens, readTokens, written5mTokens: 0, written1hTokens: 0 }
  }

  /** The machine for a beginning: the same one, unless too many requests arrive within a minute. */
  #machine(beginning: string, nowMs: number): string {
    const recent = (this.#arrivals.get(beginning) ?? []).filter((at) => at > nowMs - 60_000)
    this.#arrivals.setLast(beginning, [...recent, nowMs].slice(-1_000))
    return chain(beginning, String(Math.floor(recent.length / mostPerMinute)))
  }
}

/** OpenAI's prompt cache from GPT-5.6 on: it stores a prompt at marks, one of which it sets itself at the newest message. */
export class MarkedOpenAiCache implements SimulatedCache {
  readonly #entries = new BoundedMap<string, number>(maxEntries)
  readonly #options: OpenAiCacheOptions

  constructor(options: OpenAiCacheOptions = {}) {
    this.#options = options
  }

  ask(body: JsonObject, { nowMs }: AskedAt): CacheReport | CacheRejection {
    const blocks = blocksOf(body, this.#options)
    const rejected = problemOf(blocks, true)
    if (rejected !== undefined) return { rejected }
    let digest = chain('', settingsOf(body))
    const digests = blocks.map(({ role, text }) => (digest = chain(digest, role, text)))
    let bytes = 0
    const ends = blocks.map((block) => Math.ceil((bytes += block.bytes) / bytesPerToken))
    const explicit = blocks.flatMap(({ mark }, at) => (mark === undefined ? [] : [at]))
    const tail = blocks.findLastIndex(({ role, endsMessage }) => endsMessage && role !== 'assistant')
    const searched = new Set([
      ...explicit.slice(0, firstMarks),
      ...explicit.slice(-latestMarks),
      tail,
      ...endsBefore(blocks, tail),
    ])
    const hit = [...searched].reduce(
      (longest, at) => (at > longest && (this.#entries.get(digests[at]!) ?? 0) > nowMs ? at : longest),
      -1,
    )
    const written = [...explicit.slice(1 - mostWrites), tail].filter((at) => at >= 0 && ends[at]! >= leastTokens)
    for (const at of written) this.#entries.setLast(digests[at]!, nowMs + markedMs)
    if (hit >= 0) this.#entries.setLast(digests[hit]!, nowMs + markedMs)
    const readTokens = hit < 0 ? 0 : ends[hit]!
    const stored = Math.max(readTokens, ...written.map((at) => ends[at]!))
    const total = ends.at(-1) ?? 0
    return { newTokens: total - stored, readTokens, written5mTokens: stored - readTokens, written1hTokens: 0 }
  }
}

function blocksOf(body: JsonObject, { dropsThoughts }: OpenAiCacheOptions): readonly PromptBlock[] {
  const blocks = openAiBlocks(body)
  return dropsThoughts === true ? withoutOldThoughts(blocks) : blocks
}

function endsBefore(blocks: readonly PromptBlock[], tail: number): number[] {
  const ends = blocks.flatMap(({ endsMessage, section }, at) =>
    endsMessage && section === 'messages' && at < tail ? [at] : [],
  )
  return ends.slice(-earlierEnds)
}

function settingsOf(body: JsonObject): string {
  return JSON.stringify(settingNames.map((name) => body[name]))
}

/** Why the provider answers 400; undefined if it does not. */
function problemOf(blocks: readonly PromptBlock[], takesMarks: boolean): string | undefined {
  if (!takesMarks && blocks.some(({ mark }) => mark !== undefined)) return 'a mark for a model that takes none'
  return blocks.some(({ mark, takesMark }) => mark !== undefined && !takesMark)
    ? 'a mark on a block that takes none'
    : undefined
}
