import type { Usage } from '../domain/conversation.ts'
import { type Json, isObject } from '../domain/json.ts'
import { anyRegion, usualTiers } from '../domain/token-price.ts'
import { maxTokenCount } from '../runtime/token-counts.ts'
import type { Draft } from './fields.ts'

/** More than any answer takes. */
const mostSearches = 1_000

/** A provider's token count: 0 if absent or null, undefined if it is not a token count. */
function readCount(value: Json | undefined): number | undefined {
  if (value === undefined || value === null) return 0
  if (typeof value !== 'number' || !(value >= 0 && value <= maxTokenCount)) return undefined
  return Math.round(value)
}

/** The counts of one answer, as the provider sent them. */
interface GivenCounts extends GivenDetails {
  readonly input: readonly (Json | undefined)[]
  readonly output: readonly (Json | undefined)[]
  readonly cached: Json | undefined
  readonly reasoning: Json | undefined
  readonly written?: Json | undefined
}

/** What not every provider sends. A count that is not plausible is ignored. */
interface GivenDetails {
  readonly written1h?: Json | undefined
  readonly audioInput?: Json | undefined
  readonly cachedAudio?: Json | undefined
  readonly audioOutput?: Json | undefined
  readonly imageInput?: Json | undefined
  readonly imageOutput?: Json | undefined
  readonly webSearches?: Json | undefined
  readonly serviceTier?: Json | undefined
  readonly region?: Json | undefined
  /** Picodollars. */
  readonly statedCost?: bigint | undefined
}

/**
 * Usage from a provider's counts; `input` and `output` are totals. Undefined if no input was counted, so that 0 is not
 * taken as a result, and if a count is implausible: then the usage is estimated (contract 10.13, 42.7).
 */
export function usageFrom(given: GivenCounts): Usage | undefined {
  const inputTokens = sum(given.input)
  const outputTokens = sum(given.output)
  const cachedTokens = readCount(given.cached)
  const reasoningTokens = readCount(given.reasoning)
  const written = readCount(given.written)
  if (inputTokens === undefined || outputTokens === undefined) return undefined
  if (cachedTokens === undefined || reasoningTokens === undefined || written === undefined) return undefined
  // A request is never empty.
  if (inputTokens === 0) return undefined
  const usage: Draft<Usage> = {
    inputTokens,
    outputTokens,
    cachedTokens: Math.min(cachedTokens, inputTokens),
    reasoningTokens: Math.min(reasoningTokens, outputTokens),
    source: 'counted',
  }
  if (written > 0) usage.cacheWriteTokens = Math.min(written, inputTokens)
  addDetails(usage, given)
  return usage
}

type CountName =
  | 'cacheWrite1hTokens'
  | 'audioInputTokens'
  | 'cachedAudioTokens'
  | 'audioOutputTokens'
  | 'imageInputTokens'
  | 'imageOutputTokens'
  | 'webSearches'

/** Only what is not zero, because most answers have none of it. No part is larger than what it is part of. */
function addDetails(usage: Draft<Usage>, given: GivenDetails): void {
  const { inputTokens, outputTokens, cachedTokens, cacheWriteTokens = 0 } = usage
  addCount(usage, 'cacheWrite1hTokens', given.written1h, cacheWriteTokens)
  addCount(usage, 'audioInputTokens', given.audioInput, inputTokens)
  addCount(usage, 'cachedAudioTokens', given.cachedAudio, Math.min(cachedTokens, usage.audioInputTokens ?? 0))
  addCount(usage, 'audioOutputTokens', given.audioOutput, outputTokens)
  addCount(usage, 'imageInputTokens', given.imageInput, inputTokens)
  addCount(usage, 'imageOutputTokens', given.imageOutput, outputTokens)
  addCount(usage, 'webSearches', given.webSearches)
  const serviceTier = readTier(given.serviceTier)
  if (serviceTier !== undefined) usage.serviceTier = serviceTier
  const region = readName(given.region, anyRegion)
  if (region !== undefined) usage.region = region
  if (given.statedCost !== undefined) usage.statedCost = given.statedCost.toString()
}

function addCount(usage: Draft<Usage>, name: CountName, value: Json | undefined, most = maxTokenCount): void {
  if (value === undefined || value === 0) return
  const count = Math.min(readCount(value) ?? 0, most)
  if (count > 0 && (name !== 'webSearches' || count <= mostSearches)) usage[name] = count
}

/** The name of a service tier; undefined for the usual one. */
export function readTier(value: Json | undefined): string | undefined {
  return readName(value, usualTiers)
}

/** A provider's short name for something unusual, in lowercase. Anything longer has no known price: `other`. */
function readName(value: Json | undefined, usual: ReadonlySet<string>): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined
  const name = /^[A-Za-z0-9_-]{1,32}$/.test(value) ? value.toLowerCase() : 'other'
  return usual.has(name) ? undefined : name
}

function sum(values: readonly (Json | undefined)[]): number | undefined {
  let total = 0
  for (const value of values) {
    const count = readCount(value)
    if (count === undefined) return undefined
    total += count
  }
  return total <= maxTokenCount ? total : undefined
}

/** The first of several names for a count under which the provider counted anything; otherwise the first it sent. */
export function firstCount(...values: readonly (Json | undefined)[]): Json | undefined {
  return values.find((value) => value !== undefined && value !== null && value !== 0) ?? values.find(isSent)
}

function isSent(value: Json | undefined): boolean {
  return value !== undefined && value !== null && !isObject(value)
}
