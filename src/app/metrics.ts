import type { EventLog } from '../domain/events.ts'
import type { RequestObserver } from '../gateway/ports.ts'
import type { CircuitBreakers } from '../gateway/routing/circuit-breakers.ts'
import type { ApiDeps, Readiness } from '../http/api.ts'
import type { Listening } from '../http/serve.ts'
import { describeBug, errorName } from '../runtime/describe-bug.ts'
import { SetupError } from '../runtime/setup-error.ts'
import { readVersion } from '../runtime/version.ts'
import type { Providers } from './providers.ts'
import type { Runtime } from './runtime.ts'
import type { Storage } from './storage.ts'

/** What the metrics read from the running service. */
export interface MeasuredService {
  readonly storage: Storage
  readonly breakers: Pick<CircuitBreakers, 'condition'>
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
 * Starts to count, and listens for Prometheus; undefined if the configuration has no `metrics_listen`. The library is
 * loaded only here.
 * @throws SetupError if the address is unavailable
 */
export async function openMetrics({ config, clock, log }: Runtime): Promise<Metrics | undefined> {
  const { metricsListen } = config
  if (metricsListen === undefined) return undefined
  const [{ ServiceMetrics }, { observeKeyStore, observeLedger }, { serveMetrics }] = await Promise.all([
    import('../metrics/service-metrics.ts'),
    import('../metrics/observed-ledger.ts'),
    import('../metrics/serve-metrics.ts'),
  ])
  const metrics = new ServiceMetrics({
    version: readVersion(),
    profiles: config.profiles.map(({ id }) => id),
    backends: config.backends.map(({ id }) => id),
  })
  const onBug = (error: unknown): void => log({ event: 'internal_error', requestId: '', ...describeBug(error) })
  const listening = await serveMetrics(metrics.registry, metricsListen, onBug).catch((error: unknown) => {
    const { code = errorName(error) } = error as NodeJS.ErrnoException
    throw new SetupError(
      `metrics cannot be served on port ${metricsListen.port} of ${metricsListen.host} (${code})`,
      'choose another port or host in "metrics_listen"',
    )
  })
  return {
    port: listening.port,
    observer: metrics,
    onRefused: (code) => metrics.refused(code),
    note: (event) => metrics.note(event),
    measure: (storage) => ({
      ...storage,
      ledger: observeLedger(storage.ledger, metrics, clock),
      keys: observeKeyStore(storage.keys, metrics, clock),
    }),
    watch({ storage, breakers, providers, readiness, listening: { api, connections } }) {
      metrics.watch({
        ready: () => readiness().ready,
        stateOf: (id) => breakers.condition(id).state,
        shares: () => ({ connections, ...api.shares }),
        queues: () => ({ ...storage.queues(), upstream_connections: providers.connections().waiting }),
      })
    },
    [Symbol.asyncDispose]: () => listening[Symbol.asyncDispose](),
  }
}
