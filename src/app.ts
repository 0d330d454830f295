import { readVersion } from './cli/version.ts'
import { withPort, type Config } from './config/config.ts'
import { systemClock, type Clock } from './domain/clock.ts'
import type { EventLog } from './domain/events.ts'
import { idMinter, randomBase62 } from './domain/ids.ts'
import { linksFor } from './domain/links.ts'
import { systemRandom, type RandomBytes } from './domain/random.ts'
import { formatById, relayById } from './formats/formats.ts'
import { DigestMemory } from './gateway/digest-memory.ts'
import { Gateway } from './gateway/gateway.ts'
import { KeyDirectory } from './gateway/key-directory.ts'
import type { Ledger } from './gateway/ports.ts'
import { Api, type Readiness } from './http/api.ts'
import { Catalog } from './http/catalog.ts'
import { serve, type Listening } from './http/serve.ts'
import { openProviders } from './open-providers.ts'
import { openStorage, type Storage } from './open-storage.ts'

/** Time that load balancers get to see that this server is not ready any more, before it stops listening. */
const unreadyBeforeCloseMs = { local: 0, production: 5_000 } as const
/** Old records are deleted in chunks of this many, one chunk every so often, so that nothing waits for it. */
const retentionChunk = 500
const retentionEveryMs = 10_000
const itemIdLength = 24

export interface AppOptions {
  readonly log: EventLog
  readonly clock?: Clock
  readonly random?: RandomBytes
}

export interface App {
  /** The configuration with the port that the system chose. */
  readonly config: Config
  /** Ready turns false, running answers finish, everything is closed in reverse order. Can be called more than once. */
  stop(): Promise<void>
}

/** The composition root: a checked configuration in, the running service out. @throws what a part throws that cannot start */
export async function startApp(
  given: Config,
  { log, clock = systemClock(), random = systemRandom() }: AppOptions,
): Promise<App> {
  await using parts = new AsyncDisposableStack()
  const storage = parts.use(await openStorage(given, clock, log))
  const providers = parts.use(await openProviders(given, { storage, clock, random, log }))
  const keys = new KeyDirectory(storage.store, clock, log, () => providers.backends.forget())
  await keys.start()
  parts.defer(() => keys.close())
  sweepOldRequests(storage, given.requestRetentionMs, clock, parts)

  let isDraining = false
  const gatewayFor = (config: Config): Gateway =>
    buildGateway(config, { ledger: storage.ledger, keys, providers, clock, random, log })
  const readiness = (): Readiness => readinessOf({ isDraining, keys, storage })
  const { config, api, listening } = await listen(given, { gatewayFor, readiness, clock, random, log })
  log({ event: 'started', baseUrl: config.baseUrl, version: readVersion() })

  const owned = parts.move()
  let stopping: Promise<void> | undefined
  const stop = async (): Promise<void> => {
    isDraining = true
    log({ event: 'draining', openRequests: api.openRequests })
    await new Promise<void>((resolve) => setTimeout(resolve, unreadyBeforeCloseMs[config.mode]))
    const cutRequests = await listening.drain(config.drainMs)
    await owned.disposeAsync()
    log({ event: 'stopped', cutRequests })
  }
  return { config, stop: () => (stopping ??= stop()) }
}

interface GatewayNeeds {
  readonly ledger: Ledger
  readonly keys: KeyDirectory
  readonly providers: Awaited<ReturnType<typeof openProviders>>
  readonly clock: Clock
  readonly random: RandomBytes
  readonly log: EventLog
}

function buildGateway(config: Config, { ledger, keys, providers, clock, random, log }: GatewayNeeds): Gateway {
  const { pepper, previousPepper } = config.secrets
  const plans = new Map(config.plans.map((plan) => [plan.id, plan]))
  return new Gateway({
    clock,
    log,
    ledger,
    random: () => random(1)[0]! / 256,
    links: linksFor(config.appUrl),
    authentication: {
      keys,
      digests: new DigestMemory(previousPepper === undefined ? [pepper] : [pepper, previousPepper]),
      planById: (id) => plans.get(id),
      nowMs: () => clock.nowMs(),
    },
    profiles: config.profiles,
    backends: providers.backends,
    formats: formatById,
    relays: relayById,
    mintId: () => randomBase62(itemIdLength, random),
    keepAliveMs: config.keepAliveMs,
  })
}

interface ListenNeeds {
  readonly gatewayFor: (config: Config) => Gateway
  readonly readiness: () => Readiness
  readonly clock: Clock
  readonly random: RandomBytes
  readonly log: EventLog
}

/** Listens first where the port is the system's choice, because the links in every answer need it. */
async function listen(given: Config, needs: ListenNeeds): Promise<{ config: Config; api: Api; listening: Listening }> {
  const { limits, listen: at } = given
  const nowMs = (): number => needs.clock.nowMs()
  let config = given
  let current: Api | undefined
  const build = (): Api => {
    const links = linksFor(config.appUrl)
    const { baseUrl, plans, profiles } = config
    return new Api({
      gateway: needs.gatewayFor(config),
      catalog: new Catalog({ baseUrl, links, plans, profiles, createdAt: Math.floor(nowMs() / 1000) }),
      links,
      baseUrl,
      edgeGate: config.edgeGate.enabled,
      limits,
      clock: needs.clock,
      nowMs,
      mintRequestId: idMinter('req_', nowMs, needs.random),
      log: needs.log,
      readiness: needs.readiness,
    })
  }
  const listening = await serve(() => (current ??= build()), {
    host: at.host,
    port: at.port,
    headerBytes: limits.headerBytes,
    headerMs: limits.headerMs,
    requestMs: limits.headerMs + limits.bodyMs,
    connections: limits.connections,
  })
  config = withPort(given, listening.port)
  return { config, api: (current ??= build()), listening }
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

function sweepOldRequests({ store }: Storage, retentionMs: number, clock: Clock, parts: AsyncDisposableStack): void {
  const timer = setInterval(() => {
    // A failing store is noticed and told by the key directory; the sweep goes on when it is back.
    store.deleteRequestsBefore(clock.nowMs() - retentionMs, retentionChunk).catch(() => {})
  }, retentionEveryMs)
  timer.unref()
  parts.defer(() => clearInterval(timer))
}
