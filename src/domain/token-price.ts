import type { Usage } from './conversation.ts'
import { type Picodollars, readAmount } from './money.ts'

/**
 * Prices of one kind of processing, in integer microdollars per million tokens, which are picodollars per token:
 * `tokens × rate` is the exact cost (contract 42.1). Rates that are absent are those of plain input or output.
 */
export interface TokenRates {
  readonly input: number
  readonly output: number
  /** Input that was read from a cache. */
  readonly cacheRead?: number
  /** Input that was written to a cache, for 5 minutes or any lifetime up to half an hour. */
  readonly cacheWrite?: number
  /** Input that was written to a cache for an hour. Default: `cacheWrite`. */
  readonly cacheWrite1h?: number
  readonly audioInput?: number
  readonly audioCacheRead?: number
  readonly audioOutput?: number
  readonly imageInput?: number
  readonly imageOutput?: number
}

/** What a provider charges for a model. */
export interface TokenPrice {
  readonly rates: TokenRates
  /** Rates of requests with more input than `above` tokens, for all of their tokens; the smallest threshold first. */
  readonly longContext?: readonly { readonly above: number; readonly rates: TokenRates }[]
  /** Rates of service tiers relative to the usual ones, in thousandths: `{ flex: 500 }`. */
  readonly tiers?: Readonly<Record<string, number>>
  /** Rates of processing regions that the provider names in its usage, in thousandths. Absent if all cost the same. */
  readonly regions?: Readonly<Record<string, number>>
  /** Picodollars for one web search that the provider ran. */
  readonly webSearch?: number
}

/** The parts of a usage: each token is in exactly one of them (contract 42.2). */
export interface TokenParts {
  /** Text input that was neither read from a cache nor written to one. */
  readonly input: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly cacheWrite1h: number
  readonly audioInput: number
  readonly audioCacheRead: number
  readonly imageInput: number
  /** Text output, including reasoning. */
  readonly output: number
  readonly audioOutput: number
  readonly imageOutput: number
}

type CountedUsage = Omit<Usage, 'parts' | 'source'>

/** Names for the usual service tier. Any other needs a price of its own (contract 42.5). */
export const usualTiers: ReadonlySet<string> = new Set(['default', 'standard', 'auto', 'on_demand'])
/** Names for processing anywhere. */
export const anyRegion: ReadonlySet<string> = new Set(['global', 'not_available'])

/** Divides usage into disjoint parts. A count that is larger than the count that it is part of is reduced to it. */
export function tokenParts(usage: CountedUsage): TokenParts {
  const { inputTokens, outputTokens } = usage
  const read = Math.min(usage.cachedTokens, inputTokens)
  const written = Math.min(usage.cacheWriteTokens ?? 0, inputTokens - read)
  const written1h = Math.min(usage.cacheWrite1hTokens ?? 0, written)
  const fresh = inputTokens - read - written
  const audioRead = Math.min(usage.cachedAudioTokens ?? 0, read)
  const audio = Math.min((usage.audioInputTokens ?? 0) - audioRead, fresh)
  const audioInput = Math.max(0, audio)
  const imageInput = Math.min(usage.imageInputTokens ?? 0, fresh - audioInput)
  const audioOutput = Math.min(usage.audioOutputTokens ?? 0, outputTokens)
  const imageOutput = Math.min(usage.imageOutputTokens ?? 0, outputTokens - audioOutput)
  return {
    input: fresh - audioInput - imageInput,
    cacheRead: read - audioRead,
    cacheWrite: written - written1h,
    cacheWrite1h: written1h,
    audioInput,
    audioCacheRead: audioRead,
    imageInput,
    output: outputTokens - audioOutput - imageOutput,
    audioOutput,
    imageOutput,
  }
}

/**
 * The provider's cost of a call: the cost that it stated itself, or that of its tokens at the price. Undefined if the
 * usage or the price is unknown, and for a service tier or region without a known price: never 0 instead (contract
 * 42.3-42.5).
 */
export function costOf(usage: CountedUsage | undefined, price: TokenPrice | undefined): Picodollars | undefined {
  if (usage === undefined) return undefined
  const stated = readAmount(usage.statedCost)
  if (stated !== undefined) return stated
  if (price === undefined) return undefined
  const rates = ratesFor(usage, price)
  if (rates === undefined) return undefined
  const searches = usage.webSearches ?? 0
  if (searches > 0 && price.webSearch === undefined) return undefined
  return tokensCost(tokenParts(usage), rates) + BigInt(searches) * BigInt(price.webSearch ?? 0)
}

/**
 * What caching saved in a call: the cost of the same tokens without a cache, minus what they cost. Negative if writes
 * cost more than reads saved (contract 42.9). Undefined if there is no price.
 */
export function cacheSavings(usage: CountedUsage | undefined, price: TokenPrice | undefined): Picodollars | undefined {
  if (usage === undefined || price === undefined) return undefined
  const rates = ratesFor(usage, price)
  if (rates === undefined) return undefined
  const parts = tokenParts(usage)
  const { cacheRead, cacheWrite, cacheWrite1h, audioCacheRead } = parts
  const uncached = {
    ...parts,
    input: parts.input + cacheRead + cacheWrite + cacheWrite1h,
    audioInput: parts.audioInput + audioCacheRead,
    cacheRead: 0,
    cacheWrite: 0,
    cacheWrite1h: 0,
    audioCacheRead: 0,
  }
  return tokensCost(uncached, rates) - tokensCost(parts, rates)
}

/**
 * The highest cost of a call with at most so many tokens, on one service tier, in the most expensive region. Counts each
 * input token at the highest input rate, because the provider decides what it writes to a cache. `isWithoutAudio`: neither
 * input nor output can be audio.
 */
export function worstCost(
  price: TokenPrice,
  {
    inputTokens,
    outputTokens,
    tier,
    isWithoutAudio = false,
  }: {
    readonly inputTokens: number
    readonly outputTokens: number
    readonly tier?: string
    readonly isWithoutAudio?: boolean
  },
): Picodollars | undefined {
  const permille = factorOf(tier, usualTiers, price.tiers)
  if (permille === undefined) return undefined
  const region = Math.max(1000, ...Object.values(price.regions ?? {}))
  const scaled = scaleRates(scaleRates(ratesOfLength(price, inputTokens), permille), region)
  const { audioInput = 0, audioCacheRead = 0, audioOutput = 0 } = isWithoutAudio ? {} : scaled
  const input = Math.max(
    scaled.input,
    scaled.cacheRead ?? 0,
    scaled.cacheWrite ?? 0,
    scaled.cacheWrite1h ?? 0,
    audioInput,
    audioCacheRead,
    scaled.imageInput ?? 0,
  )
  const output = Math.max(scaled.output, audioOutput, scaled.imageOutput ?? 0)
  return BigInt(inputTokens) * BigInt(input) + BigInt(outputTokens) * BigInt(output)
}

/** Whether audio has a price of its own. */
export function hasAudioRates({ rates, longContext = [] }: TokenPrice): boolean {
  return [rates, ...longContext.map((long) => long.rates)].some(
    ({ audioInput, audioCacheRead, audioOutput }) => (audioInput ?? audioCacheRead ?? audioOutput) !== undefined,
  )
}

/** Rates multiplied by thousandths, rounded up to a microdollar per million. */
export function scaleRates(rates: TokenRates, permille: number): TokenRates {
  if (permille === 1000) return rates
  const scale = (rate: number): number => Math.ceil((rate * permille) / 1000)
  const scaled = { input: scale(rates.input), output: scale(rates.output) }
  const others = Object.entries<number>({ ...rates }).filter(([name]) => !Object.hasOwn(scaled, name))
  return { ...scaled, ...Object.fromEntries(others.map(([name, rate]) => [name, scale(rate)])) }
}

/** The rates that apply to a usage: by length of the input, then tier, then region. */
function ratesFor(usage: CountedUsage, price: TokenPrice): TokenRates | undefined {
  const tier = factorOf(usage.serviceTier, usualTiers, price.tiers)
  const region = price.regions === undefined ? 1000 : factorOf(usage.region, anyRegion, price.regions)
  if (tier === undefined || region === undefined) return undefined
  return scaleRates(scaleRates(ratesOfLength(price, usage.inputTokens), tier), region)
}

function ratesOfLength({ rates, longContext = [] }: TokenPrice, inputTokens: number): TokenRates {
  return longContext.findLast(({ above }) => inputTokens > above)?.rates ?? rates
}

function factorOf(
  name: string | undefined,
  usual: ReadonlySet<string>,
  factors: Readonly<Record<string, number>> = {},
): number | undefined {
  if (name === undefined) return 1000
  return Object.hasOwn(factors, name) ? factors[name] : usual.has(name) ? 1000 : undefined
}

/** Numbers up to 10⁸ tokens at up to 10⁹ picodollars each would exceed a double, so all sums are `bigint`. */
function tokensCost(parts: TokenParts, rates: TokenRates): Picodollars {
  const { input, output, cacheRead = input, cacheWrite = input } = rates
  const { cacheWrite1h = cacheWrite, audioInput = input, audioCacheRead = cacheRead, imageInput = input } = rates
  const { audioOutput = output, imageOutput = output } = rates
  const cost = (tokens: number, rate: number): bigint => BigInt(tokens) * BigInt(rate)
  return (
    cost(parts.input, input) +
    cost(parts.cacheRead, cacheRead) +
    cost(parts.cacheWrite, cacheWrite) +
    cost(parts.cacheWrite1h, cacheWrite1h) +
    cost(parts.audioInput, audioInput) +
    cost(parts.audioCacheRead, audioCacheRead) +
    cost(parts.imageInput, imageInput) +
    cost(parts.output, output) +
    cost(parts.audioOutput, audioOutput) +
    cost(parts.imageOutput, imageOutput)
  )
}
