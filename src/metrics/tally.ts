import { Counter, type Registry } from '@prometheus-io/client'

/** One count of a tally. */
interface Count {
  value: number
}

/** What a tally counts: its metric's name, help, and one or two labels. */
export interface TallyOptions {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly [string] | readonly [string, string]
  readonly registry: Registry
}

/**
 * A counter that many requests increment: plain numbers, which the client library gets when the metrics are read. Its own
 * counters hash their labels every time, which would cost a small request several percent (decision 51).
 */
export class Tally {
  readonly #counts = new Map<string, Map<string, Count>>()

  constructor({ name, help, labelNames, registry }: TallyOptions) {
    const [first, second] = labelNames
    const counts = this.#counts
    const counter: Counter<string> = new Counter({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        counter.reset()
        for (const [one, bySecond] of counts)
          for (const [two, { value }] of bySecond)
            counter.inc(second === undefined ? { [first]: one } : { [first]: one, [second]: two }, value)
      },
    })
  }

  /** `second` is the value of the second label, if there is one. Both must come from a bounded list. */
  inc(first: string, second = '', by = 1): void {
    let bySecond = this.#counts.get(first)
    if (bySecond === undefined) this.#counts.set(first, (bySecond = new Map()))
    const count = bySecond.get(second)
    if (count === undefined) bySecond.set(second, { value: by })
    else count.value += by
  }
}
