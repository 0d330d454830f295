/** What a plan buys: one unit of the month for each request unless the profile says otherwise (contract 5.17). */
export interface Plan {
  readonly id: string
  readonly name: string
  readonly requestsPerMinute: number
  readonly requestsPerMonth: number
  /** Whether the premium profiles and tools may be used (contract 5.4). */
  readonly premium: boolean
  /** Deliberated answers that one account may have under way at once; `usualFusionsAtOnce` unless said. */
  readonly fusionsAtOnce?: number
}

/** What a premium plan allows of `fusionsAtOnce` that says nothing of it. */
export const usualFusionsAtOnce = 8

/** The plans of a service whose configuration names none (contract 5.1). */
export const defaultPlans: readonly Plan[] = [
  { id: 'free', name: 'Free', requestsPerMinute: 20, requestsPerMonth: 500, premium: false },
  { id: 'pro', name: 'Pro', requestsPerMinute: 120, requestsPerMonth: 20_000, premium: true, fusionsAtOnce: 8 },
  { id: 'max', name: 'Max', requestsPerMinute: 600, requestsPerMonth: 100_000, premium: true, fusionsAtOnce: 20 },
]
