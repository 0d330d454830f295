import type { Upstream } from '../domain/accounts.ts'
import { BoundedMap } from '../domain/bounded-map.ts'
import type { ModelFacts } from '../domain/model-facts.ts'
import { frontierId } from '../domain/profiles.ts'
import type { Profile } from '../domain/profiles.ts'
import { SealError } from '../domain/sealing.ts'
import type { Secret } from '../domain/secret.ts'
import type { FormatId } from '../domain/format-id.ts'
import type { Backend, Backends, BackendTimeouts } from '../gateway/ports.ts'
import { createBackend, createUnusableBackend } from './backend.ts'
import type { DescribedBackend } from './backend.ts'
import { fillBaseUrl, placeOf, vendorUrl } from './place.ts'
import { findVendor, spokenBy, vendors } from './registry.ts'
import type { Vendor, VendorId } from './registry.ts'
import { defaultTimeouts } from './timeouts.ts'
import type { UpstreamPools } from './upstream-pools.ts'
import type { Vault } from './vault.ts'

const defaultMaxCachedAccounts = 10_000

/** A backend as the configuration gives it. Where it is and how it is spoken to comes from the vendor's row unless said here. */
export interface ConfiguredBackend {
  readonly id: string
  readonly provider: VendorId
  readonly model: string
  /** Required where the vendor's row has none. */
  readonly baseUrl?: string | undefined
  /** Where the vendor has regions. */
  readonly region?: string | undefined
  readonly format?: FormatId | undefined
  readonly authHeader?: string | undefined
  readonly failureDomain: string
  readonly facts?: ModelFacts | undefined
  readonly timeouts: BackendTimeouts
  readonly credential?: Secret | undefined
  /** The account that the credential belongs to: the only one that this backend serves. */
  readonly account?: string | undefined
}

export interface BackendsOptions {
  readonly profiles: readonly Profile[]
  readonly configured: readonly ConfiguredBackend[]
  /** An account's own upstreams in their order. A throw means that the store cannot answer. */
  readonly upstreamsOf: (accountId: string) => Promise<readonly Upstream[]>
  readonly vault: Vault
  readonly pools: UpstreamPools
  /** Whether accounts' own upstreams may be at public addresses only: where the accounts are not the operator's own. */
  readonly publicOnly: boolean
  /** What is known of models by name, of whatever accounts connect. */
  readonly modelFacts?: ReadonlyMap<string, ModelFacts>
  readonly maxCachedAccounts?: number
}

export interface CachedBackends extends Backends {
  /** Reads every account's upstreams anew when they are next needed. */
  forget(): void
}

/**
 * Which backends serve whom: an account's own upstreams, then configured ones that need no credential or have this
 * account's own; never one account's credential for another (contract 7). Own upstreams serve `svc-router/frontier`.
 * Simulated ones serve only where nothing real does.
 */
export function createBackends(options: BackendsOptions): CachedBackends {
  const { upstreamsOf, vault, pools, publicOnly, modelFacts } = options
  const maxCachedAccounts = options.maxCachedAccounts ?? defaultMaxCachedAccounts
  const configured = new Map(
    options.configured.map((entry) => [entry.id, { entry, backend: openConfigured(entry, pools) }]),
  )
  const profiles = new Map(
    options.profiles.map(({ id, backends }) => [id, backends.flatMap((backendId) => configured.get(backendId) ?? [])]),
  )
  const likeFrontier = new Set(options.profiles.filter(({ isLikeFrontier }) => isLikeFrontier).map(({ id }) => id))
  /** Least recently used first once it is full. A list is there once its promise has settled. */
  const own = new BoundedMap<string, OwnBackends>(maxCachedAccounts)

  const load = (accountId: string): Promise<readonly Backend[]> => {
    const loading = upstreamsOf(accountId).then((upstreams) =>
      upstreams
        .filter((upstream) => upstream.accountId === accountId)
        .map((row) => openUpstream(row, { vault, pools, publicOnly, facts: modelFacts?.get(row.model) })),
    )
    const cached: OwnBackends = { loading, chosen: new Map() }
    own.set(accountId, cached)
    return loading.then(
      (list) => (cached.list = list),
      (error: unknown) => {
        if (own.get(accountId) === cached) own.delete(accountId)
        throw error
      },
    )
  }

  const choose = (profileId: string, accountId: string, mine: readonly Backend[]): readonly Backend[] => {
    const all = [...mine]
    for (const { entry, backend } of profiles.get(profileId) ?? []) {
      const usable = entry.account === undefined ? entry.credential === undefined : entry.account === accountId
      if (usable) all.push(backend)
    }
    const real = all.filter((backend) => !backend.simulated)
    return real.length > 0 ? real : all
  }

  return {
    forProfile(askedId, accountId) {
      const profileId = likeFrontier.has(askedId) ? frontierId : askedId
      if (!profiles.has(profileId)) return []
      if (profileId !== frontierId) return choose(profileId, accountId, [])
      const cached = own.get(accountId)
      if (cached?.list !== undefined) {
        if (own.size >= maxCachedAccounts) {
          own.delete(accountId)
          own.set(accountId, cached)
        }
        let chosen = cached.chosen.get(profileId)
        if (chosen === undefined) cached.chosen.set(profileId, (chosen = choose(profileId, accountId, cached.list)))
        return chosen
      }
      return (cached?.loading ?? load(accountId)).then((mine) => choose(profileId, accountId, mine))
    },
    forget: () => own.clear(),
  }
}

/** The backends that one account brought itself. */
interface OwnBackends {
  readonly loading: Promise<readonly Backend[]>
  list?: readonly Backend[]
  /** By profile, what was chosen of them and the configured ones. */
  readonly chosen: Map<string, readonly Backend[]>
}

/** The backend of one configured entry. @throws TypeError where the entry cannot be used, as a full sentence */
export function openConfigured(entry: ConfiguredBackend, pools: UpstreamPools): Backend {
  const vendor: Vendor = vendors[entry.provider]
  const spoken = spokenBy(vendor, entry.format)
  const baseUrl = entry.baseUrl ?? vendorUrl({ ...vendor, ...spoken }, entry.region)
  if (baseUrl === null) throw new TypeError(`The backend ${entry.id} needs a base URL.`)
  const own = placeOf(vendor.signing, entry.credential?.reveal())
  return createBackend(
    {
      id: entry.id,
      failureDomain: entry.failureDomain,
      format: entry.format ?? vendor.formats[0],
      model: entry.model,
      simulated: entry.provider === 'simulated',
      facts: entry.facts,
      timeouts: entry.timeouts,
      dialect: spoken.dialect,
      baseUrl: fillBaseUrl(baseUrl, { region: entry.region ?? own.region, project: own.project }),
      authHeader: entry.authHeader ?? spoken.authHeader,
      credential: entry.credential,
      fixedHeaders: vendor.fixedHeaders,
      signing: vendor.signing,
    },
    pools,
  )
}

/** What an account's own upstream is opened with. @see BackendsOptions */
export interface UpstreamParts {
  readonly vault: Vault
  readonly pools: UpstreamPools
  readonly publicOnly: boolean
  /** What is known of its model. */
  readonly facts?: ModelFacts | undefined
}

/** The backend of an account's own upstream. One that cannot be used becomes a backend that says so, not an error for all others. */
export function openUpstream(upstream: Upstream, parts: UpstreamParts): Backend {
  const { vault, pools, publicOnly, facts } = parts
  const vendor = findVendor(upstream.provider)
  const spoken = spokenBy(vendor ?? vendors.custom, upstream.format ?? undefined)
  const baseUrl = upstream.baseUrl ?? spoken.baseUrl
  const spec: DescribedBackend = {
    id: upstream.id,
    failureDomain: failureDomainOf(upstream.provider, spoken.baseUrl, baseUrl),
    format: upstream.format ?? vendor?.formats[0] ?? 'openai-chat',
    model: upstream.model,
    simulated: upstream.provider === 'simulated',
    facts,
    timeouts: defaultTimeouts(facts?.capabilities?.reasoning === true),
    dialect: spoken.dialect,
  }
  if (vendor === undefined || baseUrl === null) return createUnusableBackend(spec, 'unreachable')
  try {
    const credential =
      upstream.sealedCredential === null
        ? undefined
        : vault.open(upstream.accountId, upstream.id, upstream.sealedCredential)
    const { signing, fixedHeaders } = vendor
    const authHeader = upstream.authHeader ?? spoken.authHeader
    const filled = fillBaseUrl(baseUrl, placeOf(signing, credential?.reveal()))
    return createBackend({ ...spec, baseUrl: filled, authHeader, credential, signing, fixedHeaders, publicOnly }, pools)
  } catch (error) {
    if (error instanceof SealError) return createUnusableBackend(spec, 'rejected_credentials')
    if (error instanceof TypeError) return createUnusableBackend(spec, 'unreachable')
    throw error
  }
}

/** The vendor, or the server where the user named another one than the vendor's. */
function failureDomainOf(provider: string, vendorUrl: string | null, baseUrl: string | null): string {
  if (baseUrl === null || baseUrl === vendorUrl || !URL.canParse(baseUrl)) return provider
  return `${provider} ${new URL(baseUrl).host}`
}
