import { LiveTraffic, sumTraffic, type Traffic, type TrafficRecord } from '../accounts/status/live-traffic.ts'
import { RecentFailures } from '../accounts/status/recent-failures.ts'
import type { EventLog } from '../domain/events.ts'
import type { RequestObserver, RequestTracer } from '../gateway/ports.ts'
import type { ApiDeps } from '../http/api.ts'
import { openMetrics, type MeasuredService } from './metrics.ts'
import type { Runtime } from './runtime.ts'
import type { Storage } from './storage.ts'
import { openTracing } from './tracing.ts'
import type { ParentLink } from './worker-reports.ts'

/** Everything that observes requests: the console's figures, and metrics and traces if they are on. */
export interface Observation extends AsyncDisposable {
  /** The console's figures, of all workers of this node. */
  traffic(): Promise<Traffic>
  readonly recentFailures: RecentFailures
  readonly observer: RequestObserver
  readonly tracer: RequestTracer | undefined
  readonly onRefused: ApiDeps['onRefused']
  /** Takes every logged event. */
  readonly note: EventLog
  readonly metricsPort: number | undefined
  /** The same storage, measured if metrics are on. */
  measure(storage: Storage): Storage
  /** Adds the figures that are read from the running service. */
  watch(service: MeasuredService): void
}

/**
 * Starts to observe. `parent`: of this worker, if there are several. @throws SetupError if the address of the metrics is
 * unavailable
 */
export async function openObservation(runtime: Runtime, parent: ParentLink | undefined): Promise<Observation> {
  await using opened = new AsyncDisposableStack()
  const metrics = opened.use(await openMetrics(runtime, parent))
  const tracing = opened.use(await openTracing(runtime))
  const { clock, served } = runtime
  const traffic = new LiveTraffic(clock, () => served.backendIds)
  parent?.answer('traffic', () => traffic.record())
  const recentFailures = new RecentFailures(clock)
  const owned = opened.move()
  return {
    async traffic() {
      const records = await parent?.gather('traffic')
      return records === undefined ? traffic : sumTraffic(records as readonly TrafficRecord[])
    },
    recentFailures,
    observer: {
      ended(opening, outcome) {
        traffic.ended(opening, outcome)
        metrics?.observer.ended(opening, outcome)
      },
    },
    tracer: tracing?.tracer,
    onRefused: metrics?.onRefused,
    note(event) {
      recentFailures.note(event)
      metrics?.note(event)
    },
    metricsPort: metrics?.port,
    measure: (storage) => metrics?.measure(storage) ?? storage,
    watch: (service) => metrics?.watch(service),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
