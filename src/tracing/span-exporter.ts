import { context, type HrTime, SpanKind, SpanStatusCode, trace, TraceFlags } from '@opentelemetry/api'
import { ExportResultCode } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { AlwaysOnSampler, BatchSpanProcessor, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace'
import type { FinishedSpan } from './request-tracer.ts'

/** Spans that wait for export; more are dropped, so that a collector that is gone costs no memory. */
const maxWaiting = 2_048
const batchSpans = 512
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
  // The IDs were chosen when the request began, because providers received them.
  let ids = { traceId: '', spanId: '' }
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'svc-router', 'service.version': version }),
    sampler: new AlwaysOnSampler(),
    spanProcessors: [processor],
    spanLimits: { attributeValueLengthLimit: maxAttributeCharacters },
    idGenerator: { generateTraceId: () => ids.traceId, generateSpanId: () => ids.spanId },
  })
  const tracer = provider.getTracer('svc-router', version)
  return {
    exportSpan(span) {
      ids = span
      const { traceId, parent, isParentRemote: isRemote, attributes } = span
      const root = context.active()
      const within =
        parent === undefined
          ? root
          : trace.setSpanContext(root, { traceId, spanId: parent.spanId, traceFlags: TraceFlags.SAMPLED, isRemote })
      const kind = span.kind === 'server' ? SpanKind.SERVER : SpanKind.CLIENT
      const started = tracer.startSpan(span.name, { kind, attributes, startTime: hrTime(span.startMs) }, within)
      if (span.hasFailed) started.setStatus({ code: SpanStatusCode.ERROR })
      started.end(hrTime(span.endMs))
    },
    async [Symbol.asyncDispose]() {
      const limit = Promise.withResolvers<void>()
      const timer = setTimeout(() => {
        onFailing('timeout')
        limit.resolve()
      }, closeMs)
      // It rejects if the last export failed, which was reported.
      await Promise.race([provider.shutdown().catch(() => {}), limit.promise])
      clearTimeout(timer)
    },
  }
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
