import type { AccountMeter, KeyRate, UsageSignals } from '../../domain/account-meter.ts'
import { type Amounts, assertAmounts, bookable, type BudgetClaim } from '../../domain/budgets.ts'
import type { Plan } from '../../domain/plans.ts'
import type { RequestOutcome } from '../../domain/requests.ts'
import type { Admission, DeliveryState, HeldBudgets } from '../../gateway/ports.ts'
import { type OutcomeColumns, outcomeColumns } from '../requests.ts'
import { type DeliveryHistory, type MarkRing, mayHaveBeenDelivered } from './delivery-marks.ts'
import type { LedgerJournal } from './journal.ts'
import { LedgerUnavailable } from './ledger-unavailable.ts'
import type { BudgetedAccount, MemoryBudgets } from './memory-budgets.ts'
import type { QuotaCalendar } from './quota-calendar.ts'
import type { ChargedAccount, JournalEntry } from './records.ts'

/** One account's counters, and how many of its requests are not completely on disk. */
export interface MeteredAccount extends ChargedAccount, BudgetedAccount {
  readonly meter: AccountMeter
  pending: number
}

export function accountOf(entry: JournalEntry): MeteredAccount {
  return entry.account as MeteredAccount
}

/** What admissions of one ledger share. */
export interface LedgerParts {
  readonly calendar: QuotaCalendar
  readonly journal: LedgerJournal
  readonly marks: MarkRing
  readonly budgets: MemoryBudgets
}

/** The limits that a request was admitted under. */
export interface AdmissionTerms {
  readonly plan: Plan
  readonly rate: KeyRate | undefined
  readonly claim: BudgetClaim | undefined
}

abstract class EntryAdmission {
  protected readonly entry: JournalEntry
  protected readonly ledger: LedgerParts
  readonly held: HeldBudgets | undefined
  readonly #terms: AdmissionTerms

  constructor(ledger: LedgerParts, { entry, outputTokens }: EnteredRequest, terms: AdmissionTerms) {
    this.ledger = ledger
    this.entry = entry
    if (outputTokens !== undefined) this.held = { outputTokens, more: (amounts) => this.#holdMore(amounts) }
    this.#terms = terms
  }

  signals(): UsageSignals {
    const { plan, rate } = this.#terms
    return accountOf(this.entry).meter.signals(this.ledger.calendar.now(), plan, rate)
  }

  async #holdMore(amounts: Amounts): Promise<boolean> {
    const { entry, ledger } = this
    const { claim } = this.#terms
    assertAmounts(amounts)
    if (claim === undefined || entry.holds === undefined || entry.outcome !== undefined) return false
    const holds = ledger.budgets.more(accountOf(entry), claim, entry.holds, amounts)
    if (holds === undefined) return false
    await ledger.journal.holdMore(entry, holds)
    return true
  }

  durable(): Promise<void> | undefined {
    return this.ledger.journal.durable(this.entry)
  }

  /** Returns the units that were not charged, and what its budgets did not lose (see `Admission.settle`). */
  protected refund(charged: number, totalMs: number, spent: Amounts | undefined): void {
    const { opening, periodId } = this.entry
    const account = accountOf(this.entry)
    account.meter.settle(periodId, opening.units, charged)
    this.ledger.budgets.settle(account, this.entry, bookable(spent), totalMs)
  }
}

/** An admitted request. */
export interface EnteredRequest {
  readonly entry: JournalEntry
  readonly outputTokens: number | undefined
}

/** An admission whose answer this process delivers. */
export class MemoryAdmission extends EntryAdmission implements Admission {
  #isDelivered = false

  deliver(): void {
    const { entry } = this
    if (this.#isDelivered) return
    if (entry.isVoid || !entry.batch.isDurable) throw new LedgerUnavailable()
    this.ledger.marks.add(entry.opening.id)
    this.#isDelivered = true
    // A whole answer is settled immediately; for a stream, the disk must record the delivery before its mark is
    // overwritten.
    if (entry.opening.stream && entry.outcome === undefined) this.ledger.journal.markDelivered(entry)
  }

  settle(outcome: RequestOutcome, delivery: DeliveryState, spent?: Amounts): void {
    const { entry } = this
    if (entry.outcome !== undefined) throw new Error('a request was settled twice')
    this.refund(outcome.charged, outcome.totalMs, spent)
    const isDue = delivery === 'due' && outcome.charged > 0
    this.ledger.journal.settle(entry, outcomeColumns(outcome), isDue ? this.ledger.marks.next : null)
  }
}

/** An admission whose answer another process delivers, which writes the marks and reports what it did. */
export class HeldAdmission extends EntryAdmission {
  #isDelivered = false

  get requestId(): string {
    return this.entry.opening.id
  }

  /** Whether nothing more can become of it. */
  get isOver(): boolean {
    return this.entry.outcome !== undefined && !this.entry.isHeld
  }

  /** The answer was marked: a stream that is running, or a settled one that was due. */
  delivered(): void {
    const { entry } = this
    if (this.#isDelivered) return
    this.#isDelivered = true
    if (entry.outcome === undefined) this.ledger.journal.markDelivered(entry)
    else if (entry.isHeld) this.ledger.journal.release(entry, true)
  }

  /** The other process gave up a due answer: its charge is canceled. */
  undelivered(): void {
    if (this.entry.isHeld) this.ledger.journal.release(this.entry, false)
  }

  /** `dueMark`: see `LedgerJournal.settle`. */
  settle(outcome: OutcomeColumns, dueMark: number | null, spent?: Amounts): void {
    const { entry } = this
    if (entry.outcome !== undefined) throw new Error('a request was settled twice')
    this.refund(outcome.charged, outcome.total_ms, spent)
    entry.isHeld = dueMark !== null
    this.ledger.journal.settle(entry, outcome, dueMark)
  }

  /** The other process died: what its marks say was delivered is charged, and nothing else. Returns whether it was. */
  abandon(history: DeliveryHistory): boolean {
    const { entry } = this
    const { id, units } = entry.opening
    const isDelivered = this.#isDelivered || mayHaveBeenDelivered(id, entry.dueMark, history)
    if (entry.isHeld) this.ledger.journal.release(entry, isDelivered)
    if (entry.outcome !== undefined) return isDelivered
    const outcome = outcomeColumns({ charged: isDelivered ? units : 0, attempts: [], totalMs: 0 })
    // What its upstream calls cost is unknown.
    this.refund(outcome.charged, outcome.total_ms, undefined)
    this.ledger.journal.lose(entry, outcome)
    return isDelivered
  }
}
