// Loaded before the program: requests to one profile are neither counted by metrics nor traced. No setting does that. What
// remains of the metrics for them is an object around each admission, a fraction of a microsecond.
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace'
import { ServiceMetrics } from '../src/metrics/service-metrics.ts'
import { SamplingTracer } from '../src/tracing/request-tracer.ts'
import { plainProfile } from './bodies.ts'

/* oxlint-disable typescript/unbound-method */
const { admitted, settled, ended, note } = ServiceMetrics.prototype
ServiceMetrics.prototype.admitted = function (opening) {
  if (opening.profile !== plainProfile) admitted.call(this, opening)
}
ServiceMetrics.prototype.settled = function (opening) {
  if (opening.profile !== plainProfile) settled.call(this, opening)
}
ServiceMetrics.prototype.ended = function (opening, outcome) {
  if (opening.profile !== plainProfile) ended.call(this, opening, outcome)
}
ServiceMetrics.prototype.note = function (event) {
  if (!('profile' in event) || event.profile !== plainProfile) note.call(this, event)
}

const { begin } = SamplingTracer.prototype
Object.defineProperty(SamplingTracer.prototype, 'begin', {
  value(this: SamplingTracer, ...[opening, parent]: Parameters<typeof begin>) {
    return opening.profile === plainProfile ? undefined : begin.call(this, opening, parent)
  },
})

let processor: BatchSpanProcessor | undefined
const { onEnd } = BatchSpanProcessor.prototype
BatchSpanProcessor.prototype.onEnd = function (span) {
  // oxlint-disable-next-line typescript/no-this-alias
  processor = this
  onEnd.call(this, span)
}
// They are exported after 2 s. If that is in another round, its requests would pay for them.
process.on('SIGUSR2', () => void processor?.forceFlush())
