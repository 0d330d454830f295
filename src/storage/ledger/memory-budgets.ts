import { budgetError } from '../../domain/budget-error.ts'
import { BudgetMeter, type BucketSpending } from '../../domain/budget-meter.ts'
import { longestWindowMs } from '../../domain/budget-windows.ts'
import type { Amounts, BudgetClaim, BudgetHold } from '../../domain/budgets.ts'
import { HoldTimes } from './hold-times.ts'
import type { JournalEntry } from './records.ts'

/** After a larger step back of the clock, buckets are read again. */
const smallStepMs = 1_000

/** What the budgets of one account have spent in all buckets since a time. */
export type ReadSpending = (accountId: string, sinceMs: number) => Promise<readonly BucketSpending[]>

/** An account whose budgets are counted in memory, from its first request with a budget on. */
export interface BudgetedAccount {
  readonly id: string
  budgets: BudgetMeter | undefined
  budgetsLoading: Promise<void> | undefined
  /** The latest time by which they were counted since they were read, epoch milliseconds. */
  budgetsAtMs: number
}

/** The budgets that one process decides in memory (contract 46.3). */
export class MemoryBudgets {
  readonly #read: ReadSpending
  readonly #nowMs: () => number
  readonly #holdTimes = new HoldTimes()

  /** `nowMs`: epoch milliseconds of a clock that does not jump. */
  constructor(read: ReadSpending, nowMs: () => number) {
    this.#read = read
    this.#nowMs = nowMs
  }

  /** Undefined if the account's budgets are in memory, with all buckets that count; otherwise resolves when they are, once for all callers. */
  load(account: BudgetedAccount): Promise<void> | undefined {
    const nowMs = this.#nowMs()
    if (account.budgets !== undefined && nowMs >= account.budgetsAtMs - smallStepMs) {
      account.budgetsAtMs = Math.max(account.budgetsAtMs, nowMs)
      return undefined
    }
    // Also if the clock was set back: earlier windows count buckets that were not read, or were forgotten.
    account.budgetsLoading ??= this.#read(account.id, Math.floor(nowMs - longestWindowMs))
      .then((stored) => {
        if (account.budgets === undefined) account.budgets = new BudgetMeter(stored)
        else account.budgets.extend(stored)
        account.budgetsAtMs = nowMs
      })
      .finally(() => {
        account.budgetsLoading = undefined
      })
    return account.budgetsLoading
  }

  /** Takes the claim of a request. @throws ServiceError `budget_exceeded`, `budget_held` */
  claim(
    account: BudgetedAccount,
    claim: BudgetClaim,
  ): { readonly outputTokens: number; readonly holds: readonly BudgetHold[] } {
    const nowMs = this.#nowMs()
    const decided = account.budgets!.claim(nowMs, claim)
    if ('holds' in decided) return decided
    throw budgetError(claim, decided.standings, nowMs, this.#holdTimes.of(account.id))
  }

  /** Takes more for a request that was admitted with `claim`; returns all that it holds then. Undefined if its budgets do not allow it. */
  more(
    { budgets }: BudgetedAccount,
    claim: BudgetClaim,
    holds: readonly BudgetHold[],
    amounts: Amounts,
  ): readonly BudgetHold[] | undefined {
    return budgets!.more(this.#nowMs(), claim.budgets, holds, amounts)
  }

  /** Ends what a request holds: it is booked in its record. Does nothing for requests without budgets. */
  settle(account: BudgetedAccount, entry: JournalEntry, spent: Amounts | undefined, totalMs: number): void {
    if (entry.holds === undefined) return
    entry.booked = account.budgets!.settle(entry.holds, spent)
    this.#holdTimes.note(account.id, totalMs)
  }
}
