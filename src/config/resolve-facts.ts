import type { ModelFacts, UsdPerMillion, UsdRates } from '../domain/model-facts.ts'
import type { ConfigFile } from './schema.ts'

type GivenFacts = NonNullable<ConfigFile['models']>[string]

/** The facts about models in the file, by model name. */
export function resolveModelFacts(file: ConfigFile): ReadonlyMap<string, ModelFacts> {
  return new Map(Object.entries(file.models ?? {}).map(([model, given]) => [model, resolveFacts(given)]))
}

/** The facts about one model, under our names. */
export function resolveFacts(given: GivenFacts): ModelFacts {
  const { context_window: contextWindow, max_output_tokens: maxOutputTokens, reasoning, quality } = given
  const stated = { ...given.capabilities, reasoning }
  const capabilities = Object.entries(stated).filter(([, value]) => value !== undefined)
  return {
    capabilities: Object.fromEntries(capabilities),
    ...(contextWindow === undefined ? {} : { contextWindow }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(quality === undefined ? {} : { quality }),
    ...(given.usd_per_million === undefined ? {} : { usdPerMillion: resolvePrices(given.usd_per_million) }),
  }
}

type GivenPrices = NonNullable<GivenFacts['usd_per_million']>

function resolvePrices({
  long_context: longContext,
  service_tiers: serviceTiers,
  ...rates
}: GivenPrices): UsdPerMillion {
  return {
    ...resolveRates(rates),
    ...(longContext === undefined
      ? {}
      : { longContext: { ...resolveRates(longContext), above: longContext.above_tokens } }),
    ...(serviceTiers === undefined ? {} : { serviceTiers }),
  }
}

function resolveRates(given: Omit<GivenPrices, 'long_context' | 'service_tiers'>): UsdRates {
  const optional = {
    cachedInput: given.cached_input,
    cacheWrite: given.cache_write,
    cacheWrite1h: given.cache_write_1h,
    audioInput: given.audio_input,
    audioOutput: given.audio_output,
    imageInput: given.image_input,
    imageOutput: given.image_output,
  }
  const stated = Object.entries(optional).filter(([, price]) => price !== undefined)
  return { input: given.input, output: given.output, ...Object.fromEntries(stated) }
}
