import type { Server } from 'node:http'
import { openAnswerStores } from '../../../src/app/answer-stores.ts'
import { buildApi, openKeyCache, readinessOf } from '../../../src/app/app.ts'
import { openCacheSessions } from '../../../src/app/cache-sessions.ts'
import { openProviders, type Providers } from '../../../src/app/providers.ts'
import { createRuntime } from '../../../src/app/runtime.ts'
import { readDeclared } from '../../../src/app/served-settings.ts'
import type { Storage } from '../../../src/app/storage.ts'
import type { Config } from '../../../src/config/config.ts'
import type { ServiceEvent } from '../../../src/domain/events.ts'
import type { Plan } from '../../../src/domain/plans.ts'
import type { RequestOpening } from '../../../src/domain/requests.ts'
import { LoadShedder } from '../../../src/gateway/overload/load-shedder.ts'
import type { Ledger } from '../../../src/gateway/ports.ts'
import { CircuitBreakers } from '../../../src/gateway/routing/circuit-breakers.ts'
import type { Api } from '../../../src/http/api.ts'
import { Connections } from '../../../src/http/connections.ts'
import { RefusedRequests } from '../../../src/http/refused-requests.ts'
import { attach, createHttpServer, type ServeOptions } from '../../../src/http/serve.ts'
import { errorName } from '../../../src/runtime/describe-bug.ts'
import { createConversationStore } from '../../../src/storage/conversation-store.ts'
import { createGenerationStore } from '../../../src/storage/generation-store.ts'
import { MemoryLedger } from '../../../src/storage/ledger/ledger-sqlite.ts'
import { recoverRequests } from '../../../src/storage/ledger/recovery.ts'
import { createResponseStore } from '../../../src/storage/response-store.ts'
import { openSqliteInThread } from '../../../src/storage/sqlite/open-sqlite.ts'
import { createStore, type Store } from '../../../src/storage/store.ts'
import type { Dice } from '../dice.ts'
import { type Disk, SimulatedThread } from './disk.ts'
import type { ProcessClock } from './process-clock.ts'
import type { SimulatedProvider } from './provider.ts'
import type { SimulatedSocket } from './sockets.ts'
import type { Timeline } from './timeline.ts'

/** The world that a process runs in. */
export interface Surroundings {
  readonly config: Config
  readonly timeline: Timeline
  readonly dice: Dice
  readonly disk: Disk
  readonly providers: ReadonlyMap<string, SimulatedProvider>
  /** Called with every admission that the ledger grants. */
  readonly onAdmitted: (opening: RequestOpening, plan: Plan) => void
  readonly onEvent: (event: ServiceEvent) => void
}

const serveOptions: ServeOptions = {
  host: 'simulated',
  port: 0,
  headerBytes: 16_384,
  headerMs: 10_000,
  requestMs: 60_000,
  connections: 1_000,
  probeConnections: 10,
}

/** Few, so that a place that is not given back is missed soon; for some processes so few that calls wait. */
const connectionLimits = { maxConnections: 8, maxTotal: 16 }
const fewestConnections = { maxConnections: 2, maxTotal: 2 }

/**
 * One process of the service, from its HTTP server down, composed as in `app/app.ts` of the same parts. What it reaches
 * of the outside is simulated: time, randomness, sockets, and the database's thread. Left out, because no request
 * passes it: the web app, billing, mail, sweeps, metrics, and the audit log's checkpoints.
 */
export class RunningService {
  readonly number: number
  readonly clock: ProcessClock
  readonly sockets: Set<SimulatedSocket> = new Set()
  readonly server: Server
  readonly api: Api
  readonly storage: Storage
  readonly providers: Providers
  readonly thread: SimulatedThread
  readonly ledger: MemoryLedger
  readonly #end: () => void
  readonly #retire: () => void
  isDraining = false

  private constructor(
    parts: Pick<
      RunningService,
      'number' | 'clock' | 'server' | 'api' | 'storage' | 'providers' | 'thread' | 'ledger' | 'sockets'
    > & { readonly end: () => void; readonly retire: () => void },
  ) {
    this.number = parts.number
    this.clock = parts.clock
    this.sockets = parts.sockets
    this.server = parts.server
    this.api = parts.api
    this.storage = parts.storage
    this.providers = parts.providers
    this.thread = parts.thread
    this.ledger = parts.ledger
    this.#end = parts.end
    this.#retire = parts.retire
  }

  /** Starts a process on what earlier ones left on the disk. @throws what the service throws if it cannot start */
  static async start(number: number, clock: ProcessClock, world: Surroundings): Promise<RunningService> {
    const { config, dice } = world
    const managed = { isOn: () => false }
    const sockets = new Set<SimulatedSocket>()
    const runtime = createRuntime(config, { clock, random: (count) => dice.bytes(count), log: world.onEvent })
    const { log } = runtime
    const { thread, ledger, storage } = await openStorage(world, clock)
    const declared = await readDeclared(storage.store)
    runtime.served.replace(config.settings.serve(declared))
    const breakers = new CircuitBreakers({ clock, random: () => dice.number(), log })
    const providers = await openProviders(runtime, {
      store: storage.store,
      managed,
      limits: dice.chance(0.3) ? fewestConnections : connectionLimits,
      createConnector: (origin, options) => {
        const provider = world.providers.get(new URL(origin).hostname)
        if (provider === undefined) throw new Error(`there is no provider at ${origin}`)
        return provider.connector(clock, sockets, options)
      },
    })
    const onFailed = (error: unknown): void => log({ event: 'store_failing', reason: errorName(error) })
    const checks = { settingsChanged: async () => {} }
    const keyCache = await openKeyCache(runtime, { storage, breakers, providers, checks, declared, onFailed })
    const { keys } = keyCache
    const answers = openAnswerStores(runtime, storage)
    const refused = new RefusedRequests({ store: storage.store, clock, log })
    let service: RunningService | undefined
    const api = buildApi(runtime, {
      ...answers,
      storage,
      keys,
      providers,
      breakers,
      sessions: openCacheSessions(runtime, storage),
      shedder: new LoadShedder({ clock, random: () => dice.number(), log }),
      offers: async () => [],
      readiness: () => readinessOf({ isDraining: service?.isDraining ?? false, keys, storage }),
      refused,
      managed,
      observation: { observer: { ended: () => {} }, tracer: undefined, onRefused: undefined },
      status: { readFailing: async () => () => false },
    })
    const connections = new Connections(serveOptions.connections, serveOptions.probeConnections)
    const server = createHttpServer(serveOptions, connections)
    const retire = attach(server, api, serveOptions, connections)
    service = new RunningService({
      number,
      clock,
      sockets,
      server,
      api,
      storage,
      providers,
      thread,
      ledger,
      retire,
      end: () => keyCache[Symbol.dispose](),
    })
    return service
  }

  /** The process is killed, or its machine. Its connections are closed by the system. */
  kill(): void {
    this.clock.die()
    for (const socket of this.sockets) socket.abandon()
  }

  /** Ends in order, as on SIGTERM: lets running requests finish for a while, then aborts them, and writes everything. */
  async stop(timeline: Timeline, limitMs: number): Promise<void> {
    this.isDraining = true
    this.#retire()
    const isDone = (): boolean => this.api.openRequests === 0
    await timeline.runUntil(timeline.nowMs + limitMs, isDone)
    if (!isDone()) {
      this.api.abortAll()
      await timeline.runUntil(timeline.nowMs + 1_000, isDone)
    }
    this.#end()
    let isClosed = false
    const closed = this.ledger.close().finally(() => (isClosed = true))
    closed.catch(() => {})
    await timeline.runUntil(timeline.nowMs + 30_000, () => isClosed)
    if (!isClosed) throw new Error('the ledger did not close within 30 s')
    this.kill()
  }
}

/** As `openSqliteStorage`, over a simulated disk and its thread. */
async function openStorage(
  { timeline, dice, disk, config, onAdmitted, onEvent }: Surroundings,
  clock: ProcessClock,
): Promise<{ readonly thread: SimulatedThread; readonly ledger: MemoryLedger; readonly storage: Storage }> {
  const recoverFrom = recoverRequests(disk.database, disk.takeMarks())
  const onFailing = (reason: string): void => onEvent({ event: 'ledger_failing', reason })
  const ledger = new MemoryLedger(clock, disk.marks, recoverFrom, { onFailing, uptimeMs: () => clock.monotonicMs() })
  let thread!: SimulatedThread
  await ledger.start(
    async (listener) => (thread = new SimulatedThread({ disk, timeline, dice }, clock, listener)),
    () => {},
  )
  const store = createStore(openSqliteInThread(thread, 'store'))
  const answers = openSqliteInThread(thread, 'responses')
  const generations = createGenerationStore(answers)
  await generations.abandonAll()
  const observed: Ledger = {
    prepare: (accountId, hasClaim) => ledger.prepare(accountId, hasClaim),
    admit(opening, plan, rate) {
      const admission = ledger.admit(opening, plan, rate)
      if (!(admission instanceof Promise)) {
        onAdmitted(opening, plan)
        return admission
      }
      return admission.then((admitted) => {
        onAdmitted(opening, plan)
        return admitted
      })
    },
    signals: (accountId, plan, rate) => ledger.signals(accountId, plan, rate),
  }
  const storage: Storage = {
    store,
    ledger: observed,
    keys: { find: (digest) => store.find(digest), revision: revisionReader(thread, store) },
    responses: createResponseStore(answers, config.limits.storedBytes),
    conversations: createConversationStore(answers, config.limits.storedBytes),
    generations,
    ownNode: { id: 'simulated', reportWith: () => {}, reportNow: () => {} },
    isOwnedElsewhere: false,
    proveQuotas: async () => {},
    nowMs: () => clock.nowMs(),
    quotaNowMs: () => clock.nowMs(),
    isHealthy: () => ledger.healthy(),
    queues: () => ({ ledger: ledger.inFlight, database: thread.waitingCalls }),
    [Symbol.asyncDispose]: async () => {},
  }
  return { thread, ledger, storage }
}

/**
 * Reads what the key cache polls four times a second. If nothing has been written since the last answer, and the thread
 * would answer at once, the answer is the same: then no statement runs, which would cost more than a whole poll.
 */
function revisionReader(thread: SimulatedThread, store: Pick<Store, 'revision'>): () => Promise<number> {
  let last: { readonly revision: number; readonly writes: number } | undefined
  return async () => {
    const writes = thread.unchangedSince
    if (last !== undefined && writes === last.writes) return last.revision
    const revision = await store.revision()
    last = writes === undefined ? undefined : { revision, writes }
    return revision
  }
}
