import { type Attributes, type HrTime, SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api'
import { ExportResultCode } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter } from '@opentelemetry/sdk-trace'
import type { FinishedSpan } from './request-tracer.ts'

/** Spans that wait for export; more are dropped, so that a collector that is gone costs no memory. */
const maxWaiting = 2_048
/** A batch is serialized at once: more would hold up the event loop for milliseconds. */
const batchSpans = 128
const batchMs = 2_000
const exportMs = 10_000
/** How long shutdown waits for the collector. */
const closeMs = 3_000
const maxAttributeCharacters = 200

export interface SpanExporterOptions {
  readonly endpoint: string
  readonly version: string
  /** Called when exports begin to fail, once per outage, with a code. */
  readonly onFailing: (reason: string) => void
}

/** Sends finished spans to a collector, in batches. */
export interface OpenSpanExporter extends AsyncDisposable {
  exportSpan(span: FinishedSpan): void
}

export function openSpanExporter({ endpoint, version, onFailing }: SpanExporterOptions): OpenSpanExporter {
  const otlp = new OTLPTraceExporter({ url: endpoint, timeoutMillis: exportMs, concurrencyLimit: 2 })
  const processor = new BatchSpanProcessor({
    exporter: watched(otlp, onFailing),
    maxQueueSize: maxWaiting,
    maxExportBatchSize: batchSpans,
    scheduledDelayMillis: batchMs,
    exportTimeoutMillis: exportMs,
  })
  const origin = {
    resource: resourceFromAttributes({ 'service.name': 'svc-router', 'service.version': version }),
    instrumentationScope: { name: 'svc-router', version },
  }
  return {
    exportSpan: (span) => processor.onEnd(toReadable(span, origin)),
    async [Symbol.asyncDispose]() {
      const limit = Promise.withResolvers<void>()
      const timer = setTimeout(() => {
        onFailing('timeout')
        limit.resolve()
      }, closeMs)
      // It rejects if the last export failed, which was reported.
      await Promise.race([processor.shutdown().catch(() => {}), limit.promise])
      clearTimeout(timer)
    },
  }
}

/**
 * The span as the library exports it. The library's own tracer would time a span while it runs and choose its IDs; for
 * a span that has ended, it costs ten times as much as this.
 */
function toReadable(span: FinishedSpan, origin: Pick<ReadableSpan, 'resource' | 'instrumentationScope'>): ReadableSpan {
  const { name, traceId, spanId, parent, isParentRemote: isRemote, startMs, endMs } = span
  const context = { traceId, spanId, traceFlags: TraceFlags.SAMPLED }
  return {
    name,
    kind: span.kind === 'server' ? SpanKind.SERVER : SpanKind.CLIENT,
    spanContext: () => context,
    ...(parent === undefined
      ? {}
      : { parentSpanContext: { traceId, spanId: parent.spanId, traceFlags: TraceFlags.SAMPLED, isRemote } }),
    startTime: hrTime(startMs),
    endTime: hrTime(endMs),
    duration: hrTime(endMs - startMs),
    status: { code: span.hasFailed ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes: shortened(span.attributes),
    links: [],
    events: [],
    ended: true,
    ...origin,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  }
}

function shortened(attributes: Attributes): Attributes {
  for (const value of Object.values(attributes)) {
    if (typeof value !== 'string' || value.length <= maxAttributeCharacters) continue
    const entries = Object.entries(attributes).map(([key, given]) => [
      key,
      typeof given === 'string' ? given.slice(0, maxAttributeCharacters) : given,
    ])
    return Object.fromEntries(entries) as Attributes
  }
  return attributes
}

/** Reports the first failure of each outage. */
function watched(exporter: SpanExporter, onFailing: (reason: string) => void): SpanExporter {
  let isFailing = false
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const hasFailed = result.code !== ExportResultCode.SUCCESS
        if (hasFailed && !isFailing) onFailing(reasonOf(result.error))
        isFailing = hasFailed
        done(result)
      })
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
  }
}

/** A status or the system's code: never the collector's text. */
function reasonOf(error: Error | undefined): string {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  if (typeof code === 'number') return `status ${code}`
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,63}$/.test(code) ? code : (error?.constructor.name ?? 'unknown')
}

function hrTime(epochMs: number): HrTime {
  const seconds = Math.floor(epochMs / 1000)
  return [seconds, Math.round((epochMs - seconds * 1000) * 1e6)]
}
