import { BackendWatch } from '../accounts/backends/backend-watch.ts'
import { OfferCache } from '../accounts/billing/offer-cache.ts'
import { withPorts, type Config } from '../config/config.ts'
import type { Served } from '../config/settings-source.ts'
import type { Offer } from '../domain/billing.ts'
import type { Settings } from '../domain/declared.ts'
import type { EventLog } from '../domain/events.ts'
import { formatById, relayById } from '../formats/formats.ts'
import { DigestCache } from '../gateway/auth/digest-cache.ts'
import { KeyCache } from '../gateway/auth/key-cache.ts'
import type { CacheSessions } from '../gateway/cache/cache-sessions.ts'
import type { FusionNotes } from '../gateway/fusion/fusion-notes.ts'
import { Gateway } from '../gateway/gateway.ts'
import { Generations } from '../gateway/generations/generations.ts'
import { LoadShedder } from '../gateway/overload/load-shedder.ts'
import type { ManagedAccess } from '../gateway/ports.ts'
import type { ProviderErrors } from '../gateway/request/provider-errors.ts'
import type { Conversations } from '../gateway/responses/conversations.ts'
import type { StoredResponses } from '../gateway/responses/stored-responses.ts'
import { CircuitBreakers } from '../gateway/routing/circuit-breakers.ts'
import { Api } from '../http/api.ts'
import { Catalog } from '../http/endpoints/catalog.ts'
import { longestBodyMs } from '../http/read-body.ts'
import { drainingReason, type Readiness } from '../http/readiness.ts'
import { RefusedRequests } from '../http/refused-requests.ts'
import { serve, type Listening } from '../http/serve.ts'
import { DescriptorWatch } from '../providers/http/descriptor-watch.ts'
import { systemClock, type Clock } from '../runtime/clock.ts'
import { errorName } from '../runtime/describe-bug.ts'
import { randomBase62 } from '../runtime/ids.ts'
import { deriveMacKeys } from '../runtime/mac.ts'
import { systemRandom, type RandomBytes } from '../runtime/random.ts'
import { createSealer } from '../runtime/sealer.ts'
import { readVersion } from '../runtime/version.ts'
import { listenForWeb } from '../web/serve-web.ts'
import { startAlerts } from './alerts.ts'
import { openAnswerStores } from './answer-stores.ts'
import { openBackgroundChecks, type BackgroundChecks } from './background-checks.ts'
import { openBilling } from './billing.ts'
import { openCacheSessions } from './cache-sessions.ts'
import { connectionLimits, openFilesLimit, wantedDescriptors, type ConnectionLimits } from './connection-limits.ts'
import { loadWeb } from './load-web.ts'
import { openMail } from './mail.ts'
import { openObservation, type Observation } from './observation.ts'
import { ownRecords } from './own-records.ts'
import { openProviders, type Providers } from './providers.ts'
import { rehashKeys } from './rehash-keys.ts'
import { createRuntime, withConfig, type Runtime } from './runtime.ts'
import { readDeclared, SettingsWatch } from './served-settings.ts'
import { openStatus, type Status } from './status.ts'
import { openStorage, type Storage } from './storage.ts'
import { startSweeps } from './sweeps.ts'
import type { ParentLink } from './worker-reports.ts'

const itemIdLength = 24

export interface AppOptions {
  readonly log: EventLog
  readonly clock?: Clock
  readonly random?: RandomBytes
  /** Of this process, if it is one of several workers. */
  readonly parent?: ParentLink | undefined
  /** Opens the database. Default: the one that is configured, in this process. */
  readonly openStorage?: typeof openStorage
}

export interface App {
  /** The configuration with the actual ports, which differ if a configured port was 0. */
  readonly config: Config
  /** Resolves with a reason code if the service can no longer record requests. `stop` must still be called. */
  readonly failed: Promise<string>
  /** Reports not ready, lets running requests finish, and closes all parts in reverse order. Later calls return the same promise. */
  stop(): Promise<void>
}

/**
 * The composition root: builds the running service from a checked configuration (contract 32).
 * @throws the error of any part that cannot start; the parts that had started are closed
 */
export async function startApp(given: Config, options: AppOptions): Promise<App> {
  const { clock = systemClock(), random = systemRandom(), parent } = options
  await using parts = new AsyncDisposableStack()
  const fatal = Promise.withResolvers<string>()
  const listeners: EventLog[] = [options.log]
  const log: EventLog = (event) => {
    for (const listener of listeners) listener(event)
  }
  const runtime = createRuntime(given, { clock, random, log })
  const observation = parts.use(await openObservation(runtime, parent))
  listeners.unshift(observation.note)
  const open = options.openStorage ?? openStorage
  const storage = observation.measure(parts.use(await open(runtime, fatal.resolve)))
  const declared = await readDeclared(storage.store)
  runtime.served.replace(given.settings.serve(declared))
  const breakers = new CircuitBreakers({ clock, random: () => random(1)[0]! / 256, log })
  const shedder = parts.use(new LoadShedder({ clock, random: () => random(1)[0]! / 256, log }))
  const { recentFailures } = observation
  const status = parts.use(openStatus(runtime, { storage, breakers, recentFailures, readiness: () => readiness() }))
  listeners.unshift((event) => status.board.note(event))
  const checks = openBackgroundChecks(runtime, storage)
  const { managed } = checks
  const { connections, descriptors } = watchDescriptors(runtime)
  parts.use(descriptors)
  const onShortage = (code: string): void => descriptors.report(code)
  const limits = { maxConnections: connections.provider, maxTotal: connections.upstream }
  const providers = parts.use(await openProviders(runtime, { store: storage.store, managed, onShortage, limits }))
  await checks.start(() => providers.backends.forget())
  parts.use(checks)
  const onFailed = (error: unknown): void => log({ event: 'store_failing', reason: errorName(error) })
  const { keys } = parts.use(await openKeyCache(runtime, { storage, breakers, providers, checks, declared, onFailed }))
  if (!storage.isOwnedElsewhere) parts.use(startSweeps(runtime, storage, onFailed))
  const sales = parts.use(await openBilling(runtime, { storage, onFailed }))
  const offerCache = new OfferCache({ billing: sales.sold?.plansDeps.billing, clock, log })
  const offers = (): Promise<readonly Offer[]> => offerCache.read()
  const answers = openAnswerStores(runtime, storage)
  parts.defer(() => answers.providerErrors.flush())
  const sessions = parts.use(openCacheSessions(runtime, storage))
  const mail = parts.use(await openMail(runtime))

  let isDraining = false
  const refused = new RefusedRequests({ store: storage.store, clock, log })
  parts.defer(() => refused.close())
  const readiness = (): Readiness => readinessOf({ isDraining, keys, storage })
  const web = parts.use(await listenForWeb({ ...given.appListen, connections: connections.web, clock }))
  const { metricsPort } = observation
  const withPort = (port: number): Config => withPorts(given, { api: port, app: web.port, metrics: metricsPort })
  const shared = { storage, breakers, shedder, providers, readiness, managed }
  const deps = { ...answers, ...shared, sessions, keys, offers, refused, observation, status }
  const listening = await listen(runtime, { withPort, connections }, deps)
  const { api } = listening
  shedder.start(() => api.openShare)
  observation.watch({ ...shared, listening })
  const config = withPort(listening.port)
  const started = withConfig(runtime, config)
  const alerts = parts.use(startAlerts(started, { storage, mail, providers, onFailed }))
  const shown = { ...answers, storage, sales, offers, providers, managed, mail, status, observation, breakers, api }
  web.serve(() => loadWeb(started, { ...shown, alerts }))
  descriptors.start()
  status.startReporting(config.listen.port)
  log({ event: 'started', baseUrl: config.baseUrl, version: readVersion() })

  const owned = parts.move()
  let stopping: Promise<void> | undefined
  const stop = (): Promise<void> => {
    isDraining = true
    storage.ownNode.reportNow()
    log({ event: 'draining', openRequests: api.openRequests })
    return drainAndClose(started, listening, owned)
  }
  return { config, failed: fatal.promise, stop: () => (stopping ??= stop()) }
}

/** Lets running requests finish, then closes all parts. */
async function drainAndClose(
  { config, log }: Runtime,
  listening: Pick<Listening, 'retire' | 'drain'>,
  owned: AsyncDisposableStack,
): Promise<void> {
  listening.retire()
  await new Promise<void>((resolve) => setTimeout(resolve, config.drainDelayMs))
  let cutRequests = 0
  try {
    const aborted = await listening.drain(config.drainMs)
    cutRequests = aborted.running + aborted.unread
    if (cutRequests > 0) log({ event: 'drain_limit', limitMs: config.drainMs, ...aborted })
  } finally {
    try {
      await owned.disposeAsync()
    } finally {
      log({ event: 'stopped', cutRequests })
    }
  }
}

/** How many connections each listener accepts, and what watches the file descriptors that they use. */
function watchDescriptors({ config, clock, log }: Runtime): {
  readonly connections: ConnectionLimits
  readonly descriptors: DescriptorWatch
} {
  const configured = config.limits.connections
  const limit = openFilesLimit()
  const descriptors = new DescriptorWatch({ clock, log, wanted: wantedDescriptors(configured), limit })
  return { connections: connectionLimits(configured, limit), descriptors }
}

interface OpenKeyCacheDeps {
  readonly storage: Storage
  readonly breakers: CircuitBreakers
  readonly providers: Providers
  readonly checks: Pick<BackgroundChecks, 'settingsChanged'>
  /** The declared settings that are in force. */
  readonly declared: Settings
  readonly onFailed: (error: unknown) => void
}

/** The key cache, which also reports every change of the store's revision to those that cache other data. */
export async function openKeyCache(
  { config, served, clock, log }: Runtime,
  { storage, breakers, providers, checks, declared, onFailed }: OpenKeyCacheDeps,
): Promise<Disposable & { readonly keys: KeyCache }> {
  using parts = new DisposableStack()
  const watch = new BackendWatch({ store: storage.store, keeper: breakers, clock, onFailed })
  parts.defer(() => watch.close())
  const prepare = async (next: Served): Promise<() => void> => {
    const useBackends = await providers.prepare(next)
    return () => {
      useBackends()
      void checks.settingsChanged().catch(onFailed)
    }
  }
  const settings = new SettingsWatch({ config, served, store: storage.store, clock, log, prepare }, declared)
  parts.defer(() => settings.close())
  const keys = new KeyCache(storage.keys, clock, log, () => {
    providers.backends.forget()
    watch.refresh()
    settings.refresh()
  })
  await keys.start()
  parts.defer(() => keys.close())
  // After the key cache has read the revision: it reports every later change to `watch`.
  await watch.start()
  settings.refresh()
  const owned = parts.move()
  return { keys, [Symbol.dispose]: () => owned.dispose() }
}

interface BuildGatewayDeps {
  readonly storage: Storage
  readonly keys: KeyCache
  readonly providers: Providers
  readonly breakers: CircuitBreakers
  readonly shedder: LoadShedder
  readonly sessions: CacheSessions
  readonly stored: StoredResponses
  readonly notes: FusionNotes
  readonly providerErrors: ProviderErrors
  readonly observation: Pick<Observation, 'observer' | 'tracer' | 'onRefused'>
  readonly status: Pick<Status, 'readFailing'>
}

function buildGateway(runtime: Runtime, deps: BuildGatewayDeps): Gateway {
  const { config, served, clock, random, log, peppers, links } = runtime
  const { storage, keys, providers, breakers, shedder, sessions, stored, notes, providerErrors } = deps
  const { observation, status } = deps
  return new Gateway({
    clock,
    log,
    breakers,
    shedder,
    sessions,
    readFailsElsewhere: () => status.readFailing(),
    ledger: storage.ledger,
    randomBytes: random,
    links,
    authentication: {
      keys,
      digests: new DigestCache(peppers),
      planById: (id) => served.planById(id),
      findAccount: (id) => storage.store.findAccount(id),
      nowMs: () => storage.nowMs(),
      rehash: rehashKeys(runtime, storage.store),
    },
    get profiles() {
      return served.profiles
    },
    backends: providers.backends,
    statistics: providers.statistics,
    learned: providers.learned,
    formats: formatById,
    relays: relayById,
    stored,
    notes,
    providerErrors,
    readBudgets: (accountId) => storage.store.listBudgets(accountId),
    readSpending: (accountId, sinceMs) => storage.store.readBudgetSpending(accountId, sinceMs),
    observer: observation.observer,
    tracer: observation.tracer,
    mintId: () => randomBase62(itemIdLength, random),
    keepAliveMs: config.keepAliveMs,
    cacheKeys: deriveMacKeys(runtime.keys, 'provider-cache').current,
  })
}

function openGenerations(
  { config, keys, clock, random, log, links, mintRequestId }: Runtime,
  storage: Storage,
  gateway: Gateway,
): Generations {
  return new Generations({
    gateway,
    store: storage.generations,
    sealer: createSealer({ ...keys, random }),
    clock,
    log,
    links,
    relays: relayById,
    retentionMs: config.retryRetentionMs,
    detachedMs: config.limits.detachedMs,
    mintRequestId,
  })
}

interface BuildApiDeps extends BuildGatewayDeps {
  readonly conversations: Conversations
  readonly offers: () => Promise<readonly Offer[]>
  readonly readiness: () => Readiness
  readonly refused: RefusedRequests
  readonly managed: ManagedAccess
}

interface ListenOptions {
  readonly withPort: (port: number) => Config
  readonly connections: ConnectionLimits
}

function listen(runtime: Runtime, { withPort, connections }: ListenOptions, deps: BuildApiDeps): Promise<Listening> {
  const { limits, listen: at } = runtime.config
  return serve((port) => buildApi(withConfig(runtime, withPort(port)), deps), {
    host: at.host,
    port: at.port,
    sharesPort: at.sharesPort,
    headerBytes: limits.headerBytes,
    headerMs: limits.headerMs,
    requestMs: limits.headerMs + longestBodyMs(limits.bodyBytes, limits.bodyMs),
    connections: connections.api,
    probeConnections: connections.probes,
  })
}

/** The API over parts that are running. */
export function buildApi(runtime: Runtime, deps: BuildApiDeps): Api {
  const { config, served, clock, log, links, mintRequestId } = runtime
  const { stored, conversations, offers, readiness, refused, managed } = deps
  const nowMs = (): number => clock.nowMs()
  const { baseUrl } = config
  const catalogDeps = {
    baseUrl,
    links,
    offers,
    isManagedAccessOn: () => served.backends.some(({ managed: is, provider }) => is && managed.isOn(provider.name)),
    createdAt: Math.floor(nowMs() / 1000),
    get plans() {
      return served.plans
    },
    get profiles() {
      return served.profiles
    },
    get backends() {
      return served.backends
    },
  }
  const gateway = buildGateway(runtime, deps)
  return new Api({
    gateway,
    generations: openGenerations(runtime, deps.storage, gateway),
    stored,
    catalog: new Catalog(catalogDeps),
    conversations,
    ownRecords: ownRecords(runtime, deps.storage),
    links,
    baseUrl,
    edgeGate: config.edgeGate.enabled,
    corsOrigins: config.corsOrigins,
    trustedProxies: config.listen.trustedProxies,
    limits: config.limits,
    clock,
    nowMs,
    mintRequestId,
    log,
    readiness,
    refused,
    onRefused: deps.observation.onRefused,
  })
}

/** See `Readiness`. */
export function readinessOf({
  isDraining,
  keys,
  storage,
}: {
  isDraining: boolean
  keys: Pick<KeyCache, 'isFresh'>
  storage: Pick<Storage, 'isHealthy'>
}): Readiness {
  const reasons: string[] = []
  if (isDraining) reasons.push(drainingReason)
  if (!keys.isFresh()) reasons.push('the key store does not answer')
  if (!storage.isHealthy()) reasons.push('requests cannot be recorded')
  return { ready: reasons.length === 0, reasons }
}
