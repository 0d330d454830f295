import type { KeyRate, UsageSignals } from '../../domain/account-meter.ts'
import type { Amounts, BudgetClaim } from '../../domain/budgets.ts'
import type { Plan } from '../../domain/plans.ts'
import type { RequestOpening, RequestOutcome } from '../../domain/requests.ts'
import type { Admission, DeliveryState, HeldBudgets, Ledger } from '../../gateway/ports.ts'
import type { Clock } from '../../runtime/clock.ts'
import { StoreUnavailable } from '../../runtime/store-unavailable.ts'
import { type DeliveryMarks, markedIdLength } from '../ledger/delivery-marks.ts'
import { LedgerUnavailable } from '../ledger/ledger-unavailable.ts'
import { outcomeColumns } from '../requests.ts'
import type { Admitted, OwnerConnection } from './owner-connection.ts'
import { claimCells, outcomeCells, signalsOf, type Terms } from './owner-messages.ts'
import { SentTerms } from './sent-terms.ts'
import { type WriteWait, WriteWaits } from './write-waits.ts'

/** As for the database thread (contract 32.8). */
const decideLimitMs = 5_000

/** What admissions of a worker share. */
interface WorkerParts {
  readonly owner: OwnerConnection
  readonly marks: DeliveryMarks
  readonly waits: WriteWaits
}

/** The ledger of a worker: the owner decides and records, and the worker writes its own delivery marks (contract 36.9). */
export class RemoteLedger implements Ledger {
  readonly #parts: WorkerParts
  readonly #terms = new SentTerms()

  constructor(owner: OwnerConnection, marks: DeliveryMarks, clock: Clock) {
    this.#parts = { owner, marks, waits: new WriteWaits(owner, clock) }
  }

  admit(opening: RequestOpening, plan: Plan, rate?: KeyRate, claim?: BudgetClaim): Promise<Admission> {
    const { owner } = this.#parts
    if (opening.id.length > markedIdLength) throw new RangeError('a request id is too long')
    if (!owner.isHealthy) return Promise.reject(new LedgerUnavailable())
    const { id, accountId, keyId, profile, format, stream, units } = opening
    const terms: Terms = { accountId, keyId, profile, format, stream, units, plan, rate, budgets: claim?.budgets }
    const number = this.#terms.numberOf(terms, this.#tellTerms)
    return owner.admit(id, number, claim && claimCells(claim), {
      limitMs: decideLimitMs,
      onAdmitted: (admitted) => new RemoteAdmission(opening, admitted, this.#parts),
      onLate: this.#settleLate,
    })
  }

  signals(accountId: string, plan: Plan, rate?: KeyRate): Promise<UsageSignals> {
    return this.#parts.owner.ask({ do: 'signals', accountId, plan, rate }, { limitMs: decideLimitMs })
  }

  readonly #tellTerms = (number: number, terms: Terms): void => this.#parts.owner.tell(['terms', number, terms])

  /** The caller of a request has got an error, and nothing was dispatched. */
  readonly #settleLate = (request: number): void => {
    const outcome = outcomeColumns({ charged: 0, attempts: [], totalMs: 0 })
    this.#parts.owner.tell(['settle', request, null, null, outcomeCells(outcome), [0, 0]])
    this.#parts.owner.release(request)
  }
}

class RemoteAdmission implements Admission {
  readonly #opening: RequestOpening
  readonly #admitted: Admitted
  readonly #parts: WorkerParts
  readonly held: HeldBudgets | undefined
  #wait: WriteWait | undefined
  #isDelivered = false
  #isSettled = false
  #isDue = false

  constructor(opening: RequestOpening, admitted: Admitted, parts: WorkerParts) {
    this.#opening = opening
    this.#admitted = admitted
    this.#parts = parts
    const [, , , outputTokens] = admitted
    if (outputTokens !== undefined) this.held = { outputTokens, more: (amounts) => this.#holdMore(amounts) }
  }

  /** What messages name it by. */
  get #request(): number {
    return this.#admitted[1]
  }

  /** The values at the time of admission. */
  signals(): UsageSignals {
    return signalsOf(this.#admitted[2])
  }

  durable(): Promise<void> | undefined {
    // The owner has forgotten it.
    if (this.#isSettled && this.#wait === undefined) return Promise.reject(new LedgerUnavailable())
    this.#wait ??= this.#askForOpening()
    if (this.#wait.isWritten) return undefined
    if (!this.#parts.owner.isReachable)
      this.#wait.fail(new StoreUnavailable('the process that owns the database does not answer'))
    return this.#wait.promise
  }

  deliver(): void {
    if (this.#isDelivered) return
    if (this.#wait?.isWritten !== true) throw new LedgerUnavailable()
    const { id, stream } = this.#opening
    this.#parts.marks.add(id)
    this.#isDelivered = true
    const { owner } = this.#parts
    if (this.#isDue || (stream && !this.#isSettled)) owner.tellLater(['delivered', this.#request])
    if (this.#isDue) owner.release(this.#request)
  }

  settle(outcome: RequestOutcome, delivery: DeliveryState, spent?: Amounts): void {
    if (this.#isSettled) throw new Error('a request was settled twice')
    const { owner, marks, waits } = this.#parts
    const request = this.#request
    this.#isSettled = true
    this.#isDue = delivery === 'due' && outcome.charged > 0
    this.#wait = delivery === 'due' ? waits.ofAnswers() : undefined
    this.#wait?.add(this.#isDue ? request : undefined)
    const dueMark = this.#isDue ? marks.next : null
    const cells = outcomeCells(outcomeColumns(outcome))
    const wait = this.#wait?.number ?? null
    owner.tell(
      spent === undefined
        ? ['settle', request, wait, dueMark, cells]
        : ['settle', request, wait, dueMark, cells, [spent.nanoUsd, spent.tokens]],
    )
    if (!this.#isDue) owner.release(request)
  }

  #holdMore({ nanoUsd, tokens }: Amounts): Promise<boolean> {
    if (this.#isSettled) return Promise.resolve(false)
    const request = this.#request
    return this.#parts.owner.ask({ do: 'hold', request, nanoUsd, tokens }, { limitMs: decideLimitMs })
  }

  #askForOpening(): WriteWait {
    const wait = this.#parts.waits.ofOpenings()
    wait.add()
    this.#parts.owner.tell(['durable', this.#request, wait.number])
    return wait
  }
}
