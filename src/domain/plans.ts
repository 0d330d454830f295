/** What a plan buys: one unit of the month for each request unless the profile says otherwise (contract 4.3). */
export interface Plan {
  readonly id: string
  readonly name: string
  readonly requestsPerMinute: number
  readonly requestsPerMonth: number
  /** Whether the premium profiles and tools may be used (spec 1.4, 1.5). */
  readonly premium: boolean
}

/** The plans of a service whose configuration names none. */
export const defaultPlans: readonly Plan[] = [
  { id: 'free', name: 'Free', requestsPerMinute: 20, requestsPerMonth: 500, premium: false },
  { id: 'pro', name: 'Pro', requestsPerMinute: 120, requestsPerMonth: 20_000, premium: true },
  { id: 'max', name: 'Max', requestsPerMinute: 600, requestsPerMonth: 100_000, premium: true },
]
