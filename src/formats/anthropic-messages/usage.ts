import type { Usage } from '../../domain/conversation.ts'
import { unfinishedUsage } from '../../domain/estimate-tokens.ts'
import { type Json, type JsonObject, isObject, objectOf } from '../../domain/json.ts'
import { tokenParts } from '../../domain/token-price.ts'
import { usageFrom } from '../token-count.ts'

const names = [
  'input_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
  'output_tokens',
  'service_tier',
  'inference_geo',
  'speed',
] as const

/**
 * Tracks the usage of one answer: a stream reports the input at its start and the output at its end, each count being
 * the total so far. Tokens read from or written to the cache are not part of `input_tokens` here, but are part of ours.
 */
export class UsageReader {
  /** The last value of each member; absent, null, or 0 means no change. */
  readonly #given: Record<string, Json> = {}
  /** What the start of a stream says of its output, which is not known yet. */
  #begun: Json | undefined
  /** The calls that summarized the prompt. They are billed, but the totals beside them do not contain them. */
  #compactions: readonly JsonObject[] = []

  read(usage: Json | undefined): void {
    if (!isObject(usage)) return
    for (const name of names) this.#note(name, usage[name])
    this.#note('thinking_tokens', objectOf(usage['output_tokens_details'])['thinking_tokens'])
    this.#note('written_5m', written5m(usage))
    this.#note('written_1h', written1h(usage))
    const { iterations } = usage
    if (Array.isArray(iterations)) this.#compactions = iterations.filter(isObject).filter(isCompaction)
    this.#note('web_searches', objectOf(usage['server_tool_use'])['web_search_requests'])
  }

  /** Reads the usage at the start of a stream. */
  readStart(usage: Json | undefined): void {
    this.read(usage)
    this.#begun = this.#given['output_tokens']
    delete this.#given['output_tokens']
  }

  /** Estimated until the output is counted; undefined if there is no plausible usage. @see usageFrom */
  get usage(): Usage | undefined {
    const usage = this.#counts
    const isCounted = usage === undefined || this.#given['output_tokens'] !== undefined
    return isCounted ? usage : unfinishedUsage(usage)
  }

  get #counts(): Usage | undefined {
    const given = this.#given
    const written = this.#written
    const read = this.#withCompactions('cache_read_input_tokens')
    return usageFrom({
      input: [this.#withCompactions('input_tokens'), read, ...written],
      output: [this.#withCompactions('output_tokens') ?? this.#begun],
      cached: read,
      written: written.length === 1 ? written[0] : sumOf(written),
      written1h: this.#withCompactions('written_1h', written1h),
      reasoning: given['thinking_tokens'],
      webSearches: given['web_searches'],
      // Fast answers have prices of their own.
      serviceTier: given['speed'] === 'fast' ? 'fast' : given['service_tier'],
      region: given['inference_geo'],
    })
  }

  /** The total, or the counts by lifetime if there is none. */
  get #written(): readonly (Json | undefined)[] {
    const total = this.#withCompactions('cache_creation_input_tokens')
    const parts = [this.#withCompactions('written_5m', written5m), this.#withCompactions('written_1h', written1h)]
    return (total === undefined || total === 0) && parts.some((part) => part !== undefined) ? parts : [total]
  }

  /** A count of the answer, and of all calls that summarized its prompt. */
  #withCompactions(name: string, read = (call: JsonObject): Json | undefined => call[name]): Json | undefined {
    const given = this.#given[name]
    if (this.#compactions.length === 0) return given
    const more = this.#compactions.map(read).filter((count) => count !== undefined && count !== null)
    return more.length === 0 ? given : sumOf([given, ...more])
  }

  #note(name: string, value: Json | undefined): void {
    if (value === undefined || value === null) return
    if (value === 0 && this.#given[name] !== undefined) return
    this.#given[name] = value
  }
}

/** Tokens that were written to a cache for 5 minutes. */
function written5m({ cache_creation: created }: JsonObject): Json | undefined {
  return objectOf(created)['ephemeral_5m_input_tokens']
}

/** Tokens that were written to a cache for an hour. */
function written1h({ cache_creation: created }: JsonObject): Json | undefined {
  return objectOf(created)['ephemeral_1h_input_tokens']
}

function isCompaction({ type }: JsonObject): boolean {
  return type === 'compaction'
}

function sumOf(counts: readonly (Json | undefined)[]): Json {
  return counts.reduce<number>((total, count) => total + (typeof count === 'number' ? count : 0), 0)
}

const none: Usage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0, source: 'counted' }

/** Names of service tiers in this format. */
const tiers: ReadonlySet<string> = new Set(['priority', 'batch'])

/** Usage for the client; zeros if nothing was counted, because clients expect numbers. */
export function writeUsage(usage: Usage = none): JsonObject {
  const { serviceTier, region, webSearches } = usage
  const { cacheRead, audioCacheRead, cacheWrite, cacheWrite1h } = tokenParts(usage)
  const [read, written] = [cacheRead + audioCacheRead, cacheWrite + cacheWrite1h]
  return {
    input_tokens: usage.inputTokens - read - written,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    ...(written > 0 && {
      cache_creation: { ephemeral_5m_input_tokens: cacheWrite, ephemeral_1h_input_tokens: cacheWrite1h },
    }),
    output_tokens: usage.outputTokens,
    output_tokens_details: { thinking_tokens: usage.reasoningTokens },
    ...(webSearches !== undefined && { server_tool_use: { web_search_requests: webSearches } }),
    ...(serviceTier !== undefined && tiers.has(serviceTier) && { service_tier: serviceTier }),
    ...(region !== undefined && { inference_geo: region }),
  }
}
