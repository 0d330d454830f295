import { ServiceError } from '../../domain/errors.ts'
import type { EventLog } from '../../domain/events.ts'
import type { ClientFormatId } from '../../domain/format-id.ts'
import type { AnswerContext } from '../../formats/format.ts'
import type { RelayRules } from '../../formats/relay.ts'
import type { Clock } from '../../runtime/clock.ts'
import { describeBug, errorName } from '../../runtime/describe-bug.ts'
import type { Sealer } from '../../runtime/sealer.ts'
import type { Gateway } from '../gateway.ts'
import type { HeldBytes } from '../ports.ts'
import type { BackgroundResponses } from './background-responses.ts'
import type { Entry, KeyedRequest } from './generation-entry.ts'
import type { GenerationStore } from './generation-store.ts'
import { RecordingSink } from './recording-sink.ts'
import { interrupted } from './stored-feed.ts'

/** The largest answer that is stored for retries, bytes (contract 39.12). */
const maxBytes = 8 * 1024 * 1024
/** The first and the longest wait before a failed deletion of a generation without an answer is repeated, for about an hour. */
const removeAgainMs = 2_000
const removeAgainMaxMs = 60_000
const maxRemovals = 60

interface GenerationRunDeps {
  readonly gateway: Pick<Gateway, 'answer'>
  readonly store: GenerationStore
  readonly backgrounds: BackgroundResponses
  readonly sealer: Sealer
  readonly clock: Clock
  readonly log: EventLog
  readonly relays: (id: ClientFormatId) => RelayRules
}

/** Runs one generation to its end, whether clients receive it or not, and stores what a retry must find. */
export class GenerationRun {
  readonly #deps: GenerationRunDeps
  readonly #entry: Entry
  readonly #keyed: KeyedRequest
  readonly #held: HeldBytes
  readonly #sink: RecordingSink
  /** Whether the response object of a background response is or will be stored. */
  #isAdmitted = false

  constructor(deps: GenerationRunDeps, entry: Entry, keyed: KeyedRequest, held: HeldBytes) {
    this.#deps = deps
    this.#entry = entry
    this.#keyed = keyed
    this.#held = held
    const { store, sealer, clock, log, relays } = deps
    const { principal, request } = keyed
    const { feed } = entry
    const rules = feed.isStream ? relays(request.format).stream : undefined
    const named = { accountId: principal.accountId, requestId: request.id }
    this.#sink = new RecordingSink({ ...named, store, sealer, clock, log, feed, rules, maxBytes, held })
    entry.runner = keyed
    entry.stop = this.#sink.cancel.bind(this.#sink)
  }

  /** Never rejects. */
  async run(): Promise<void> {
    try {
      await this.#answer()
      await this.#finish()
    } catch (error) {
      await this.#refuse(error)
    }
  }

  async #answer(): Promise<void> {
    const { principal, request, isBackground, answer } = this.#keyed
    const onAdmitted = isBackground ? (context: AnswerContext): void => this.#started(context) : undefined
    // The deadline of one client does not end the answer of all (contract 39.17).
    const detached = { ...request, timeoutMs: undefined, held: this.#held, onAdmitted }
    try {
      if (answer === undefined) await this.#deps.gateway.answer(principal, detached, this.#sink)
      else await answer(detached, this.#sink)
    } catch (error) {
      // If the answer could not be stored, that decides what becomes of it, whatever error the run made of it.
      if (this.#sink.failure === undefined || !(error instanceof ServiceError)) throw error
    }
  }

  /** The request of a background response is admitted: from now on, it can be retrieved. */
  #started(context: AnswerContext): void {
    const { backgrounds, log } = this.#deps
    const { started, stop } = this.#entry
    this.#isAdmitted = true
    const response = backgrounds.queued(context)
    backgrounds.save(this.#keyed.principal.accountId, this.#keyed.request.id, response).then(
      () => started.resolve(response),
      (error: unknown) => {
        log({ event: 'store_failing', reason: errorName(error) })
        started.reject(new ServiceError('store_unavailable', { retryAfterSeconds: 1, cause: error }))
        stop()
      },
    )
  }

  /** The run has ended: stores the end, and deletes what may be asked again. */
  async #finish(): Promise<void> {
    const { feed, isCanceled } = this.#entry
    const sink = this.#sink
    await sink.flushed()
    const { failure, hasContent } = sink
    if (failure !== undefined) {
      // Once content was delivered, the lease ends, and what is stored ends with an error.
      if (sink.isDelivered) return feed.fail(interrupted())
      await this.#removeOrFail(failure)
      return failure.code === 'restarting' ? feed.vanish(failure) : feed.fail(failure)
    }
    if (sink.isEnded) {
      await sink.close('finished')
      // An error in a stream that had to begin early is not an answer.
      if (!hasContent && !this.#keyed.isBackground) await this.#remove()
    } else {
      // Every client left, or it was canceled: it is charged, so it never runs again.
      const rest = feed.hasBegunStream ? feed.brokenEnd(isCanceled ? undefined : interrupted()) : undefined
      await sink.close(isCanceled ? 'canceled' : 'interrupted', rest)
      if (rest === undefined) feed.fail(interrupted())
    }
    // Clients that have content must not be told to send the request again.
    if (sink.failure !== undefined) feed.fail(sink.isDelivered ? interrupted() : sink.failure)
  }

  /** Nothing was delivered, so nothing is stored: a retry may succeed (contract 39.13). */
  async #refuse(thrown: unknown): Promise<void> {
    const { feed, requestId, clients } = this.#entry
    const { isDelivered } = this.#sink
    const error = thrown instanceof ServiceError ? thrown : new ServiceError('internal_error', { cause: thrown })
    // Otherwise the bug is logged with the response that reports it.
    if (error.code === 'internal_error' && (clients === 0 || isDelivered))
      this.#deps.log({ event: 'internal_error', requestId, ...describeBug(error.cause) })
    if (isDelivered) return feed.fail(interrupted())
    await this.#removeOrFail(error)
    feed.fail(error)
  }

  /** A background response is kept as failed, unless its ID is known only from events that no client has received. */
  async #removeOrFail(error: ServiceError): Promise<void> {
    const { feed } = this.#entry
    const isKnown = !feed.isStream || feed.length > 0
    if (this.#keyed.isBackground && isKnown) await this.#failBackground(error)
    else await this.#remove()
  }

  #remove(): Promise<void> {
    return removeGeneration(this.#deps, this.#keyed.principal.accountId, this.#keyed.request.id)
  }

  /** A background response that was not admitted never existed; any other has failed. */
  async #failBackground(error: ServiceError): Promise<void> {
    const { started, requestId, feed } = this.#entry
    if (!this.#isAdmitted) {
      started.reject(error)
      return this.#remove()
    }
    try {
      const response = await started.promise
      const rest = feed.length > 0 ? feed.brokenEnd(error) : Buffer.alloc(0)
      const end = { accountId: this.#keyed.principal.accountId, requestId, number: feed.length }
      await this.#deps.backgrounds.fail(end, { response, rest, error })
    } catch (cause) {
      // Once the lease has ended, it counts as failed, too.
      this.#deps.log({ event: 'store_failing', reason: errorName(cause) })
    }
  }
}

/**
 * If this fails, it is repeated: the store may have taken content although it reported an error, and a retry would get that
 * instead of an answer.
 */
async function removeGeneration(
  deps: Pick<GenerationRunDeps, 'store' | 'log' | 'clock'>,
  accountId: string,
  requestId: string,
  tries = 1,
): Promise<void> {
  try {
    await deps.store.remove(accountId, requestId)
  } catch (error) {
    deps.log({ event: 'store_failing', reason: errorName(error) })
    if (tries === maxRemovals) return
    const againMs = Math.min(removeAgainMaxMs, removeAgainMs * 2 ** (tries - 1))
    deps.clock.after(againMs, () => void removeGeneration(deps, accountId, requestId, tries + 1))
  }
}
