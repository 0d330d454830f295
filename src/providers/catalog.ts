import type { Upstream } from '../domain/accounts.ts'
import type { FormatId } from '../domain/format-id.ts'
import type { BackendFacts, ModelFacts } from '../domain/model-facts.ts'
import { frontierId } from '../domain/profiles.ts'
import type { Profile } from '../domain/profiles.ts'
import type { ExcludedBackend, ExclusionReason } from '../domain/routing-plan.ts'
import type { Backend, Backends, BackendTimeouts, ManagedAccess } from '../gateway/ports.ts'
import { BoundedMap } from '../runtime/bounded-map.ts'
import { SealError } from '../runtime/sealer.ts'
import type { Secret } from '../runtime/secret.ts'
import type { Vault } from './auth/vault.ts'
import { createBackend, createUnusableBackend } from './backend.ts'
import type { DescribedBackend } from './backend.ts'
import { fillBaseUrl, isPlainHttp, locationOf, vendorUrl } from './cloud-location.ts'
import type { UpstreamPools } from './http/upstream-pools.ts'
import { openPriceCatalog, type PriceCatalog } from './prices/price-catalog.ts'
import { endpointFormats, findVendor, vendorEndpoint, vendors } from './registry.ts'
import type { Vendor, VendorId } from './registry.ts'
import { defaultTimeouts } from './timeouts.ts'

const defaultMaxCachedAccounts = 10_000

/** A configured backend. Address and format come from the vendor's registry entry unless set here. */
export interface ConfiguredBackend {
  readonly id: string
  readonly provider: VendorId
  readonly model: string
  /** Required if the vendor's entry has none. */
  readonly baseUrl?: string | undefined
  /** For vendors with regions. */
  readonly region?: string | undefined
  readonly format?: FormatId | undefined
  readonly authHeader?: string | undefined
  /** Additional headers of every request: lowercase name, and value. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly failureDomain: string
  readonly facts?: BackendFacts | undefined
  readonly timeouts: BackendTimeouts
  readonly credential?: Secret | undefined
  /** The account that owns the credential: the only one that this backend serves. */
  readonly account?: string | undefined
  /**
   * Instead of `account`: the provider's name if the credential is the operator's, for accounts with managed access.
   */
  readonly managedBy?: string | undefined
  /** Whether no cache marks are added to requests. */
  readonly leavesMarks?: boolean
}

export interface BackendsOptions {
  readonly profiles: readonly Profile[]
  readonly configured: readonly ConfiguredBackend[]
  /** An account's own upstreams in order. Throws if the store is unavailable. */
  readonly upstreamsOf: (accountId: string) => Promise<readonly Upstream[]>
  /** Whether an operator approved managed access for an account. Throws if the store is unavailable. */
  readonly hasManagedAccess: (accountId: string) => Promise<boolean>
  readonly managed: ManagedAccess
  readonly vault: Vault
  readonly pools: UpstreamPools
  /** Whether accounts' own upstreams must have public addresses: if the accounts are not the operator's own. */
  readonly publicOnly: boolean
  /** Known model properties by model name, for upstreams that accounts connect. */
  readonly modelFacts?: ReadonlyMap<string, ModelFacts>
  readonly maxCachedAccounts?: number
}

export interface CachedBackends extends Backends {
  /** Clears the cache of upstreams and managed access, so that both are read again when next needed. */
  forget(): void
  /** Configured backends of a profile that do not currently serve an account, and why. */
  leftOut(profileId: string, accountId: string): Promise<readonly ExcludedBackend[]>
}

/**
 * Decides which backends serve an account: its own upstreams, then configured backends that need no credential, have
 * the account's own credential, or have the operator's while managed access is on and approved for this account; never
 * another account's credential (contract 7.1, 7.2). Own upstreams serve `svc-router/frontier`. Simulated backends serve
 * only if there is no real one.
 */
export function createBackends(options: BackendsOptions): CachedBackends {
  const { managed, maxCachedAccounts = defaultMaxCachedAccounts } = options
  const priced = withPrices(options)
  const { configured, profiles } = openAllConfigured(priced)
  const likeFrontier = frontierProfiles(options)
  /** Least recently used first once full. Its values are available once their promise has settled. */
  const own = new BoundedMap<string, OwnBackends>(maxCachedAccounts)

  const isManaged = options.configured.some(({ managedBy }) => managedBy !== undefined)
  /** Profiles that depend on the account's own data: the others need no store access. */
  const personal = new Set([frontierId, ...(isManaged ? profiles.keys() : [])])

  const load = (accountId: string): Promise<OwnAccess> => {
    const loading = readOwnAccess(accountId, priced, isManaged)
    const cached: OwnBackends = { loading, chosen: new Map() }
    own.set(accountId, cached)
    return loading.then(
      (access) => (cached.access = access),
      (error: unknown) => {
        if (own.get(accountId) === cached) own.delete(accountId)
        throw error
      },
    )
  }

  const reasonAgainst = (entry: ConfiguredBackend, accountId: string, isApproved: boolean) =>
    exclusionOf(entry, accountId, isApproved, managed)
  const served = (askedId: string): string => (likeFrontier.has(askedId) ? frontierId : askedId)

  const choose = (profileId: string, accountId: string, { backends, isApproved }: OwnAccess): readonly Backend[] => {
    const all = profileId === frontierId ? [...backends] : []
    for (const { entry, backend } of profiles.get(profileId) ?? [])
      if (reasonAgainst(entry, accountId, isApproved) === undefined) all.push(backend)
    return realOr(all)
  }

  return {
    forProfile(askedId, accountId) {
      const profileId = served(askedId)
      if (!profiles.has(profileId)) return []
      if (!personal.has(profileId)) return choose(profileId, accountId, nothingOwn)
      const cached = own.get(accountId)
      if (cached?.access !== undefined) {
        if (own.size >= maxCachedAccounts) {
          own.delete(accountId)
          own.set(accountId, cached)
        }
        let chosen = cached.chosen.get(profileId)
        if (chosen === undefined) cached.chosen.set(profileId, (chosen = choose(profileId, accountId, cached.access)))
        return chosen
      }
      return (cached?.loading ?? load(accountId)).then((access) => choose(profileId, accountId, access))
    },
    stillServes(backend, accountId) {
      const entry = configured.get(backend.id)?.entry
      if (entry !== undefined && entry.managedBy === undefined)
        return reasonAgainst(entry, accountId, false) === undefined
      const serves = (access: OwnAccess): boolean =>
        entry === undefined
          ? access.backends.some((own) => [own, ...(own.otherEndpoints ?? [])].some((at) => isSameCall(at, backend)))
          : reasonAgainst(entry, accountId, access.isApproved) === undefined
      const cached = own.get(accountId)
      if (cached?.access !== undefined) return serves(cached.access)
      return (cached?.loading ?? load(accountId)).then(serves)
    },
    forget: () => own.clear(),
    async leftOut(askedId, accountId) {
      const profileId = served(askedId)
      const access = personal.has(profileId) ? await readOwnAccess(accountId, priced, isManaged) : nothingOwn
      const chosen = choose(profileId, accountId, access)
      return (profiles.get(profileId) ?? []).flatMap(({ entry, backend }): ExcludedBackend[] => {
        if (chosen.includes(backend)) return []
        return [{ backend: entry.id, reason: reasonAgainst(entry, accountId, access.isApproved) ?? 'simulated' }]
      })
    },
  }
}

type PricedOptions = BackendsOptions & { readonly prices: PriceCatalog }

interface OpenedBackend {
  readonly entry: ConfiguredBackend
  readonly backend: Backend
}

/** The configured backends by ID, and those of each profile in its order. */
function openAllConfigured({ configured: entries, profiles: all, pools, prices }: PricedOptions): {
  readonly configured: ReadonlyMap<string, OpenedBackend>
  readonly profiles: ReadonlyMap<string, readonly OpenedBackend[]>
} {
  const configured = new Map(
    entries.map((entry) => [entry.id, { entry, backend: openConfigured(entry, pools, prices) }]),
  )
  const profiles = new Map(
    all.map(({ id, backends }) => [id, backends.flatMap((backendId) => configured.get(backendId) ?? [])]),
  )
  return { configured, profiles }
}

/** The backends that are not simulated, or all if there are no others. */
function realOr(all: readonly Backend[]): readonly Backend[] {
  const real = all.filter((backend) => !backend.simulated)
  return real.length > 0 ? real : all
}

function frontierProfiles({ profiles }: BackendsOptions): ReadonlySet<string> {
  return new Set(profiles.filter(({ isLikeFrontier }) => isLikeFrontier).map(({ id }) => id))
}

/** The options with the prices of everything that they serve. */
function withPrices(options: BackendsOptions): PricedOptions {
  const { configured, modelFacts = new Map<string, ModelFacts>() } = options
  const prices = openPriceCatalog([
    ...configured.map(({ id, facts }) => [`backend ${id}`, facts?.usdPerMillion] as const),
    ...Array.from(modelFacts, ([model, facts]) => [`model ${model}`, facts.usdPerMillion] as const),
  ])
  return { ...options, prices }
}

/** Why a configured backend does not serve an account; undefined if it does. */
function exclusionOf(
  { managedBy, account, credential }: ConfiguredBackend,
  accountId: string,
  isApproved: boolean,
  managed: BackendsOptions['managed'],
): ExclusionReason | undefined {
  if (managedBy !== undefined) {
    if (!isApproved) return 'managed_not_approved'
    return managed.isOn(managedBy) ? undefined : 'managed_off'
  }
  return (account === undefined ? credential === undefined : account === accountId) ? undefined : 'another_account'
}

async function readOwnAccess(accountId: string, options: PricedOptions, isManaged: boolean): Promise<OwnAccess> {
  const { upstreamsOf, hasManagedAccess, vault, pools, publicOnly, modelFacts, prices } = options
  const upstreams = await upstreamsOf(accountId)
  const backends = upstreams
    .filter((upstream) => upstream.accountId === accountId)
    .map((row) => openUpstream(row, { vault, pools, publicOnly, prices, facts: modelFacts?.get(row.model) }))
  return { backends, isApproved: isManaged && (await hasManagedAccess(accountId)) }
}

/** Whether two backends have the same endpoint and credential. */
function isSameCall(one: Backend, other: Backend): boolean {
  return one.id === other.id && one.issuer === other.issuer
}

/** An account's own access: its backends, and whether it may use the operator's. */
interface OwnAccess {
  readonly backends: readonly Backend[]
  readonly isApproved: boolean
}

const nothingOwn: OwnAccess = { backends: [], isApproved: false }

interface OwnBackends {
  readonly loading: Promise<OwnAccess>
  access?: OwnAccess
  /** The chosen backends by profile, its own and configured ones. */
  readonly chosen: Map<string, readonly Backend[]>
}

/** The backend of one configuration entry. @throws TypeError if the entry is invalid, with a full sentence */
export function openConfigured(entry: ConfiguredBackend, pools: UpstreamPools, prices?: PriceCatalog): Backend {
  const vendor: Vendor = vendors[entry.provider]
  const own = locationOf(vendor.signing, entry.credential?.reveal())
  return openEndpoints(endpointFormats(vendor, entry.format), (format) => {
    const vendorApi = vendorEndpoint(vendor, format)
    const baseUrl = entry.baseUrl ?? vendorUrl({ ...vendor, ...vendorApi }, entry.region)
    if (baseUrl === null) throw new TypeError(`The backend ${entry.id} needs a base URL.`)
    return createBackend(
      {
        id: entry.id,
        failureDomain: entry.failureDomain,
        format,
        model: entry.model,
        simulated: entry.provider === 'simulated',
        isManaged: entry.managedBy !== undefined,
        facts: entry.facts,
        price: prices?.priceOf(
          { vendor: entry.provider, model: entry.model, region: entry.facts?.region },
          entry.facts?.usdPerMillion,
        ),
        timeouts: entry.timeouts,
        dialect: entry.leavesMarks === true ? { ...vendorApi.dialect, leavesMarks: true } : vendorApi.dialect,
        baseUrl: fillBaseUrl(baseUrl, { region: entry.region ?? own.region, project: own.project }),
        authHeader: entry.authHeader ?? vendorApi.authHeader,
        credential: entry.credential,
        fixedHeaders: { ...entry.headers, ...vendor.fixedHeaders },
        signing: vendor.signing,
      },
      pools,
    )
  })
}

/** One backend at each of its endpoints, the preferred one first. */
function openEndpoints(
  [first, ...others]: readonly [FormatId, ...FormatId[]],
  open: (format: FormatId) => Backend,
): Backend {
  return others.length === 0 ? open(first) : { ...open(first), otherEndpoints: others.map(open) }
}

/** What opening an account's own upstream needs. @see BackendsOptions */
export interface UpstreamDeps {
  readonly vault: Vault
  readonly pools: UpstreamPools
  readonly publicOnly: boolean
  /** Known properties of its model. */
  readonly facts?: ModelFacts | undefined
  /** Absent for test requests, which have no record. */
  readonly prices?: PriceCatalog
}

/**
 * The backend of an account's own upstream. An invalid one becomes a backend that reports its error, so that the others
 * still work.
 */
export function openUpstream(upstream: Upstream, deps: UpstreamDeps): Backend {
  const { vault, pools, publicOnly, facts, prices } = deps
  const vendor = findVendor(upstream.provider)
  const known = vendor ?? vendors.custom
  return openEndpoints(endpointFormats(known, upstream.format ?? undefined), (format) => {
    const vendorApi = vendorEndpoint(known, format)
    const baseUrl = upstream.baseUrl ?? vendorApi.baseUrl
    const spec: DescribedBackend = {
      id: upstream.id,
      owner: upstream.accountId,
      failureDomain: failureDomainOf(upstream.provider, vendorApi.baseUrl, baseUrl),
      format,
      model: upstream.model,
      simulated: upstream.provider === 'simulated',
      facts,
      price: prices?.priceOf(
        { vendor: vendor === undefined ? 'custom' : (upstream.provider as VendorId), model: upstream.model },
        facts?.usdPerMillion,
      ),
      timeouts: {
        ...defaultTimeouts(facts?.capabilities?.reasoning === true, upstream.provider),
        ...upstream.timeouts,
      },
      dialect: vendorApi.dialect,
    }
    if (vendor === undefined || baseUrl === null) return createUnusableBackend(spec, 'unreachable')
    try {
      const credential =
        upstream.sealedCredential === null
          ? undefined
          : vault.open(upstream.accountId, upstream.id, upstream.sealedCredential)
      // Also applies to upstreams connected before the service was set to production.
      if (publicOnly && credential !== undefined && isPlainHttp(baseUrl))
        return createUnusableBackend(spec, 'unreachable')
      const { signing } = vendor
      const fixedHeaders = { ...upstream.headers, ...vendor.fixedHeaders }
      const authHeader = upstream.authHeader ?? vendorApi.authHeader
      const filled = fillBaseUrl(baseUrl, locationOf(signing, credential?.reveal()))
      const reached = { baseUrl: filled, authHeader, credential, signing, fixedHeaders, publicOnly }
      return createBackend({ ...spec, ...reached }, pools)
    } catch (error) {
      if (error instanceof SealError) return createUnusableBackend(spec, 'rejected_credentials')
      if (error instanceof TypeError) return createUnusableBackend(spec, 'unreachable')
      throw error
    }
  })
}

/** The vendor, or the server if the user set another base URL. */
function failureDomainOf(provider: string, vendorUrl: string | null, baseUrl: string | null): string {
  if (baseUrl === null || baseUrl === vendorUrl || !URL.canParse(baseUrl)) return provider
  return `${provider} ${new URL(baseUrl).host}`
}
