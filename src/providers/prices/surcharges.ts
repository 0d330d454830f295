/** What a vendor charges for service tiers and regions, which the imported table lacks: factors in thousandths. */
export interface Surcharges {
  /** Service tiers with a known price, by model. A tier that no row names has no known price (contract 42.5). */
  readonly tiers?: readonly (readonly [models: RegExp, factors: Readonly<Record<string, number>>])[]
  /** Regions that the provider names in its usage. Other models cost the same everywhere. */
  readonly regions?: readonly [models: RegExp, factors: Readonly<Record<string, number>>]
  /** Backends that are fixed to a region. */
  readonly fixedRegion?: readonly [models: RegExp, factor: number]
}

const openai: Surcharges = {
  tiers: [
    [/^/, { flex: 500, batch: 500 }],
    [/^gpt-5\.5(?!-pro)/, { priority: 2_500, fast: 2_500 }],
    [/^gpt-5-mini/, { priority: 1_800, fast: 1_800 }],
    [/^gpt-(?:6|5\.[1-46]|5)(?:-(?!mini|nano|pro)|$)/, { priority: 2_000, fast: 2_000 }],
    [/^(?:gpt-5\.4-mini|gpt-5\.6-)/, { priority: 2_000, fast: 2_000 }],
    [/^(?:gpt-4\.1|o3(?:-2|$)|o4-mini)/, { priority: 1_750 }],
  ],
  // For data residency.
  fixedRegion: [/^gpt-(?:5\.[4-9]|6)/, 1_100],
}

const anthropic: Surcharges = {
  tiers: [
    [/^/, { batch: 500 }],
    [/^claude-opus-4-6/, { fast: 6_000 }],
  ],
  regions: [/^claude-(?:fable|mythos|(?:opus|sonnet)-(?:5|4-[6-9])|haiku-5)/, { us: 1_100 }],
}

/** Flex processing at Groq costs the same, and may be rejected. */
const groq: Surcharges = { tiers: [[/^/, { flex: 1_000 }]] }

/** Claude on Vertex AI outside of the global endpoint. */
const vertex: Surcharges = { fixedRegion: [/^claude-/, 1_100] }

export const surcharges = { openai, anthropic, groq, vertex } as const
