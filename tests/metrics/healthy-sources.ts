import type { MetricsSources } from '../../src/metrics/service-metrics.ts'

/** What the metrics read from a service without troubles, queues, or shared resources. */
export const healthySources: MetricsSources = {
  ready: () => true,
  areSettingsApplied: () => true,
  stateOf: () => 'closed',
  sheds: () => false,
  shares: () => ({}),
  queues: () => ({}),
}
