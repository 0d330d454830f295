import type { ServerResponse } from 'node:http'
import { ServiceError } from '../domain/errors.ts'
import { FairShare } from '../domain/fair-share.ts'

/** Bytes of bodies that are being read: at least this many in all, and room for so many of the largest. */
const minReadingBytes = 32 * 1024 * 1024
const minReadingBodies = 6
/** Bodies that are not there after their first second (contract 29.4). */
const maxSlowBodies = 512
/** Bytes of bodies whose requests are being answered, likewise. */
const minAnsweringBytes = 512 * 1024 * 1024
const minAnsweringBodies = 100

/**
 * What requests may hold at once, shared fairly among accounts and, until they are admitted, among addresses (contract
 * 29.2): an account that holds its share is refused 503 `server_busy`, and no other account is.
 */
export class Intake {
  readonly #reading: FairShare
  readonly #readingBytes: FairShare
  readonly #slow = new FairShare(maxSlowBodies)
  readonly #answering: FairShare
  readonly #answeringBytes: FairShare

  constructor({ bodyBytes, streams }: { readonly bodyBytes: number; readonly streams: number }) {
    this.#reading = new FairShare(streams)
    this.#answering = new FairShare(streams)
    this.#readingBytes = new FairShare(Math.max(minReadingBytes, minReadingBodies * bodyBytes))
    this.#answeringBytes = new FairShare(Math.max(minAnsweringBytes, minAnsweringBodies * bodyBytes))
  }

  /** Begins to read a body. `address` is as `addressGroup` gives it. @throws ServiceError `server_busy` */
  read(accountId: string, address: string): ReadingShare {
    if (!this.#reading.take(accountId, 1, address)) throw busy()
    return new ReadingShare({ bodies: this.#reading, bytes: this.#readingBytes, slow: this.#slow }, accountId, address)
  }

  /** Begins to answer a request of so many bytes; the function ends it. @throws ServiceError `server_busy` */
  answer(accountId: string, bytes: number): () => void {
    if (!this.#answering.take(accountId)) throw busy()
    if (!this.#answeringBytes.take(accountId, bytes)) {
      this.#answering.give(accountId)
      throw busy()
    }
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#answering.give(accountId)
      this.#answeringBytes.give(accountId, bytes)
    }
  }

  /** As `answer`, until a response is closed. */
  answerUntilClosed(response: ServerResponse, accountId: string, bytes: number): void {
    const release = this.answer(accountId, bytes)
    // Whoever left while the body was read is told to nobody any more.
    if (response.destroyed) release()
    else response.on('close', release)
  }
}

/** What one body holds while it is read. */
export class ReadingShare implements Disposable {
  readonly #shared: Record<'bodies' | 'bytes' | 'slow', FairShare>
  readonly #accountId: string
  readonly #address: string
  #bytes = 0
  #isSlow = false
  #isHeld = true

  constructor(shared: Record<'bodies' | 'bytes' | 'slow', FairShare>, accountId: string, address: string) {
    this.#shared = shared
    this.#accountId = accountId
    this.#address = address
  }

  /** Counts bytes that arrived. @throws ServiceError `server_busy` where they are more than the share */
  grow(bytes: number): void {
    if (!this.#shared.bytes.take(this.#accountId, bytes, this.#address)) throw busy()
    this.#bytes += bytes
  }

  /** Counts the body as slow, once. @throws ServiceError `server_busy` where its sender has more of these than its share */
  slow(): void {
    if (this.#isSlow) return
    if (!this.#shared.slow.take(this.#accountId, 1, this.#address)) throw busy()
    this.#isSlow = true
  }

  [Symbol.dispose](): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    const { bodies, bytes, slow } = this.#shared
    bodies.give(this.#accountId, 1, this.#address)
    bytes.give(this.#accountId, this.#bytes, this.#address)
    if (this.#isSlow) slow.give(this.#accountId, 1, this.#address)
  }
}

function busy(): ServiceError {
  return new ServiceError('server_busy', { retryAfterSeconds: 1 })
}
