import { RecentFailures } from '../accounts/status/recent-failures.ts'
import { OfferCache } from '../accounts/billing/offer-cache.ts'
import { BackendWatch } from '../accounts/backends/backend-watch.ts'
import { readVersion } from '../runtime/version.ts'
import { withPorts, type Config } from '../config/config.ts'
import { sealingKeys } from '../config/sealing-keys.ts'
import { errorName } from '../runtime/describe-bug.ts'
import type { Offer } from '../domain/billing.ts'
import { systemClock, type Clock } from '../runtime/clock.ts'
import type { EventLog } from '../domain/events.ts'
import { idMinter, randomBase62 } from '../runtime/ids.ts'
import { linksFor } from '../domain/links.ts'
import { systemRandom, type RandomBytes } from '../runtime/random.ts'
import { createSealer } from '../runtime/sealer.ts'
import { DescriptorWatch } from '../providers/http/descriptor-watch.ts'
import { formatById, relayById } from '../formats/formats.ts'
import { DigestCache } from '../gateway/auth/digest-cache.ts'
import { FusionNotes } from '../gateway/fusion/fusion-notes.ts'
import { Gateway } from '../gateway/gateway.ts'
import { CircuitBreakers } from '../gateway/routing/circuit-breakers.ts'
import { KeyCache } from '../gateway/auth/key-cache.ts'
import type { Ledger } from '../gateway/ports.ts'
import { ProviderErrors } from '../gateway/request/provider-errors.ts'
import { Conversations } from '../gateway/responses/conversations.ts'
import { StoredResponses } from '../gateway/responses/stored-responses.ts'
import { Api, type Readiness } from '../http/api.ts'
import { Catalog } from '../http/endpoints/catalog.ts'
import { longestBodyMs } from '../http/read-body.ts'
import { RefusedRequests } from '../http/refused-requests.ts'
import { serve, type Listening } from '../http/serve.ts'
import { openBackgroundChecks } from './background-checks.ts'
import { openBilling } from './billing.ts'
import { openProviders } from './providers.ts'
import { openStatus } from './status.ts'
import { openStorage, type Storage } from './storage.ts'
import { openMail, openWeb } from './web.ts'
import { startProviderErrorSweep } from '../storage/sweeps/provider-error-sweep.ts'
import type { Store } from '../storage/store.ts'
import { startRequestSweep } from '../storage/sweeps/request-sweep.ts'
import { startResponseSweep } from '../storage/sweeps/response-sweep.ts'
import { listenForWeb } from '../web/serve-web.ts'

/** Time that load balancers get to see that this server is not ready any more, before it stops listening. */
const unreadyBeforeCloseMs = { local: 100, production: 5_000 } as const
const itemIdLength = 24

export interface AppOptions {
  readonly log: EventLog
  /** Milliseconds from not ready to not listening. Default: 100 in local mode, 5,000 in production. */
  readonly unreadyMs?: number
  readonly clock?: Clock
  readonly random?: RandomBytes
}

export interface App {
  /** The configuration with the port that the system chose. */
  readonly config: Config
  /** Resolves with a code when the service cannot go on by itself. `stop` is still to be called, and works. */
  readonly failed: Promise<string>
  /** Ready turns false, running answers finish, everything is closed in reverse order. Can be called more than once. */
  stop(): Promise<void>
}

/** The composition root: a checked configuration in, the running service out (contract 32). @throws what a part throws that cannot start */
export async function startApp(
  given: Config,
  { log: givenLog, clock = systemClock(), random = systemRandom(), unreadyMs }: AppOptions,
): Promise<App> {
  await using parts = new AsyncDisposableStack()
  const died = Promise.withResolvers<string>()
  const troubles = new RecentFailures(clock)
  const notedLog: EventLog = (event) => {
    troubles.note(event)
    givenLog(event)
  }
  const storage = parts.use(await openStorage(given, { clock, log: notedLog, onDied: died.resolve }))
  const breakers = new CircuitBreakers({ clock, random: () => random(1)[0]! / 256, log: notedLog })
  const status = parts.use(openStatus(given, { storage, clock, log: notedLog, breakers, readiness: () => readiness() }))
  const log: EventLog = (event) => {
    status.note(event)
    notedLog(event)
  }
  const guard = openBackgroundChecks(given, { storage, clock, log })
  const descriptors = parts.use(new DescriptorWatch({ clock, log, connections: given.limits.connections }))
  const onShortage = (code: string): void => descriptors.report(code)
  const providers = parts.use(
    await openProviders(given, { storage, managed: guard.managed, clock, random, log, onShortage }),
  )
  await guard.start(() => providers.backends.forget())
  parts.use(guard)
  const onFailed = (error: unknown): void => log({ event: 'store_failing', reason: errorName(error) })
  const watch = new BackendWatch({ store: storage.store, keeper: breakers, clock, onFailed })
  parts.defer(() => watch.close())
  const keys = new KeyCache(storage.store, clock, log, () => {
    providers.backends.forget()
    watch.refresh()
  })
  await keys.start()
  parts.defer(() => keys.close())
  // Behind the first look at the revision: what is changed from here on is told.
  await watch.start()
  parts.defer(startRequestSweep(storage.store, { retentionMs: given.requestRetentionMs, clock, onFailed }))
  const answerSweep = { retentionMs: given.responseRetentionMs, clock, onFailed }
  parts.defer(startResponseSweep(storage.responses, answerSweep))
  parts.defer(startResponseSweep(storage.conversations, answerSweep))
  const sales = parts.use(await openBilling(given, { storage, clock, random, log, onFailed }))
  const shownOffers = new OfferCache({ billing: sales.sold?.plansDeps.billing, clock, log })
  const offers = (): Promise<readonly Offer[]> => shownOffers.read()
  const sealer = createSealer({ ...sealingKeys(given.secrets), random })
  const notes = new FusionNotes(sealer, clock)
  const storing = { sealer, clock, log, retentionMs: given.responseRetentionMs, maxBytes: given.limits.bodyBytes }
  const conversations = new Conversations({
    ...storing,
    store: storage.conversations,
    mintId: idMinter('conv_', () => clock.nowMs(), random),
  })
  const stored = new StoredResponses({ ...storing, store: storage.responses, conversations })

  const mail = await openMail(given, clock, log)

  let isDraining = false
  const providerErrors = new ProviderErrors({ store: storage.store, sealer, clock, random, log })
  parts.defer(() => providerErrors.flush())
  parts.defer(startProviderErrorSweep(storage.store, { retentionMs: given.requestRetentionMs, clock, onFailed }))
  const refused = new RefusedRequests({ store: storage.store, clock, log })
  parts.defer(() => refused.close())
  const gatewayFor = (config: Config): Gateway =>
    buildGateway(config, {
      findAccount: (id) => storage.store.findAccount(id),
      providerErrors,
      ledger: storage.ledger,
      keys,
      providers,
      breakers,
      stored,
      notes,
      clock,
      random,
      log,
    })
  const readiness = (): Readiness => readinessOf({ isDraining, keys, storage })
  const web = parts.use(await listenForWeb(given.appListen))
  const withPort = (port: number): Config => withPorts(given, { api: port, app: web.port })
  const listening = await listen(given, withPort, {
    gatewayFor,
    stored,
    conversations,
    offers,
    readiness,
    refused,
    clock,
    random,
    log,
  })
  const { api } = listening
  const config = withPort(listening.port)
  const { managed } = guard
  const webNeeds = {
    storage,
    stored,
    conversations,
    api,
    sales,
    offers,
    providers,
    managed,
    mail,
    status,
    troubles,
    breakers,
    clock,
    random,
    log,
  }
  web.serve(parts.use(openWeb(config, webNeeds)).fetch)
  descriptors.start()
  log({ event: 'started', baseUrl: config.baseUrl, version: readVersion() })

  const owned = parts.move()
  let stopping: Promise<void> | undefined
  const stop = async (): Promise<void> => {
    isDraining = true
    log({ event: 'draining', openRequests: api.openRequests })
    await new Promise<void>((resolve) => setTimeout(resolve, unreadyMs ?? unreadyBeforeCloseMs[config.mode]))
    let cutRequests = 0
    try {
      const cut = await listening.drain(config.drainMs)
      cutRequests = cut.running + cut.unread
      if (cutRequests > 0) log({ event: 'drain_limit', limitMs: config.drainMs, ...cut })
    } finally {
      try {
        await owned.disposeAsync()
      } finally {
        log({ event: 'stopped', cutRequests })
      }
    }
  }
  return { config, failed: died.promise, stop: () => (stopping ??= stop()) }
}

interface OpenGatewayDeps {
  readonly ledger: Ledger
  readonly findAccount: Store['findAccount']
  readonly keys: KeyCache
  readonly providers: Awaited<ReturnType<typeof openProviders>>
  readonly breakers: CircuitBreakers
  readonly stored: StoredResponses
  readonly notes: FusionNotes
  readonly providerErrors: ProviderErrors
  readonly clock: Clock
  readonly random: RandomBytes
  readonly log: EventLog
}

function buildGateway(
  config: Config,
  {
    ledger,
    findAccount,
    keys,
    providers,
    breakers,
    stored,
    notes,
    providerErrors,
    clock,
    random,
    log,
  }: OpenGatewayDeps,
): Gateway {
  const { pepper, previousPepper } = config.secrets
  const plans = new Map(config.plans.map((plan) => [plan.id, plan]))
  return new Gateway({
    clock,
    log,
    breakers,
    ledger,
    randomBytes: random,
    links: linksFor(config.appUrl),
    authentication: {
      keys,
      digests: new DigestCache(previousPepper === undefined ? [pepper] : [pepper, previousPepper]),
      planById: (id) => plans.get(id),
      findAccount,
      nowMs: () => clock.nowMs(),
    },
    profiles: config.profiles,
    backends: providers.backends,
    learned: providers.learned,
    formats: formatById,
    relays: relayById,
    stored,
    notes,
    providerErrors,
    mintId: () => randomBase62(itemIdLength, random),
    keepAliveMs: config.keepAliveMs,
  })
}

interface ListenDeps {
  readonly gatewayFor: (config: Config) => Gateway
  readonly stored: StoredResponses
  readonly conversations: Conversations
  readonly offers: () => Promise<readonly Offer[]>
  readonly readiness: () => Readiness
  readonly refused: RefusedRequests
  readonly clock: Clock
  readonly random: RandomBytes
  readonly log: EventLog
}

function listen(given: Config, withPort: (port: number) => Config, deps: ListenDeps): Promise<Listening> {
  const { limits, listen: at } = given
  return serve((port) => buildApi(withPort(port), deps), {
    host: at.host,
    port: at.port,
    headerBytes: limits.headerBytes,
    headerMs: limits.headerMs,
    requestMs: limits.headerMs + longestBodyMs(limits.bodyBytes, limits.bodyMs),
    connections: limits.connections,
  })
}

function buildApi(
  config: Config,
  { gatewayFor, stored, conversations, offers, readiness, refused, clock, random, log }: ListenDeps,
): Api {
  const nowMs = (): number => clock.nowMs()
  const links = linksFor(config.appUrl)
  const { baseUrl, plans, profiles, backends } = config
  return new Api({
    gateway: gatewayFor(config),
    stored,
    catalog: new Catalog({ baseUrl, links, plans, profiles, backends, offers, createdAt: Math.floor(nowMs() / 1000) }),
    conversations,
    links,
    baseUrl,
    edgeGate: config.edgeGate.enabled,
    corsOrigins: config.corsOrigins,
    trustedProxies: config.listen.trustedProxies,
    limits: config.limits,
    clock,
    nowMs,
    mintRequestId: idMinter('req_', nowMs, random),
    log,
    readiness,
    refused,
  })
}

function readinessOf({
  isDraining,
  keys,
  storage,
}: {
  isDraining: boolean
  keys: KeyCache
  storage: Storage
}): Readiness {
  const reasons: string[] = []
  if (isDraining) reasons.push('draining')
  if (!keys.isFresh()) reasons.push('the key store does not answer')
  if (!storage.isHealthy()) reasons.push('requests cannot be recorded')
  return { ready: reasons.length === 0, reasons }
}
