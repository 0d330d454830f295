/** What a model may be able to do, as `GET /v1/models` names it. That it streams is true of every conversation. */
export const capabilityIds = ['tools', 'image_input', 'file_input', 'structured_outputs', 'reasoning'] as const

export type CapabilityId = (typeof capabilityIds)[number]

/** What is known of a model: whatever nobody said is absent, and never assumed. Sizes are in tokens. */
export interface ModelFacts {
  /** The largest conversation that it takes. */
  readonly contextWindow?: number
  /** The longest answer that it gives. */
  readonly maxOutputTokens?: number
  readonly capabilities?: Capabilities
  /** How good its answers are held to be, 0 to 100, by whoever set it up; for choosing who deliberates. */
  readonly quality?: number
  /** What its provider takes. */
  readonly usdPerMillion?: UsdPerMillion
}

/** US dollars for a million tokens. */
export interface UsdPerMillion {
  readonly input: number
  readonly output: number
  /** Of input that was read from a cache; as `input` unless said. */
  readonly cachedInput?: number
}

/** The same facts where the second list says more of them. */
export function joinFacts(usual: ModelFacts | undefined, own: ModelFacts): ModelFacts {
  return { ...usual, ...own, capabilities: { ...usual?.capabilities, ...own.capabilities } }
}

export type Capabilities = { readonly [Id in CapabilityId]?: boolean }

/**
 * What is true of a profile whichever of its backends answers: the smallest sizes that are known, and of the
 * capabilities those that all of them are known to have (`true`) or one is known not to have (`false`).
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
