import { type MetricObjectWithValues, type MetricValue, type Registry } from '@prometheus-io/client'

/** The observations of one label value. */
interface Observations {
  /** Observations per bucket, not cumulative. The last bucket has those above all bounds. */
  readonly counts: number[]
  sum: number
}

/** What a histogram measures: its metric's name, help, label, and the upper bounds of its buckets, ascending. */
export interface TallyHistogramOptions {
  readonly name: string
  readonly help: string
  readonly labelName: string
  readonly bounds: readonly number[]
  readonly registry: Registry
}

type Values = MetricObjectWithValues<MetricValue<string> & { readonly metricName: string }>

/** A histogram as plain numbers, like `Tally`, because the client library's takes a microsecond per observation. */
export class TallyHistogram {
  readonly #options: TallyHistogramOptions
  readonly #byLabel = new Map<string, Observations>()

  constructor(options: TallyHistogramOptions) {
    this.#options = options
    const { name, help, registry } = options
    // The members of a metric that the registry reads. The library's own class cannot set all counts at once.
    registry.registerMetric({ name, help, type: 'histogram', aggregator: 'sum', get: () => this.#read() } as never)
  }

  /** `label` must come from a bounded list. */
  observe(label: string, value: number): void {
    const { bounds } = this.#options
    let observations = this.#byLabel.get(label)
    if (observations === undefined) {
      observations = { counts: Array.from({ length: bounds.length + 1 }, () => 0), sum: 0 }
      this.#byLabel.set(label, observations)
    }
    let bucket = 0
    while (bucket < bounds.length && value > bounds[bucket]!) bucket += 1
    observations.counts[bucket]! += 1
    observations.sum += value
  }

  #read(): Omit<Values, 'collect'> {
    const { name, help, labelName, bounds } = this.#options
    const values = [...this.#byLabel].flatMap(([label, { counts, sum }]) => {
      let count = 0
      const buckets = counts.map((own, bucket) => {
        count += own
        const labels = { le: bounds[bucket] ?? '+Inf', [labelName]: label }
        return { labels, value: count, metricName: `${name}_bucket` }
      })
      const labels = { [labelName]: label }
      return [
        ...buckets,
        { labels, value: sum, metricName: `${name}_sum` },
        { labels, value: count, metricName: `${name}_count` },
      ]
    })
    return { name, help, type: 'histogram', values, aggregator: 'sum' }
  }
}
