/** The member of a request's body with the caller's preferences. It is never sent to a provider. */
export const routingField = 'routing'

/** How backends that may answer are ordered (contract 7.24). */
export const routingSorts = ['order', 'balanced', 'latency', 'price'] as const
export type RoutingSort = (typeof routingSorts)[number]

/** Whether another backend may continue a stream that broke off after content (contract 40.1). */
export const rescueModes = ['never', 'verified', 'marked'] as const
export type RescueMode = (typeof rescueModes)[number]

/** The limits on a price, in US dollars per million tokens. An absent one does not apply. */
export interface PriceCap {
  readonly input?: number
  readonly output?: number
}

/**
 * What a caller may ask of routing in one request (contract 7.27). Backends are named by their id or their model. It can
 * only narrow what the profile allows.
 */
export interface RoutingPreferences {
  readonly sort?: RoutingSort
  /** The first to try, in this order; the others follow. */
  readonly order?: readonly string[]
  readonly only?: readonly string[]
  readonly ignore?: readonly string[]
  readonly maxPrice?: PriceCap
  /** The regions where requests may be processed, in lowercase. */
  readonly regions?: readonly string[]
  /** Whether only backends that store nothing may answer. */
  readonly zeroRetention?: boolean
  /** Replaces the profile's. */
  readonly rescue?: RescueMode
}

/** How a profile chooses among its backends (contract 7.24-7.26). */
export interface RoutingPolicy extends Omit<RoutingPreferences, 'only' | 'ignore'> {
  /** Relative shares by backend id; 1 if absent. */
  readonly weights?: Readonly<Record<string, number>>
  /** Whether a slow request is also sent to a second backend (contract 7.30). */
  readonly hedge?: boolean
  /** Whether a session stays at the backend that holds its cache; true if absent (contract 45.2). */
  readonly sticky?: boolean
}

/** What applies to one request: the profile's policy, narrowed by the caller's preferences. */
export interface RequestRouting extends RoutingPolicy, RoutingPreferences {
  readonly sort: RoutingSort
  readonly order?: readonly string[]
  readonly maxPrice?: PriceCap
  readonly regions?: readonly string[]
  readonly zeroRetention?: boolean
}

/** The requirements that a backend can fail, in the order in which they are checked. */
export const routingFilters = ['only', 'ignore', 'regions', 'zero_retention', 'max_price'] as const
export type RoutingFilter = (typeof routingFilters)[number]

/** The configured order, without requirements. */
export const inOrder: RequestRouting = { sort: 'order' }

/** Combines a profile's policy with a request's preferences: the stricter of both requirements applies. */
export function routingFor(policy: RoutingPolicy | undefined, asked: RoutingPreferences | undefined): RequestRouting {
  if (asked === undefined) return policy === undefined ? inOrder : { ...policy, sort: policy.sort ?? 'order' }
  const maxPrice = stricterPrice(policy?.maxPrice, asked.maxPrice)
  const regions = commonRegions(policy?.regions, asked.regions)
  return {
    ...policy,
    ...asked,
    sort: asked.sort ?? policy?.sort ?? 'order',
    ...(maxPrice === undefined ? {} : { maxPrice }),
    ...(regions === undefined ? {} : { regions }),
    zeroRetention: policy?.zeroRetention === true || asked.zeroRetention === true,
  }
}

function stricterPrice(one: PriceCap | undefined, other: PriceCap | undefined): PriceCap | undefined {
  if (one === undefined || other === undefined) return one ?? other
  const input = lower(one.input, other.input)
  const output = lower(one.output, other.output)
  return { ...(input === undefined ? {} : { input }), ...(output === undefined ? {} : { output }) }
}

function lower(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other)
}

function commonRegions(
  one: readonly string[] | undefined,
  other: readonly string[] | undefined,
): readonly string[] | undefined {
  return one === undefined || other === undefined ? (one ?? other) : one.filter((region) => other.includes(region))
}
