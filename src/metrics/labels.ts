import { errorCatalog } from '../domain/errors.ts'
import { requestFormatIds } from '../domain/format-id.ts'
import type { AttemptOutcome } from '../domain/upstream.ts'

/** The label of a value that is not in its list. */
const unknownLabel = 'other'
/** The label of every backend that an account connected: their names are not bounded. */
export const accountBackendLabel = 'account'

/** Every attempt outcome (contract 28.6). */
export const attemptOutcomes = Object.keys({
  answered: true,
  rejected_credentials: true,
  rejected_content: true,
  context_too_long: true,
  not_capable: true,
  rate_limited: true,
  server_error: true,
  unreachable: true,
  reset: true,
  timeout: true,
  broken: true,
  not_found: true,
  not_sent: true,
  cancelled: true,
} satisfies Record<AttemptOutcome, true>)

/** The components that can report failures, by the event of their log line. */
export const failingParts = {
  ledger_failing: 'ledger',
  store_failing: 'store',
  settings_failing: 'settings',
  audit_failing: 'audit',
  mail_failing: 'mail',
  budget_webhook_failing: 'budget_webhook',
  billing_failing: 'billing',
  scanning_keys_failing: 'scanning_keys',
  tracing_failing: 'tracing',
  web_app_failing: 'web_app',
  internal_error: 'bug',
  out_of_descriptors: 'descriptors',
} as const

export const errorLabels: readonly string[] = Object.keys(errorCatalog)

/**
 * Replaces every value outside a fixed list, so that no caller, account, or provider can add time series or put text
 * into a metric (contract 28.1, 28.13).
 */
export class Labels {
  readonly #profiles: KnownNames
  readonly #backends: KnownNames
  readonly #formats: ReadonlySet<string> = new Set(requestFormatIds)
  readonly #attempts: ReadonlySet<string> = new Set(attemptOutcomes)
  readonly #parts: ReadonlyMap<string, string> = new Map(Object.entries(failingParts))
  readonly #errors: ReadonlySet<string> = new Set(errorLabels)

  constructor(profiles: () => readonly string[], backends: () => readonly string[]) {
    this.#profiles = new KnownNames(profiles)
    this.#backends = new KnownNames(backends)
  }

  /** The component whose failure an event reports; undefined for other events. */
  part(event: string): string | undefined {
    return this.#parts.get(event)
  }

  profile(id: string): string {
    return this.#profiles.has(id) ? id : unknownLabel
  }

  backend(id: string): string {
    return this.#backends.has(id) ? id : accountBackendLabel
  }

  format(id: string): string {
    return this.#formats.has(id) ? id : unknownLabel
  }

  attempt(outcome: string): string {
    return this.#attempts.has(outcome) ? outcome : unknownLabel
  }

  error(code: string): string {
    return this.#errors.has(code) ? code : unknownLabel
  }
}

/** How many names may get time series before the process restarts: operators can declare others while it runs. */
const maxNames = 1_000

/** The names that are configured, or were since the process started. */
class KnownNames {
  readonly #current: () => readonly string[]
  readonly #known = new Set<string>()

  constructor(current: () => readonly string[]) {
    this.#current = current
  }

  has(name: string): boolean {
    if (this.#known.has(name)) return true
    if (this.#known.size >= maxNames || !this.#current().includes(name)) return false
    this.#known.add(name)
    return true
  }
}
