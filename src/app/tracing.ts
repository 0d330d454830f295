import type { RequestTracer } from '../gateway/ports.ts'
import { readVersion } from '../runtime/version.ts'
import type { Runtime } from './runtime.ts'

/** The tracer of requests and the connection to the collector. */
export interface Tracing extends AsyncDisposable {
  readonly tracer: RequestTracer
}

/**
 * Starts tracing (contract 28.14); undefined if the configuration has no `tracing`. The library is loaded only here.
 */
export async function openTracing({ config, served, clock, random, log }: Runtime): Promise<Tracing | undefined> {
  const { tracing } = config
  if (tracing === undefined) return undefined
  const [{ SamplingTracer }, { openSpanExporter }] = await Promise.all([
    import('../tracing/request-tracer.ts'),
    import('../tracing/span-exporter.ts'),
  ])
  const onFailing = (reason: string): void => log({ event: 'tracing_failing', reason })
  const exporter = openSpanExporter({ endpoint: tracing.endpoint, version: readVersion(), onFailing })
  const backends = { get: (name: string) => served.backends.find(({ id }) => id === name)?.provider.preset }
  const { sampleRate, trustCallers } = tracing
  const exportSpan = exporter.exportSpan.bind(exporter)
  return {
    tracer: new SamplingTracer({ clock, random, sampleRate, trustCallers, backends, exportSpan }),
    [Symbol.asyncDispose]: () => exporter[Symbol.asyncDispose](),
  }
}
