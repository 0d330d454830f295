import { readVersion } from '../runtime/version.ts'
import { findAccount } from '../accounts/accounts.ts'
import { localAccountName } from '../accounts/identity/first-run.ts'
import { AccountsError } from '../accounts/accounts-error.ts'
import type { BackendConfig, Config } from '../config/config.ts'
import { sealingKeys } from '../config/sealing-keys.ts'
import type { Upstream } from '../domain/accounts.ts'
import type { Clock } from '../runtime/clock.ts'
import type { EventLog } from '../domain/events.ts'
import type { ManagedAccess } from '../gateway/ports.ts'
import { LearnedLimits } from '../gateway/routing/learned-limits.ts'
import { idMinter } from '../runtime/ids.ts'
import type { UpstreamTest } from '../domain/upstream.ts'
import type { RandomBytes } from '../runtime/random.ts'
import { SetupError } from '../runtime/setup-error.ts'
import { embeddingsFormatId, formatIds } from '../domain/format-id.ts'
import { describeBug } from '../runtime/describe-bug.ts'
import { getText } from '../providers/http/get-text.ts'
import { createBackends, openUpstream, type CachedBackends, type ConfiguredBackend } from '../providers/catalog.ts'
import { testUpstream } from '../providers/test-upstream.ts'
import type { VendorId } from '../providers/registry.ts'
import { startSimulatedProvider } from '../simulation/providers/simulated-provider.ts'
import { createUpstreamPools } from '../providers/http/upstream-pools.ts'
import { createVault } from '../providers/auth/vault.ts'
import type { Store } from '../storage/store.ts'

const poolsCloseMs = 1_000

/** Everything that reaches models: connections, credentials, and which backends serve whom. */
export interface Providers extends AsyncDisposable {
  readonly backends: CachedBackends
  /** What backends' refusals teach while the process lives. */
  readonly learned: LearnedLimits
  /** One small call to what an account connected. */
  test(upstream: Upstream): Promise<UpstreamTest>
  /** A public text by its address, within seconds and up to a quarter of a megabyte. @throws UpstreamError */
  getText(url: string): Promise<string>
}

export interface ProvidersDeps {
  readonly storage: { readonly store: Store }
  readonly managed: ManagedAccess
  readonly clock: Clock
  readonly random: RandomBytes
  readonly log: EventLog
  /** Told the system's code where this service had nothing left to connect with. */
  readonly onShortage?: (code: string) => void
  /** What simulated providers say, by their names, to all that a request tells them; undefined leaves the usual. */
  readonly simulatedVoice?: (name: string, request: string) => string | undefined
}

/**
 * Starts the simulated providers that the configuration has, and opens the way to all others.
 * @throws SetupError where a backend's account does not exist
 */
export async function openProviders(
  config: Config,
  { storage, managed, clock, random, log, onShortage, simulatedVoice }: ProvidersDeps,
): Promise<Providers> {
  await using opened = new AsyncDisposableStack()
  const pools = createUpstreamPools({
    clock,
    version: readVersion(),
    ...(onShortage && { onShortage }),
    onBug: (error) => log({ event: 'internal_error', requestId: '', ...describeBug(error) }),
  })
  const configured: ConfiguredBackend[] = []
  for (const backend of config.backends) {
    if (!backend.simulated) {
      configured.push(await configuredBackend(backend, storage.store))
      continue
    }
    const simulated = await startSimulatedProvider({
      name: backend.id,
      say: simulatedVoice === undefined ? undefined : (request) => simulatedVoice(backend.id, request),
    })
    opened.defer(() => simulated.close())
    // Each speaks the next format, so that a first try shows both lanes.
    const format = formatIds[configured.length % formatIds.length]
    configured.push({ ...common(backend), baseUrl: simulated.baseUrl, format })
  }
  opened.defer(() => pools.close(poolsCloseMs))
  const vault = createVault({ ...sealingKeys(config.secrets), random })
  const publicOnly = config.mode === 'production'
  const mintRequestId = idMinter('req_', () => clock.nowMs(), random)
  const backends = createBackends({
    profiles: config.profiles,
    configured,
    upstreamsOf: (accountId) => storage.store.listUpstreams(accountId),
    hasManagedAccess: (accountId) => storage.store.hasManagedAccess(accountId),
    managed,
    vault,
    pools,
    publicOnly,
    modelFacts: config.modelFacts,
  })
  const owned = opened.move()
  const test = (upstream: Upstream): Promise<UpstreamTest> =>
    testUpstream(openUpstream(upstream, { vault, pools, publicOnly }), { clock, requestId: mintRequestId() })
  const text = (url: string): Promise<string> => getText(url, pools, mintRequestId())
  const learned = new LearnedLimits(clock)
  return { backends, learned, test, getText: text, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

function common({ id, model, provider, failureDomain, facts, timeouts }: BackendConfig): ConfiguredBackend {
  return { id, model, provider: provider.preset as VendorId, failureDomain, facts, timeouts }
}

async function configuredBackend(backend: BackendConfig, store: Store): Promise<ConfiguredBackend> {
  const { credential, provider } = backend
  const { baseUrl, region, authHeader, headers } = provider
  const format = backend.embeddings === undefined ? provider.format : embeddingsFormatId
  const base = { ...common(backend), baseUrl, region, format, authHeader, headers }
  if (credential === undefined) return base
  if (backend.managed) return { ...base, credential, managedBy: provider.name }
  return { ...base, credential, account: await accountOf(backend, store) }
}

/** The id of the one account that a configured credential belongs to (contract 7.2). */
async function accountOf(backend: BackendConfig, store: Store): Promise<string> {
  const named = backend.account ?? localAccountName
  try {
    return (await findAccount({ store }, named)).id
  } catch (error) {
    if (!(error instanceof AccountsError)) throw error
    throw new SetupError(
      `the backend "${backend.id}" belongs to the account "${named}", which does not exist`,
      'make it with "npx svc-router accounts create", or set "account" of that backend to one of "npx svc-router accounts list"',
    )
  }
}
