import type { KeyRate, UsageSignals } from '../domain/account-meter.ts'
import type { Amounts, BudgetClaim } from '../domain/budgets.ts'
import type { Plan } from '../domain/plans.ts'
import type { RequestOpening, RequestOutcome } from '../domain/requests.ts'
import type { Admission, DeliveryState, HeldBudgets, KeyStore, Ledger } from '../gateway/ports.ts'
import type { Clock } from '../runtime/clock.ts'
import type { ServiceMetrics } from './service-metrics.ts'

type LedgerMetrics = Pick<ServiceMetrics, 'admitted' | 'settled' | 'deliveredUncounted' | 'stored'>

/** A ledger that also reports what goes through it, without changing any decision. */
export function observeLedger(ledger: Ledger, metrics: LedgerMetrics, clock: Clock): Ledger {
  return new ObservedLedger(ledger, metrics, clock)
}

/** A key store whose polls are measured: they show how fast the store answers even without traffic. */
export function observeKeyStore(store: KeyStore, metrics: Pick<LedgerMetrics, 'stored'>, clock: Clock): KeyStore {
  return {
    find: (digest) => store.find(digest),
    async revision() {
      const startedMs = clock.monotonicMs()
      try {
        return await store.revision()
      } finally {
        metrics.stored('poll', clock.monotonicMs() - startedMs)
      }
    },
  }
}

class ObservedLedger implements Ledger {
  readonly #ledger: Ledger
  readonly #metrics: LedgerMetrics
  readonly #clock: Clock
  readonly #commits: CommitTimes
  readonly prepare: Ledger['prepare']

  constructor(ledger: Ledger, metrics: LedgerMetrics, clock: Clock) {
    this.#ledger = ledger
    this.#metrics = metrics
    this.#clock = clock
    this.#commits = new CommitTimes(metrics, clock)
    if (ledger.prepare !== undefined) this.prepare = ledger.prepare.bind(ledger)
  }

  admit(opening: RequestOpening, plan: Plan, rate?: KeyRate, claim?: BudgetClaim): Admission | Promise<Admission> {
    const admitted = this.#ledger.admit(opening, plan, rate, claim)
    if (!(admitted instanceof Promise)) return this.#observe(opening, admitted)
    const startedMs = this.#clock.monotonicMs()
    return admitted
      .finally(() => this.#metrics.stored('admit', this.#clock.monotonicMs() - startedMs))
      .then((admission) => this.#observe(opening, admission))
  }

  signals(accountId: string, plan: Plan, rate?: KeyRate): UsageSignals | Promise<UsageSignals> {
    return this.#ledger.signals(accountId, plan, rate)
  }

  #observe(opening: RequestOpening, admission: Admission): Admission {
    this.#metrics.admitted(opening)
    return new ObservedAdmission(opening, admission, this.#metrics, this.#commits)
  }
}

/**
 * Checks the promise of contract 6.12 and 6.13 from outside the ledger: when an answer is delivered, the request must
 * be durable, and it must be charged in the end.
 */
class ObservedAdmission implements Admission {
  readonly #opening: RequestOpening
  readonly #admission: Admission
  readonly #metrics: LedgerMetrics
  readonly #commits: CommitTimes
  #isDelivered = false
  #charged: number | undefined

  constructor(opening: RequestOpening, admission: Admission, metrics: LedgerMetrics, commits: CommitTimes) {
    this.#opening = opening
    this.#admission = admission
    this.#metrics = metrics
    this.#commits = commits
  }

  signals(): UsageSignals {
    return this.#admission.signals()
  }

  durable(): Promise<void> | undefined {
    const written = this.#admission.durable()
    if (written !== undefined) this.#commits.measure(written)
    // Unchanged: callers compare it with that of other requests.
    return written
  }

  deliver(): void {
    const isEarly = this.#admission.durable() !== undefined
    this.#admission.deliver()
    if (this.#isDelivered) return
    this.#isDelivered = true
    if (isEarly || this.#isFree) this.#metrics.deliveredUncounted()
  }

  get held(): HeldBudgets | undefined {
    return this.#admission.held
  }

  settle(outcome: RequestOutcome, delivery: DeliveryState, spent?: Amounts): void {
    this.#admission.settle(outcome, delivery, spent)
    this.#charged = outcome.charged
    this.#metrics.settled(this.#opening)
    if (this.#isDelivered && this.#isFree) this.#metrics.deliveredUncounted()
  }

  /** Whether the request was settled without its charge. */
  get #isFree(): boolean {
    return this.#charged !== undefined && this.#charged < this.#opening.units
  }
}

/** Measures each commit once, however many requests wait for it. */
class CommitTimes {
  readonly #metrics: LedgerMetrics
  readonly #clock: Clock
  #last: Promise<void> | undefined

  constructor(metrics: LedgerMetrics, clock: Clock) {
    this.#metrics = metrics
    this.#clock = clock
  }

  measure(written: Promise<void>): void {
    if (written === this.#last) return
    this.#last = written
    const startedMs = this.#clock.monotonicMs()
    const measured = (): void => this.#metrics.stored('commit', this.#clock.monotonicMs() - startedMs)
    // The callers handle a failure.
    written.then(measured, measured)
  }
}
