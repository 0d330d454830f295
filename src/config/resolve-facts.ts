import type { ModelFacts, UsdPerMillion } from '../domain/model-facts.ts'
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

function resolvePrices(given: NonNullable<GivenFacts['usd_per_million']>): UsdPerMillion {
  const { input, output, cached_input: cachedInput } = given
  return { input, output, ...(cachedInput === undefined ? {} : { cachedInput }) }
}
