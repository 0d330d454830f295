import { AccountsError } from '../accounts/accounts-error.ts'
import { findAccount } from '../accounts/accounts.ts'
import { localAccountName } from '../accounts/identity/first-run.ts'
import type { BackendConfig } from '../config/config.ts'
import type { Served } from '../config/settings-source.ts'
import type { Upstream } from '../domain/accounts.ts'
import { embeddingsFormatId, formatIds } from '../domain/format-id.ts'
import type { UpstreamTest } from '../domain/upstream.ts'
import type { ManagedAccess } from '../gateway/ports.ts'
import { BackendStatistics } from '../gateway/routing/backend-statistics.ts'
import { LearnedLimits } from '../gateway/routing/learned-limits.ts'
import { createVault } from '../providers/auth/vault.ts'
import { createBackends, openUpstream, type CachedBackends, type ConfiguredBackend } from '../providers/catalog.ts'
import { getText, type JsonPost, postJson } from '../providers/http/one-call.ts'
import { createUpstreamPools, type UpstreamPoolsOptions } from '../providers/http/upstream-pools.ts'
import type { VendorId } from '../providers/registry.ts'
import { testUpstream } from '../providers/test-upstream.ts'
import { describeBug } from '../runtime/describe-bug.ts'
import { SetupError } from '../runtime/setup-error.ts'
import { readVersion } from '../runtime/version.ts'
import type { Store } from '../storage/store.ts'
import type { Runtime } from './runtime.ts'

const poolsCloseMs = 1_000

/** Connections and credentials of providers, and which backends serve which account. */
export interface Providers extends AsyncDisposable {
  readonly backends: CachedBackends
  /** Opens the backends of other settings. Call the result to use them for new requests. */
  prepare(next: Served): Promise<() => void>
  /** Limits learned from backends' rejections, in memory. */
  readonly learned: LearnedLimits
  /** What this process measures of backends. */
  readonly statistics: BackendStatistics
  /** Connections to providers, the places that they take, and calls that wait for one. */
  connections(): { readonly connections: number; readonly places: number; readonly waiting: number }
  /** Sends a small request to a provider that an account connected. */
  test(upstream: Upstream): Promise<UpstreamTest>
  /** Fetches a public text of at most 256 KiB within a few seconds. @throws UpstreamError */
  getText(url: string): Promise<string>
  /** Sends a message of this service to a URL of its operator, within 10 s. @throws UpstreamError */
  readonly postJson: (post: JsonPost) => Promise<void>
}

export interface OpenProvidersDeps {
  readonly store: Store
  readonly managed: ManagedAccess
  /** Receives the system's error code if the process ran out of file descriptors or ports. */
  readonly onShortage?: (code: string) => void
  /** Maximum number of connections to one provider with one credential, and to all together. */
  readonly limits?: { readonly maxConnections: number; readonly maxTotal: number }
  /** Opens connections in place of the system's network. */
  readonly createConnector?: UpstreamPoolsOptions['createConnector']
  /** Writes the answer of a simulated provider to the text of a request; undefined for its usual answer. */
  readonly simulatedVoice?: (name: string, request: string) => string | undefined
}

/** Starts the configured simulated providers and prepares connections to all others. @throws SetupError if a backend's account does not exist */
export async function openProviders(
  { config, served, clock, random, log, keys, mintRequestId }: Runtime,
  { store, managed, onShortage, limits, createConnector, simulatedVoice }: OpenProvidersDeps,
): Promise<Providers> {
  await using opened = new AsyncDisposableStack()
  const pools = createUpstreamPools({
    clock,
    version: readVersion(),
    ...(onShortage && { onShortage }),
    ...(createConnector && { createConnector }),
    ...limits,
    onBug: (error) => log({ event: 'internal_error', requestId: '', ...describeBug(error) }),
  })
  const simulated = await startSimulated(served.backends, simulatedVoice, opened)
  opened.defer(() => pools.close(poolsCloseMs))
  const vault = createVault({ ...keys, random })
  const publicOnly = config.mode === 'production'
  const openBackends = (configured: readonly ConfiguredBackend[], { profiles }: Pick<Served, 'profiles'>) =>
    createBackends({
      profiles,
      configured,
      upstreamsOf: (accountId) => store.listUpstreams(accountId),
      hasManagedAccess: (accountId) => store.hasManagedAccess(accountId),
      managed,
      vault,
      pools,
      publicOnly,
      modelFacts: config.modelFacts,
    })
  const describe = async (backend: BackendConfig): Promise<ConfiguredBackend> =>
    backend.simulated
      ? { ...common(backend), ...simulated.get(backend.id) }
      : configuredBackend(backend, await accountOf(backend, store))
  let backends = openBackends(await Promise.all(served.backends.map(describe)), served)
  const owned = opened.move()
  const test = (upstream: Upstream): Promise<UpstreamTest> =>
    testUpstream(openUpstream(upstream, { vault, pools, publicOnly }), { clock, requestId: mintRequestId() })
  return {
    backends: {
      forProfile: (profileId, accountId) => backends.forProfile(profileId, accountId),
      stillServes: (backend, accountId) => backends.stillServes(backend, accountId),
      leftOut: (profileId, accountId) => backends.leftOut(profileId, accountId),
      forget: () => backends.forget(),
    },
    async prepare(next) {
      const described = await Promise.all(next.backends.map((backend) => describe(backend).catch(skipUnowned)))
      const opened = openBackends(
        described.filter((entry) => entry !== undefined),
        next,
      )
      return () => (backends = opened)
    },
    learned: new LearnedLimits(clock),
    statistics: new BackendStatistics(clock),
    connections: () => pools.counts(),
    test,
    getText: (url) => getText(url, pools, mintRequestId()),
    postJson: (post) => postJson(post, pools, mintRequestId()),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** Starts the simulated providers, and stops them with `opened`. Their code is loaded only if there are any. */
async function startSimulated(
  backends: readonly BackendConfig[],
  voice: OpenProvidersDeps['simulatedVoice'],
  opened: AsyncDisposableStack,
): Promise<ReadonlyMap<string, Pick<ConfiguredBackend, 'baseUrl' | 'format'>>> {
  const started = new Map<string, Pick<ConfiguredBackend, 'baseUrl' | 'format'>>()
  for (const [index, { id, simulated }] of backends.entries()) {
    if (!simulated) continue
    const { startSimulatedProvider } = await import('../simulation/providers/simulated-provider.ts')
    const provider = await startSimulatedProvider({
      name: id,
      say: voice === undefined ? undefined : (request) => voice(id, request),
    })
    opened.defer(() => provider.close())
    // Each uses the next format, so that a first try shows both relay and translation.
    started.set(id, { baseUrl: provider.baseUrl, format: formatIds[index % formatIds.length] })
  }
  return started
}

function common({ id, model, provider, failureDomain, facts, timeouts, addsMarks }: BackendConfig): ConfiguredBackend {
  return { id, model, provider: provider.preset as VendorId, failureDomain, facts, timeouts, leavesMarks: !addsMarks }
}

function configuredBackend(backend: BackendConfig, account: string | undefined): ConfiguredBackend {
  const { credential, provider } = backend
  const { baseUrl, region, authHeader, headers } = provider
  const format = backend.embeddings === undefined ? provider.format : embeddingsFormatId
  const base = { ...common(backend), baseUrl, region, format, authHeader, headers }
  if (credential === undefined) return base
  if (backend.managed) return { ...base, credential, managedBy: provider.name }
  return { ...base, credential, account }
}

/** Leaves out a backend whose account was deleted while the service runs: it serves nobody. */
function skipUnowned(error: unknown): undefined {
  if (!(error instanceof SetupError)) throw error
}

/** The ID of the account that owns a configured credential; undefined if it is nobody's (contract 7.2). */
async function accountOf(backend: BackendConfig, store: Store): Promise<string | undefined> {
  if (backend.credential === undefined || backend.managed) return undefined
  const named = backend.account ?? localAccountName
  try {
    return (await findAccount({ store }, named)).id
  } catch (error) {
    if (!(error instanceof AccountsError)) throw error
    throw new SetupError(
      `the backend "${backend.id}" belongs to the account "${named}", which does not exist`,
      'create it with "npx svc-router accounts create", or set "account" of the backend to one that "npx svc-router accounts list" shows',
    )
  }
}
