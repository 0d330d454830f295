/** What a plan includes. Each request takes one unit of the month unless its profile says otherwise (contract 5.17). */
export interface Plan {
  readonly id: string
  readonly name: string
  readonly requestsPerMinute: number
  readonly requestsPerMonth: number
  /** Whether premium profiles and tools are included (contract 5.4). */
  readonly premium: boolean
  /** Maximum number of concurrent fusions per account. Default: `usualFusionsAtOnce`. */
  readonly fusionsAtOnce?: number
}

/** The default for `fusionsAtOnce` of premium plans. */
export const usualFusionsAtOnce = 8

/** The plans if the configuration defines none (contract 5.1-5.3). */
export const defaultPlans: readonly Plan[] = [
  { id: 'free', name: 'Free', requestsPerMinute: 20, requestsPerMonth: 500, premium: false },
  { id: 'pro', name: 'Pro', requestsPerMinute: 120, requestsPerMonth: 20_000, premium: true, fusionsAtOnce: 8 },
  { id: 'max', name: 'Max', requestsPerMinute: 600, requestsPerMonth: 100_000, premium: true, fusionsAtOnce: 20 },
]
