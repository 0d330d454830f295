import type { KeyRate, UsageSignals } from '../../domain/account-meter.ts'
import type { Plan } from '../../domain/plans.ts'
import type { RequestOpening, RequestOutcome } from '../../domain/requests.ts'
import type { Admission, DeliveryState, Ledger } from '../../gateway/ports.ts'
import { type DeliveryMarks, markedIdLength } from '../ledger/delivery-marks.ts'
import { LedgerUnavailable } from '../ledger/ledger-unavailable.ts'
import { outcomeColumns } from '../requests.ts'
import type { OwnerConnection } from './owner-connection.ts'

/** As for the database thread (contract 32.8). */
const decideLimitMs = 5_000
/** Longer than the owner tries to write, shorter than a caller waits (see `Admission.durable`). */
const durableLimitMs = 22_000

/** The ledger of a worker: the owner decides and records, and the worker writes its own delivery marks (contract 36.9). */
export class RemoteLedger implements Ledger {
  readonly #owner: OwnerConnection
  readonly #marks: DeliveryMarks

  constructor(owner: OwnerConnection, marks: DeliveryMarks) {
    this.#owner = owner
    this.#marks = marks
  }

  async admit(opening: RequestOpening, plan: Plan, rate?: KeyRate): Promise<Admission> {
    if (opening.id.length > markedIdLength) throw new RangeError('a request id is too long')
    if (!this.#owner.isHealthy) throw new LedgerUnavailable()
    // Its caller has got an error, and nothing was dispatched.
    const onLate = (): void => {
      const outcome = outcomeColumns({ charged: 0, attempts: [], totalMs: 0 })
      this.#owner.tell({ do: 'settle', id: opening.id, outcome, dueMark: null })
    }
    const question = { do: 'admit', opening, plan, rate } as const
    const signals = await this.#owner.ask<UsageSignals>(question, { limitMs: decideLimitMs, onLate })
    return new RemoteAdmission(opening, signals, this.#owner, this.#marks)
  }

  signals(accountId: string, plan: Plan, rate?: KeyRate): Promise<UsageSignals> {
    return this.#owner.ask({ do: 'signals', accountId, plan, rate }, { limitMs: decideLimitMs })
  }
}

class RemoteAdmission implements Admission {
  readonly #opening: RequestOpening
  readonly #signals: UsageSignals
  readonly #owner: OwnerConnection
  readonly #marks: DeliveryMarks
  #written: Promise<void> | undefined
  #isDurable = false
  #isDelivered = false
  #isSettled = false
  #isDue = false

  constructor(opening: RequestOpening, signals: UsageSignals, owner: OwnerConnection, marks: DeliveryMarks) {
    this.#opening = opening
    this.#signals = signals
    this.#owner = owner
    this.#marks = marks
  }

  /** The values at the time of admission. */
  signals(): UsageSignals {
    return this.#signals
  }

  durable(): Promise<void> | undefined {
    if (this.#isDurable) return undefined
    this.#written ??= this.#confirm()
    return this.#written
  }

  deliver(): void {
    if (this.#isDelivered) return
    if (!this.#isDurable) throw new LedgerUnavailable()
    const { id, stream } = this.#opening
    this.#marks.add(id)
    this.#isDelivered = true
    if (this.#isDue || (stream && !this.#isSettled)) this.#owner.tell({ do: 'delivered', id })
  }

  settle(outcome: RequestOutcome, delivery: DeliveryState): void {
    if (this.#isSettled) throw new Error('a request was settled twice')
    this.#isSettled = true
    this.#isDue = delivery === 'due' && outcome.charged > 0
    this.#isDurable = false
    this.#written = undefined
    const dueMark = this.#isDue ? this.#marks.next : null
    this.#owner.tell({ do: 'settle', id: this.#opening.id, outcome: outcomeColumns(outcome), dueMark })
  }

  async #confirm(): Promise<void> {
    const { id } = this.#opening
    const isSettled = this.#isSettled
    try {
      await this.#owner.ask({ do: 'durable', id }, { limitMs: durableLimitMs })
      if (isSettled === this.#isSettled) this.#isDurable = true
    } catch (error) {
      // From now on nothing is delivered, so the owner must not charge it.
      if (this.#isDue) this.#owner.tell({ do: 'undelivered', id })
      throw error
    }
  }
}
