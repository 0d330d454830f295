import { RecentTroubles } from './accounts/recent-troubles.ts'
import { ShownOffers } from './accounts/billing/shown-offers.ts'
import { BackendWatch } from './accounts/backend-watch.ts'
import { readVersion } from './cli/version.ts'
import { withPorts, type Config } from './config/config.ts'
import { sealingKeys } from './config/sealing-keys.ts'
import { failureName } from './domain/bugs.ts'
import type { Offer } from './domain/billing.ts'
import { systemClock, type Clock } from './domain/clock.ts'
import type { EventLog } from './domain/events.ts'
import { idMinter, randomBase62 } from './domain/ids.ts'
import { linksFor } from './domain/links.ts'
import { systemRandom, type RandomBytes } from './domain/random.ts'
import { createSealer } from './domain/sealing.ts'
import { DescriptorWatch } from './providers/descriptor-watch.ts'
import { formatById, relayById } from './formats/formats.ts'
import { DigestMemory } from './gateway/digest-memory.ts'
import { FusionNotes } from './gateway/fusion-notes.ts'
import { Gateway } from './gateway/gateway.ts'
import { CircuitBreakers } from './gateway/routing/circuit-breakers.ts'
import { KeyDirectory } from './gateway/key-directory.ts'
import type { Ledger } from './gateway/ports.ts'
import { ProviderErrors } from './gateway/provider-errors.ts'
import { Conversations } from './gateway/conversations.ts'
import { StoredResponses } from './gateway/stored-responses.ts'
import { Api, type Readiness } from './http/api.ts'
import { Catalog } from './http/catalog.ts'
import { longestBodyMs } from './http/read-body.ts'
import { RefusedRequests } from './http/refused-requests.ts'
import { serve, type Listening } from './http/serve.ts'
import { openGuard } from './open-guard.ts'
import { openBilling } from './open-billing.ts'
import { openProviders } from './open-providers.ts'
import { openStatus } from './open-status.ts'
import { openStorage, type Storage } from './open-storage.ts'
import { openMail, openWeb } from './open-web.ts'
import { startProviderErrorSweep } from './storage/provider-error-sweep.ts'
import type { Store } from './storage/store.ts'
import { startRequestSweep } from './storage/request-sweep.ts'
import { startResponseSweep } from './storage/response-sweep.ts'
import { listenForWeb } from './web/serve-web.ts'

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
  const troubles = new RecentTroubles(clock)
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
  const guard = openGuard(given, { storage, clock, log })
  const descriptors = parts.use(new DescriptorWatch({ clock, log, connections: given.limits.connections }))
  const onShortage = (code: string): void => descriptors.report(code)
  const providers = parts.use(
    await openProviders(given, { storage, managed: guard.managed, clock, random, log, onShortage }),
  )
  await guard.start(() => providers.backends.forget())
  parts.use(guard)
  const onFailed = (error: unknown): void => log({ event: 'store_failing', reason: failureName(error) })
  const watch = new BackendWatch({ store: storage.store, keeper: breakers, clock, onFailed })
  parts.defer(() => watch.close())
  const keys = new KeyDirectory(storage.store, clock, log, () => {
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
  const shownOffers = new ShownOffers({ billing: sales.sold?.plane.billing, clock, log })
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

interface GatewayNeeds {
  readonly ledger: Ledger
  readonly findAccount: Store['findAccount']
  readonly keys: KeyDirectory
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
  { ledger, findAccount, keys, providers, breakers, stored, notes, providerErrors, clock, random, log }: GatewayNeeds,
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
      digests: new DigestMemory(previousPepper === undefined ? [pepper] : [pepper, previousPepper]),
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

interface ListenNeeds {
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

function listen(given: Config, withPort: (port: number) => Config, needs: ListenNeeds): Promise<Listening> {
  const { limits, listen: at } = given
  return serve((port) => buildApi(withPort(port), needs), {
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
  { gatewayFor, stored, conversations, offers, readiness, refused, clock, random, log }: ListenNeeds,
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
  keys: KeyDirectory
  storage: Storage
}): Readiness {
  const reasons: string[] = []
  if (isDraining) reasons.push('draining')
  if (!keys.isFresh()) reasons.push('the key store does not answer')
  if (!storage.isHealthy()) reasons.push('requests cannot be recorded')
  return { ready: reasons.length === 0, reasons }
}
