import { ServiceError } from '../domain/errors.ts'
import type { RequestWork } from '../gateway/auth/unadmitted-work.ts'
import type { LoadShedder } from '../gateway/overload/load-shedder.ts'
import type { HeldBytes, Principal } from '../gateway/ports.ts'
import type { Clock } from '../runtime/clock.ts'
import { FairQueue } from '../runtime/fair-queue.ts'
import { FairShare } from '../runtime/fair-share.ts'
import type { BodyCost } from './read-body.ts'
import type { Exchange } from './route.ts'

/** Bytes of bodies being read: at least this many in total, and room for several of the largest. */
const minReadingBytes = 24 * 1024 * 1024
const minReadingBodies = 5
/** Bodies being read at once: nearly all arrive with their headers. */
const maxReadingBodies = 1_024
/** Bodies that are incomplete after their first second (contract 29.4). */
const maxSlowBodies = 512
/** Bytes of bodies whose requests are being answered, likewise. */
const minAnsweringBytes = 512 * 1024 * 1024
const minAnsweringBodies = 100
/**
 * Bytes of whole answers, each at most 32 MiB: a single account gets 205 MiB, which leaves room for an answer of
 * another.
 */
const maxAnswerBytes = 256 * 1024 * 1024
/** Requests that wait for others to end (contract 29.15): at most this many, for at most this long, */
const maxWaiting = 256
const longestWaitMs = 1_000
/** and this share of the time that a request has. */
const shareOfTime = 0.25

/**
 * Limits what requests hold at once, shared fairly among accounts and, until admission, among addresses (contract
 * 29.2, 29.3). An account that holds its share gets 503 `server_busy`; other accounts do not.
 */
export class Intake {
  readonly #reading: ReadingResources
  readonly #answering: AnsweringResources
  readonly #assertAccepted: LoadShedder['assertAccepted']
  readonly #places: FairShare
  readonly #queue: FairQueue
  /** Fields, because a request that ends would otherwise cost two functions. */
  readonly #takePlace = (account: string): boolean => {
    const { requests } = this.#answering
    return requests.has(account) && requests.take(account)
  }
  readonly #letNext = (): void => {
    if (this.#queue.isEmpty) return
    while (this.#queue.next(this.#takePlace));
  }

  constructor(
    { bodyBytes, streams }: { readonly bodyBytes: number; readonly streams: number },
    clock: Clock,
    assertAccepted: LoadShedder['assertAccepted'],
  ) {
    this.#assertAccepted = assertAccepted
    this.#reading = {
      bodies: new FairShare(Math.min(streams, maxReadingBodies)),
      bytes: new FairShare(Math.max(minReadingBytes, minReadingBodies * bodyBytes)),
      slow: new FairShare(maxSlowBodies),
    }
    this.#answering = {
      requests: new FairShare(streams),
      requestBytes: new FairShare(Math.max(minAnsweringBytes, minAnsweringBodies * bodyBytes)),
      answerBytes: new FairShare(maxAnswerBytes),
    }
    this.#places = new FairShare(maxWaiting)
    this.#queue = new FairQueue(clock, this.#places)
  }

  /** The requests being answered, as a share of their limit. */
  get openShare(): number {
    const { used, limit } = this.#answering.requests
    return used / limit
  }

  /** The shared resources by name, for metrics. */
  get shares(): Readonly<Record<string, FairShare>> {
    const { bodies, bytes, slow } = this.#reading
    const { requests, requestBytes, answerBytes } = this.#answering
    return {
      bodies,
      body_bytes: bytes,
      slow_bodies: slow,
      requests,
      request_bytes: requestBytes,
      answer_bytes: answerBytes,
      waiting_requests: this.#places,
    }
  }

  /**
   * Starts reading a body, whose bytes also count toward `work`. `address` is the result of `addressGroup`.
   * @throws ServiceError `server_busy`
   */
  read(work: RequestWork, address: string): ReadingShare {
    if (!this.#reading.bodies.take(work.accountId, 1, address)) throw busy()
    return new ReadingShare(this.#reading, work, address)
  }

  /**
   * Starts answering a request of this many bytes. Dispose of the share when the answer has been sent.
   * @throws ServiceError `server_busy`
   */
  answer(accountId: string, bytes: number): AnsweringShare {
    const { requests, requestBytes } = this.#answering
    if (!requests.take(accountId)) throw busy()
    if (!requestBytes.take(accountId, bytes)) {
      requests.give(accountId)
      throw busy()
    }
    return this.#shareOf(accountId, bytes)
  }

  /**
   * The share of a request for another holder: a new one if the client has disconnected, which ended it.
   * @throws ServiceError `server_busy`
   */
  join(share: AnsweringShare): AnsweringShare {
    return share.join() ?? this.answer(share.accountId, share.requestBytes)
  }

  /**
   * Like `answer`, but waits a short time for room among the requests (contract 29.15).
   * @throws ServiceError `server_busy`, `load_shed`, and what `Principal.recheck` throws
   */
  answerInTurn(principal: Principal, request: TakenRequest): AnsweringShare | Promise<AnsweringShare> {
    const { accountId } = principal
    const { requests, requestBytes } = this.#answering
    const { length } = request.bytes
    if (!requestBytes.take(accountId, length)) throw busy()
    if (requests.take(accountId)) return this.#shareOf(accountId, length)
    return this.#answerLater(principal, request)
  }

  async #answerLater(principal: Principal, request: TakenRequest): Promise<AnsweringShare> {
    const { accountId } = principal
    const { requestBytes } = this.#answering
    const { length } = request.bytes
    try {
      await this.#waitForTurn(principal, request)
    } catch (error) {
      requestBytes.give(accountId, length)
      throw error
    }
    const share = this.#shareOf(accountId, length)
    try {
      // Its key may have been revoked meanwhile (contract 3.11).
      await principal.recheck()
    } catch (error) {
      share[Symbol.dispose]()
      throw error
    }
    return share
  }

  /** Resolves once a place among the requests was taken for the account. */
  async #waitForTurn(
    { accountId, plan }: Principal,
    { timeoutMs = Infinity, isRetry = false }: TakenRequest,
  ): Promise<void> {
    if (isRetry) throw busy()
    this.#assertAccepted(plan, isRetry)
    const turn = this.#queue.wait(accountId, Math.min(longestWaitMs, timeoutMs * shareOfTime))
    if (turn === undefined || !(await turn.came)) throw busy()
  }

  #shareOf(accountId: string, bytes: number): AnsweringShare {
    return new AnsweringShare(this.#answering, accountId, bytes, this.#letNext)
  }

  /** Like `answerInTurn`, until the response is closed. */
  answerUntilClosed(
    exchange: Exchange,
    principal: Principal,
    request: TakenRequest,
  ): AnsweringShare | Promise<AnsweringShare> {
    const share = this.answerInTurn(principal, request)
    return share instanceof Promise
      ? share.then((came) => holdUntilClosed(exchange, came))
      : holdUntilClosed(exchange, share)
  }
}

function holdUntilClosed(exchange: Exchange, share: AnsweringShare): AnsweringShare {
  // The client may have disconnected while the body was read or the request waited.
  if (exchange.response.destroyed) share[Symbol.dispose]()
  else exchange.held = share
  return share
}

/** What is known of a request before it is answered. */
interface TakenRequest {
  readonly bytes: { readonly length: number }
  readonly timeoutMs?: number | undefined
  readonly isRetry?: boolean | undefined
}

type ReadingResources = Readonly<Record<'bodies' | 'bytes' | 'slow', FairShare>>
type AnsweringResources = Readonly<Record<'requests' | 'requestBytes' | 'answerBytes', FairShare>>

/** What one request holds while it is answered: until each of its holders has disposed of it, once. */
export class AnsweringShare implements HeldBytes, Disposable {
  readonly accountId: string
  readonly requestBytes: number
  readonly #shared: AnsweringResources
  readonly #onEnd: () => void
  #answerBytes = 0
  /** 0 once the share has ended. */
  #holders = 1

  constructor(shared: AnsweringResources, accountId: string, requestBytes: number, onEnd: () => void) {
    this.#shared = shared
    this.accountId = accountId
    this.requestBytes = requestBytes
    this.#onEnd = onEnd
  }

  /**
   * Counts bytes of a whole answer until the share ends.
   * @throws ServiceError `server_busy` if the account's share is used up
   */
  grow(bytes: number): void {
    // Nothing would release them after the end.
    if (this.#holders === 0) return
    if (!this.#shared.answerBytes.take(this.accountId, bytes)) throw busy()
    this.#answerBytes += bytes
  }

  /** This share for another holder; undefined if it has ended. */
  join(): this | undefined {
    if (this.#holders === 0) return undefined
    this.#holders += 1
    return this
  }

  [Symbol.dispose](): void {
    this.#holders -= 1
    if (this.#holders > 0) return
    const { requests, requestBytes, answerBytes } = this.#shared
    requests.give(this.accountId)
    requestBytes.give(this.accountId, this.requestBytes)
    answerBytes.give(this.accountId, this.#answerBytes)
    this.#onEnd()
  }
}

/** What one body holds while it is read. */
export class ReadingShare implements BodyCost, Disposable {
  readonly #shared: ReadingResources
  readonly #address: string
  readonly #work: RequestWork
  #bytes = 0
  #isSlow = false
  #isHeld = true

  constructor(shared: ReadingResources, work: RequestWork, address: string) {
    this.#shared = shared
    this.#work = work
    this.#address = address
  }

  /** Counts received bytes. @throws ServiceError `server_busy` if the share is used up, and errors of the work */
  spend(bytes: number): void {
    if (!this.#shared.bytes.take(this.#work.accountId, bytes, this.#address)) throw busy()
    this.#bytes += bytes
    this.#work.spend(bytes)
  }

  /** Counts the body as slow, once. @throws ServiceError `server_busy` if its sender has too many slow bodies */
  slow(): void {
    if (this.#isSlow) return
    if (!this.#shared.slow.take(this.#work.accountId, 1, this.#address)) throw busy()
    this.#isSlow = true
  }

  [Symbol.dispose](): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    const { bodies, bytes, slow } = this.#shared
    bodies.give(this.#work.accountId, 1, this.#address)
    bytes.give(this.#work.accountId, this.#bytes, this.#address)
    if (this.#isSlow) slow.give(this.#work.accountId, 1, this.#address)
  }
}

function busy(): ServiceError {
  return new ServiceError('server_busy', { retryAfterSeconds: 1 })
}
