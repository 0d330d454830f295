/** Optional capabilities of models, as named in `GET /v1/models`. Every model can stream. */
export const capabilityIds = ['tools', 'image_input', 'file_input', 'structured_outputs', 'reasoning'] as const

export type CapabilityId = (typeof capabilityIds)[number]

/** What is known of a model. Unknown facts are absent and never assumed (contract 31.9). Sizes are in tokens. */
export interface ModelFacts {
  /** The context window. */
  readonly contextWindow?: number
  /** The maximum length of an answer. */
  readonly maxOutputTokens?: number
  readonly capabilities?: Capabilities
  /** The operator's rating of the answers, 0 to 100; fusion uses it to choose members. */
  readonly quality?: number
  /** The provider's price. */
  readonly usdPerMillion?: UsdPerMillion
}

/** What is known of a backend: of its model, and of where and how its provider processes requests. */
export interface BackendFacts extends ModelFacts {
  /** In lowercase. */
  readonly region?: string
  /** Whether the provider stores nothing of a request or its answer. */
  readonly zeroRetention?: boolean
  /** How long its provider caches a prompt, milliseconds; by default, what is known of the provider. */
  readonly cacheMs?: number
  /** Backends with the same name share one prompt cache; by default, those with the same endpoint and credential. */
  readonly cacheDomain?: string
}

/** Prices that an operator wrote, in US dollars per million tokens. Absent ones follow `input` and `output`. */
export interface UsdPerMillion extends UsdRates {
  /** Prices of all tokens of requests with more input tokens than `above`. */
  readonly longContext?: UsdRates & { readonly above: number }
  /** Prices of service tiers relative to these: `{ flex: 0.5 }`. */
  readonly serviceTiers?: Readonly<Record<string, number>>
}

export interface UsdRates {
  readonly input: number
  readonly output: number
  /** For input tokens that were read from a cache. */
  readonly cachedInput?: number
  /** For input tokens that were written to a cache. */
  readonly cacheWrite?: number
  /** For input tokens that were written to a cache for an hour. Default: `cacheWrite`. */
  readonly cacheWrite1h?: number
  readonly audioInput?: number
  readonly audioOutput?: number
  readonly imageInput?: number
  readonly imageOutput?: number
}

/** Merges facts; those of `own` win. */
export function joinFacts(usual: ModelFacts | undefined, own: ModelFacts): ModelFacts {
  return { ...usual, ...own, capabilities: { ...usual?.capabilities, ...own.capabilities } }
}

export type Capabilities = { readonly [Id in CapabilityId]?: boolean }

/**
 * The facts that are true for a profile no matter which backend answers: the smallest known sizes, the capabilities
 * that all backends are known to have (`true`), and those that at least one is known to lack (`false`; contract 17.3).
 */
export function factsOfAll(all: readonly ModelFacts[]): ModelFacts {
  const capabilities: { [Id in CapabilityId]?: boolean } = {}
  for (const id of capabilityIds) {
    const said = all.map((facts) => facts.capabilities?.[id])
    if (said.includes(false)) capabilities[id] = false
    else if (said.length > 0 && !said.includes(undefined)) capabilities[id] = true
  }
  const contextWindow = smallest(all.map((facts) => facts.contextWindow))
  const maxOutputTokens = smallest(all.map((facts) => facts.maxOutputTokens))
  return {
    capabilities,
    ...(contextWindow === undefined ? {} : { contextWindow }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
  }
}

function smallest(sizes: readonly (number | undefined)[]): number | undefined {
  const known = sizes.filter((size) => size !== undefined)
  return known.length === 0 ? undefined : Math.min(...known)
}
