import type { Duplex } from 'node:stream'
import { noAmounts } from '../../domain/budgets.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { StoreUnavailable } from '../../runtime/store-unavailable.ts'
import type { DeliveryHistory } from '../ledger/delivery-marks.ts'
import type { SqliteLedger } from '../ledger/ledger-sqlite.ts'
import type { HeldAdmission } from '../ledger/memory-admission.ts'
import { outcomeColumns } from '../requests.ts'
import { checkMessage } from './check-message.ts'
import { type BrokenReason, FramedSocket, MessageTooLarge } from './framed-socket.ts'
import {
  type Answer,
  type Call,
  type ClaimCells,
  claimOf,
  outcomeOf,
  type OwnerHealth,
  type RequestAnswer,
  type RequestMessage,
  type RequestReport,
  sentError,
  signalCells,
  type Terms,
  type ToOwner,
} from './owner-messages.ts'

/** Calls of stores that one worker may have running. */
const maxStoreCalls = 1_000
/**
 * A worker asks for the owner's health four times a second. A worker that was silent at more than this many checks in a
 * row hangs. Checks are counted, not time, because an owner that was paused has not read what workers sent meanwhile.
 */
const maxSilentChecks = 6
const betweenChecksMs = 5_000

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
  readonly #admissions: (HeldAdmission | undefined)[] = []
  #held = 0
  /** By the numbers that the worker gave them. */
  readonly #terms: Terms[] = []
  /** The worker's waits for each commit, in the order of their requests. */
  readonly #waits = new Map<Promise<void>, number[]>()
  #storeCalls = 0
  #isGone = false
  #check: Timer | undefined
  /** Undefined until the worker has sent its first message. */
  #silentChecks: number | undefined

  /** `onBroken` is called at most once: the worker must be ended, if it has not ended itself. */
  constructor(socket: Duplex, parts: OwnedParts, onBroken: (trouble: WorkerTrouble, cause?: unknown) => void) {
    this.#parts = parts
    this.#onBroken = onBroken
    this.#socket = new FramedSocket(socket, parts.maxMessageBytes, {
      onMessage: (message) => this.#receive(message),
      onBroken: (reason, cause) => this.#break(reason, cause),
    })
    this.#scheduleCheck()
  }

  /** The ids of the requests whose end or delivery is not known yet. */
  get openRequests(): readonly string[] {
    return this.#admissions.flatMap((admission) => admission?.requestId ?? [])
  }

  /** The worker's process has ended: decides its requests by its marks (contract 36.11). */
  abandon(history: DeliveryHistory): readonly string[] {
    this.#isGone = true
    this.#check?.cancel()
    this.#socket.destroy()
    const uncharged = this.#admissions
      .splice(0)
      .filter((admission) => admission !== undefined)
      .filter((admission) => !admission.isOver && !admission.abandon(history))
    this.#held = 0
    return uncharged.map(({ requestId }) => requestId)
  }

  #scheduleCheck(): void {
    this.#check = this.#parts.clock.after(betweenChecksMs, () => {
      if (this.#silentChecks !== undefined && ++this.#silentChecks > maxSilentChecks) {
        this.#socket.destroy()
        this.#break('silent')
      } else this.#scheduleCheck()
    })
  }

  #break(trouble: WorkerTrouble, cause?: unknown): void {
    this.#check?.cancel()
    this.#onBroken(trouble, cause)
  }

  #receive(received: unknown): void {
    this.#silentChecks = 0
    const message = checkMessage(received)
    if (isAboutRequest(message)) return this.#note(message)
    try {
      const value = this.#answer(message)
      if (!(value instanceof Promise)) return this.#reply({ call: message.call, value: value ?? null })
      value.then(
        (resolved: unknown) =>
          message.do === 'store'
            ? this.#replyValue({ call: message.call, value: resolved })
            : this.#reply({ call: message.call, value: resolved ?? null }),
        (error: unknown) => this.#refuse(message.call, error),
      )
    } catch (error) {
      this.#refuse(message.call, error)
    }
  }

  #answer(message: Call): unknown {
    const { ledger } = this.#parts
    switch (message.do) {
      case 'signals':
        return ledger.signals(message.accountId, message.plan, message.rate)
      case 'health':
        return this.#health()
      case 'hold':
        return this.#admissions[message.request]?.held?.more(message) ?? false
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
      queues: { ledger: this.#held, database: this.#storeCalls },
    }
  }

  /** @throws TypeError if the message does not fit what the worker said before */
  #note(message: RequestMessage): void {
    const [what, number, third] = message
    if (what === 'terms') this.#terms[number] = third
    else if (what === 'admit') this.#admit(number, third, message[3], message[4])
    else if (what === 'durable') this.#answerWhenWritten(third, this.#admissions[number])
    else this.#report(message)
  }

  #admit(request: number, id: string, number: number, cells: ClaimCells | undefined): void {
    const terms = this.#terms[number]
    if (terms === undefined) throw new TypeError('this worker has sent no such terms')
    if (this.#admissions[request] !== undefined) throw new TypeError('this request is not over')
    const { accountId, keyId, profile, format, stream, units, plan, rate, budgets } = terms
    const opening = { id, accountId, keyId, profile, format, stream, units }
    const claim = cells === undefined || budgets === undefined ? undefined : claimOf(cells, budgets)
    try {
      const admitted = this.#parts.ledger.admitHeld(opening, plan, rate, claim)
      if (!(admitted instanceof Promise)) return this.#hold(request, admitted)
      admitted.then(
        (admission) => this.#hold(request, admission),
        (error: unknown) => this.#refuse(request, error),
      )
    } catch (error) {
      this.#refuse(request, error)
    }
  }

  #hold(request: number, admission: HeldAdmission): void {
    // Its worker died while the account's counters were read: nothing was dispatched.
    if (this.#isGone) return admission.settle(outcomeColumns({ charged: 0, attempts: [], totalMs: 0 }), null, noAmounts)
    this.#admissions[request] = admission
    this.#held += 1
    const signals = signalCells(admission.signals())
    const { held } = admission
    this.#answerRequest(
      held === undefined ? ['admitted', request, signals] : ['admitted', request, signals, held.outputTokens],
    )
  }

  #report(message: RequestReport): void {
    const [what, request] = message
    const admission = this.#admissions[request]
    if (admission === undefined) throw new TypeError('this worker has no such request')
    if (what === 'delivered') admission.delivered()
    else if (what === 'undelivered') admission.undelivered()
    else if (what === 'settle') {
      const [, , wait, dueMark, outcome, spent] = message
      const amounts = spent === undefined ? undefined : { nanoUsd: spent[0], tokens: spent[1] }
      admission.settle(outcomeOf(outcome), dueMark, amounts)
      if (wait !== null) this.#answerWhenWritten(wait, admission)
    }
    if (!admission.isOver) return
    this.#admissions[request] = undefined
    this.#held -= 1
  }

  /** One message answers all waits for a commit. A request that is over cannot be waited for. */
  #answerWhenWritten(wait: number, admission: HeldAdmission | undefined): void {
    if (admission === undefined) return this.#answerRequest(['failed', [wait]])
    const written = admission.durable()
    if (written === undefined) return this.#answerRequest(['durable', [wait]])
    const known = this.#waits.get(written)
    if (known !== undefined) return void known.push(wait)
    const waits = [wait]
    this.#waits.set(written, waits)
    const answer = (what: 'durable' | 'failed'): void => {
      this.#waits.delete(written)
      this.#answerRequest([what, waits])
    }
    written.then(
      () => answer('durable'),
      () => answer('failed'),
    )
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

  #answerRequest(answer: RequestAnswer): void {
    this.#socket.send(answer)
  }

  #reply(answer: Answer): void {
    this.#socket.send(answer)
  }

  #refuse(call: number, error: unknown): void {
    this.#reply({ call, error: sentError(error) })
  }

  #replyValue(answer: Answer): void {
    try {
      this.#socket.sendValue(answer)
    } catch (error) {
      const isTooLarge = error instanceof MessageTooLarge
      this.#refuse(answer.call, isTooLarge ? new StoreUnavailable(error.message) : error)
    }
  }
}

function isAboutRequest(message: ToOwner): message is RequestMessage {
  return Array.isArray(message)
}
