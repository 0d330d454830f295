import type { Duplex } from 'node:stream'
import type { UsageSignals } from '../../domain/account-meter.ts'
import type { RequestOpening } from '../../domain/requests.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { StoreUnavailable } from '../../runtime/store-unavailable.ts'
import type { DeliveryHistory } from '../ledger/delivery-marks.ts'
import type { SqliteLedger } from '../ledger/ledger-sqlite.ts'
import type { HeldAdmission } from '../ledger/memory-admission.ts'
import { outcomeColumns } from '../requests.ts'
import { checkMessage } from './check-message.ts'
import { type BrokenReason, FramedSocket, MessageTooLarge } from './framed-socket.ts'
import { type Answer, type Call, type OwnerHealth, type Report, sentError } from './owner-messages.ts'

/** Calls of stores that one worker may have running. */
const maxStoreCalls = 1_000
/**
 * A worker asks for the owner's health four times a second. One that was silent at this many looks in a row hangs. Looks
 * are counted, not time, because an owner that was paused has not read what workers sent meanwhile.
 */
const maxSilentLooks = 6
const lookEveryMs = 5_000

/** What the owner's process does for its workers. */
export interface OwnedParts {
  readonly ledger: Pick<SqliteLedger, 'admitHeld' | 'signals' | 'flush'>
  /** The methods that workers may call, by the names of their stores. */
  readonly stores: Readonly<Record<string, object>>
  readonly isHealthy: () => boolean
  readonly clock: Clock
  readonly maxMessageBytes: number
}

/** Why a worker has to be ended. */
export type WorkerTrouble = BrokenReason | 'silent'

/** The owner's end of the connection to one worker. */
export class WorkerConnection {
  readonly #parts: OwnedParts
  readonly #socket: FramedSocket
  readonly #onBroken: (trouble: WorkerTrouble, cause?: unknown) => void
  /** The worker's requests whose end or delivery is not known yet. */
  readonly #admissions = new Map<string, HeldAdmission>()
  #storeCalls = 0
  #isGone = false
  #looks: Timer | undefined
  /** Undefined until the worker has sent its first message. */
  #silentLooks: number | undefined

  /** `onBroken` is called at most once: the worker must be ended, if it has not ended itself. */
  constructor(socket: Duplex, parts: OwnedParts, onBroken: (trouble: WorkerTrouble, cause?: unknown) => void) {
    this.#parts = parts
    this.#onBroken = onBroken
    this.#socket = new FramedSocket(socket, parts.maxMessageBytes, {
      onMessage: (message) => this.#receive(message),
      onBroken: (reason, cause) => this.#break(reason, cause),
    })
    this.#look()
  }

  /** The worker's process has ended: decides its requests by its marks (contract 36.11). */
  abandon(history: DeliveryHistory): void {
    this.#isGone = true
    this.#looks?.cancel()
    this.#socket.destroy()
    for (const admission of this.#admissions.values()) admission.abandon(history)
    this.#admissions.clear()
  }

  #look(): void {
    this.#looks = this.#parts.clock.after(lookEveryMs, () => {
      if (this.#silentLooks !== undefined && ++this.#silentLooks > maxSilentLooks) {
        this.#socket.destroy()
        this.#break('silent')
      } else this.#look()
    })
  }

  #break(trouble: WorkerTrouble, cause?: unknown): void {
    this.#looks?.cancel()
    this.#onBroken(trouble, cause)
  }

  #receive(received: unknown): void {
    this.#silentLooks = 0
    const message = checkMessage(received)
    if (!('call' in message)) return this.#note(message)
    try {
      const value = this.#answer(message)
      if (!(value instanceof Promise)) return this.#reply({ call: message.call, value: value ?? null })
      value.then(
        (resolved: unknown) =>
          message.do === 'store'
            ? this.#replyValue({ call: message.call, value: resolved })
            : this.#reply({ call: message.call, value: resolved ?? null }),
        (error: unknown) => this.#reply({ call: message.call, error: sentError(error) }),
      )
    } catch (error) {
      this.#reply({ call: message.call, error: sentError(error) })
    }
  }

  #answer(message: Call): unknown {
    const { ledger } = this.#parts
    switch (message.do) {
      case 'admit':
        return this.#admit(message.opening, ledger.admitHeld(message.opening, message.plan, message.rate))
      case 'signals':
        return ledger.signals(message.accountId, message.plan, message.rate)
      case 'durable':
        return this.#admissionOf(message.id).durable()
      case 'health':
        return this.#health()
      case 'flush':
        return ledger.flush()
      case 'store':
        return this.#callStore(message.noun, message.method, message.args)
    }
  }

  /** The queues are those of this worker alone: the figures of all workers are added up. */
  #health(): OwnerHealth {
    return {
      isHealthy: this.#parts.isHealthy(),
      queues: { ledger: this.#admissions.size, database: this.#storeCalls },
    }
  }

  #admit(
    opening: RequestOpening,
    admission: HeldAdmission | Promise<HeldAdmission>,
  ): UsageSignals | Promise<UsageSignals> {
    if (admission instanceof Promise)
      return admission.then((admitted) => this.#admit(opening, admitted) as UsageSignals)
    // Its worker died while the account's counters were read: nothing was dispatched.
    if (this.#isGone) admission.settle(outcomeColumns({ charged: 0, attempts: [], totalMs: 0 }), null)
    else this.#admissions.set(opening.id, admission)
    return admission.signals()
  }

  #note(report: Report): void {
    const admission = this.#admissionOf(report.id)
    if (report.do === 'delivered') admission.delivered()
    else if (report.do === 'undelivered') admission.undelivered()
    else admission.settle(report.outcome, report.dueMark)
    if (admission.isOver) this.#admissions.delete(report.id)
  }

  #admissionOf(id: string): HeldAdmission {
    const admission = this.#admissions.get(id)
    if (admission === undefined) throw new TypeError('this worker has no such request')
    return admission
  }

  async #callStore(noun: string, method: string, args: readonly unknown[]): Promise<unknown> {
    const { stores } = this.#parts
    const store = (Object.hasOwn(stores, noun) ? stores[noun] : {}) as Record<string, unknown>
    const found = Object.hasOwn(store, method) && method !== 'close' ? store[method] : undefined
    if (typeof found !== 'function') throw new TypeError('the store has no such method')
    if (this.#storeCalls >= maxStoreCalls) throw new StoreUnavailable('too many calls are waiting for the database')
    this.#storeCalls += 1
    try {
      return await (found.apply(store, args) as unknown)
    } finally {
      this.#storeCalls -= 1
    }
  }

  #reply(answer: Answer): void {
    this.#socket.send(answer)
  }

  #replyValue(answer: Answer): void {
    try {
      this.#socket.sendValue(answer)
    } catch (error) {
      const isTooLarge = error instanceof MessageTooLarge
      this.#reply({ call: answer.call, error: sentError(isTooLarge ? new StoreUnavailable(error.message) : error) })
    }
  }
}
