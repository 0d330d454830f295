import type { Config } from '../config/config.ts'
import type { EventLog } from '../domain/events.ts'
import type { LoadShedder } from '../gateway/overload/load-shedder.ts'
import type { RequestObserver } from '../gateway/ports.ts'
import type { CircuitBreakers } from '../gateway/routing/circuit-breakers.ts'
import type { ApiDeps } from '../http/api.ts'
import type { Readiness } from '../http/readiness.ts'
import type { Listening } from '../http/serve.ts'
import type { MetricsListening, ServedMetrics } from '../metrics/serve-metrics.ts'
import type { MetricsSnapshot } from '../metrics/workers-registry.ts'
import { describeBug, errorName } from '../runtime/describe-bug.ts'
import { SetupError } from '../runtime/setup-error.ts'
import { readVersion } from '../runtime/version.ts'
import type { Providers } from './providers.ts'
import type { Runtime } from './runtime.ts'
import type { Storage } from './storage.ts'
import type { ParentLink, WorkerEnd, WorkerReports } from './worker-reports.ts'

/** How often the parent of workers reads their metrics: one that is killed loses what it counted since then. */
const readEveryMs = 5_000

/** What the metrics read from the running service. */
export interface MeasuredService {
  readonly storage: Storage
  readonly breakers: Pick<CircuitBreakers, 'condition'>
  readonly shedder: Pick<LoadShedder, 'sheds'>
  readonly providers: Pick<Providers, 'connections'>
  readonly readiness: () => Readiness
  readonly listening: Listening
}

/** The metrics of this process and their listener (contract 28.13). */
export interface Metrics extends AsyncDisposable {
  readonly port: number
  readonly observer: RequestObserver
  readonly onRefused: NonNullable<ApiDeps['onRefused']>
  readonly note: EventLog
  /** The same storage, with a ledger and keys that are measured. */
  measure(storage: Storage): Storage
  /** Adds the figures that are read from the running service. */
  watch(service: MeasuredService): void
}

/**
 * Starts to count, and listens for Prometheus or, in a worker, answers its parent; undefined if the configuration has no
 * `metrics_listen`. The library is loaded only here.
 * @throws SetupError if the address is unavailable
 */
export async function openMetrics(
  { config, served, clock, log }: Runtime,
  parent?: ParentLink,
): Promise<Metrics | undefined> {
  const { metricsListen } = config
  if (metricsListen === undefined) return undefined
  const [{ ServiceMetrics }, { observeKeyStore, observeLedger }] = await Promise.all([
    import('../metrics/service-metrics.ts'),
    import('../metrics/observed-ledger.ts'),
  ])
  const metrics = new ServiceMetrics({
    version: readVersion(),
    get profiles() {
      return served.profiles.map(({ id }) => id)
    },
    get backends() {
      return served.backendIds
    },
  })
  const { registry } = metrics
  const listening = parent === undefined ? await listenForPrometheus(registry, metricsListen, log) : undefined
  parent?.answer('metrics', () => registry.getMetricsAsJSON())
  return {
    port: listening?.port ?? metricsListen.port,
    observer: metrics,
    onRefused: (code) => metrics.refused(code),
    note: (event) => metrics.note(event),
    measure: (storage) => ({
      ...storage,
      ledger: observeLedger(storage.ledger, metrics, clock),
      keys: observeKeyStore(storage.keys, metrics, clock),
    }),
    watch({ storage, breakers, shedder, providers, readiness, listening: { api, connections } }) {
      metrics.watch({
        ready: () => readiness().ready,
        areSettingsApplied: () => served.isCurrent,
        stateOf: (id) => breakers.condition(id).state,
        sheds: (kind) => shedder.sheds(kind),
        shares: () => ({ connections, ...api.shares }),
        queues: () => ({ ...storage.queues(), upstream_connections: providers.connections().waiting }),
      })
    },
    async [Symbol.asyncDispose]() {
      await listening?.[Symbol.asyncDispose]()
      await parent?.leave(await registry.getMetricsAsJSON())
    },
  }
}

/** Serves the metrics of a registry. @throws SetupError if the address is unavailable */
async function listenForPrometheus(
  registry: ServedMetrics,
  address: NonNullable<Config['metricsListen']>,
  log: EventLog,
): Promise<MetricsListening> {
  const { serveMetrics } = await import('../metrics/serve-metrics.ts')
  const onBug = (error: unknown): void => log({ event: 'internal_error', requestId: '', ...describeBug(error) })
  return serveMetrics(registry, address, onBug).catch((error: unknown) => {
    const { code = errorName(error) } = error as NodeJS.ErrnoException
    throw new SetupError(
      `metrics cannot be served on port ${address.port} of ${address.host} (${code})`,
      'choose another port or host in "metrics_listen"',
    )
  })
}

/**
 * Serves the metrics of all workers from their parent (contract 36.9); undefined if the configuration has no
 * `metrics_listen`. @throws SetupError if the address is unavailable
 */
export async function openWorkersMetrics(
  { metricsListen }: Config,
  workers: WorkerReports,
  log: EventLog,
): Promise<MetricsListening | undefined> {
  if (metricsListen === undefined) return undefined
  const { WorkersRegistry } = await import('../metrics/workers-registry.ts')
  const registry = new WorkersRegistry(
    async () => (await workers.gather('metrics')) as ReadonlyMap<WorkerEnd, MetricsSnapshot>,
  )
  const onBug = (error: unknown): void => log({ event: 'internal_error', requestId: '', ...describeBug(error) })
  workers.onEnded = (worker, final) => void registry.ended(worker, final as MetricsSnapshot | undefined).catch(onBug)
  const listening = await listenForPrometheus(registry, metricsListen, log)
  const reading = setInterval(() => void registry.read().catch(onBug), readEveryMs)
  return {
    port: listening.port,
    async [Symbol.asyncDispose]() {
      clearInterval(reading)
      await listening[Symbol.asyncDispose]()
    },
  }
}
