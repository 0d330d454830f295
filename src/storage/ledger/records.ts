import type { BucketSpending } from '../../domain/budget-meter.ts'
import type { BudgetHold } from '../../domain/budgets.ts'
import type { RequestOpening } from '../../domain/requests.ts'
import { SetEntry } from '../../runtime/swap-remove-set.ts'
import type { OutcomeColumns } from '../requests.ts'
import { booked, type Cell, delivered, holding, lost, opening, outcome, whole } from '../sqlite/ledger-batch.ts'

/** What remains to be written about a request, as bit flags. */
export const writeOpening = 1
export const writeDelivered = 2
export const writeOutcome = 4
export const writeVoid = 8
export const writeLost = 16

/** Charges of one account that go into one batch together. */
export interface ChargedAccount {
  readonly id: string
  batchPeriodId: string
  batchUnits: number
}

/** One request on its way to the disk. */
export class JournalEntry extends SetEntry {
  readonly opening: RequestOpening
  readonly admittedAtMs: number
  readonly periodId: string
  readonly account: ChargedAccount
  outcome: OutcomeColumns | undefined
  /** What it holds of budgets; undefined if none apply to it. */
  holds: readonly BudgetHold[] | undefined
  /** What its budgets lost, once it has ended. */
  booked: readonly BucketSpending[] | undefined
  /** Set while a charged answer is settled before it leaves: the number of the next delivery mark at that time. */
  dueMark: number | null = null
  /** Whether its charge could not be written and was canceled: nothing may be delivered. */
  isVoid = false
  /** Whether another process still has to deliver it: it is in flight until that is known. */
  isHeld = false
  /** The batch that contains the request's last record. */
  batch: LedgerBatch
  toWrite = writeOpening

  constructor(
    facts: RequestOpening,
    admittedAtMs: number,
    periodId: string,
    account: ChargedAccount,
    batch: LedgerBatch,
  ) {
    super()
    this.opening = facts
    this.admittedAtMs = admittedAtMs
    this.periodId = periodId
    this.account = account
    this.batch = batch
  }
}

/** Entries that are written together, and who waits for that. */
export interface LedgerBatch {
  readonly number: number
  entries: JournalEntry[]
  /** Records of what running requests hold now; before those of the entries. */
  readonly holds: Cell[]
  isDurable: boolean
  waiting: PromiseWithResolvers<void> | undefined
  /** Until when it waits for more entries, unless a caller waits for the batch: monotonic milliseconds, from the first entry on. */
  lazyUntilMs: number
}

/** Appends to `into` what remains to be written about the request, as the worker expects it. */
export function writeRecords(entry: JournalEntry, into: Cell[]): void {
  const { toWrite } = entry
  const { id } = entry.opening
  const result = (toWrite & writeOutcome) === 0 ? undefined : entry.outcome
  if ((toWrite & writeOpening) !== 0) {
    into.push(result === undefined ? opening : whole)
    writeOpeningCells(entry, into)
    if (result !== undefined) writeOutcomeCells(result, entry.dueMark, into)
    else if ((toWrite & writeDelivered) !== 0) into.push(delivered, id)
  } else if (result !== undefined) {
    into.push(outcome)
    writeOutcomeCells(result, entry.dueMark, into)
    into.push(id)
  } else if ((toWrite & writeDelivered) !== 0) {
    into.push(delivered, id)
  }
  if (entry.holds !== undefined) writeBudgetRecords(entry, into)
  if ((toWrite & writeVoid) !== 0) into.push(lost, 0, id)
  if ((toWrite & writeLost) !== 0) into.push(lost, entry.outcome!.charged, id)
}

/** Appends what a request holds to `into`. */
export function writeHolds({ opening: { id }, holds }: JournalEntry, into: Cell[]): void {
  into.push(holding, JSON.stringify(holds), id)
}

/** A request that ends in the batch that it begins in has never held anything on disk. */
function writeBudgetRecords(entry: JournalEntry, into: Cell[]): void {
  const { id } = entry.opening
  if ((entry.toWrite & (writeOutcome | writeLost)) !== 0) into.push(booked, JSON.stringify(entry.booked), id)
  else if ((entry.toWrite & writeOpening) !== 0) writeHolds(entry, into)
}

/** What the records of `writeRecords` add to the spending of budgets: account, budget, bucket, amount, and so on. */
export function writeSpending({ toWrite, account, booked: spendings }: JournalEntry, into: Cell[]): void {
  if (spendings === undefined || (toWrite & (writeOutcome | writeLost)) === 0) return
  for (const { budgetId, bucketMs, spent } of spendings)
    if (spent !== 0) into.push(account.id, budgetId, bucketMs, spent)
}

function writeOpeningCells({ opening: facts, periodId, admittedAtMs }: JournalEntry, into: Cell[]): void {
  const stream = facts.stream ? 1 : 0
  into.push(facts.id, facts.accountId, facts.keyId, facts.profile, facts.format, stream, facts.units)
  // Rounded up, so that the minute is never shorter after a restart.
  into.push(periodId, Math.ceil(admittedAtMs))
}

function writeOutcomeCells(row: OutcomeColumns, dueMark: number | null, into: Cell[]): void {
  into.push(row.charged, dueMark, row.attempts, row.input_tokens, row.output_tokens, row.cached_tokens)
  into.push(row.reasoning_tokens, row.usage_source, row.error_code, row.first_content_ms, row.total_ms, row.fusions)
  into.push(row.passed_by, row.cache_write_tokens, row.usage_details, row.cost, row.cost_source, row.cache_saved)
  into.push(row.price_version, row.session)
}

/** What the records of `writeRecords` change in the account's units of the month. */
export function chargedUnits({ toWrite, outcome: result }: JournalEntry): number {
  const charged = result?.charged ?? 0
  return ((toWrite & (writeOutcome | writeLost)) === 0 ? 0 : charged) - ((toWrite & writeVoid) === 0 ? 0 : charged)
}
