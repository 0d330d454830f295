import { ServiceError } from '../../domain/errors.ts'
import type { EventLog } from '../../domain/events.ts'
import { generationBinding } from '../../domain/seal-bindings.ts'
import type { StreamRules } from '../../formats/relay.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { errorName } from '../../runtime/describe-bug.ts'
import type { Sealer } from '../../runtime/sealer.ts'
import type { AnswerHead, AnswerSink, HeldBytes } from '../ports.ts'
import type { AnswerFeed, FeedHead } from './answer-feed.ts'
import { EventIds } from './event-ids.ts'
import type { GenerationEnd, GenerationStore } from './generation-store.ts'

/** The shortest time between two writes to the store: what arrives meanwhile is written together (contract 39.5). */
const gatherMs = 25
/** Bytes that wait for the store; beyond it the backend is paused. */
const maxWaitingBytes = 256 * 1024
/** Bytes encrypted at once. */
const pieceBytes = 512 * 1024

export interface RecordingSinkOptions {
  readonly accountId: string
  readonly requestId: string
  readonly store: GenerationStore
  readonly sealer: Sealer
  readonly clock: Clock
  readonly log: EventLog
  readonly feed: AnswerFeed
  /** The format's rules for streams; undefined for an answer that is not streamed. */
  readonly rules: StreamRules | undefined
  /** The largest answer that is stored, bytes. */
  readonly maxBytes: number
  readonly held: HeldBytes
}

/**
 * Takes the place of the client of one request: stores the answer, and passes on only what is stored, so that a retry
 * finds at least what any client has received (contract 39.5).
 */
export class RecordingSink implements AnswerSink {
  readonly #options: RecordingSinkOptions
  readonly #ids: EventIds | undefined
  #head: AnswerHead | undefined
  #isHeadStored = false
  #pending: Buffer[] = []
  #pendingBytes = 0
  /** Stored, but not passed on before `release`. */
  #ready: Buffer[] = []
  #number = 0
  #bytes = 0
  #isHeld = false
  #hasContent = false
  #isEnded = false
  #isDropped = false
  #isCanceled = false
  #isDelivered = false
  #isWriting = false
  #isEndStored = false
  #isTooLarge = false
  #failure: ServiceError | undefined
  #writes: Promise<void> = Promise.resolve()
  #timer: Timer | undefined
  #wroteMs = Number.NEGATIVE_INFINITY
  #drain: (() => void)[] = []
  #disconnect: ((failure?: ServiceError) => void)[] = []

  constructor(options: RecordingSinkOptions) {
    this.#options = options
    this.#ids = options.rules && new EventIds(options.rules)
  }

  /** Whether content was written: the request is charged. */
  get hasContent(): boolean {
    return this.#hasContent
  }

  /** Whether a client may have received content. */
  get isDelivered(): boolean {
    return this.#isDelivered
  }

  /** Whether the answer is complete, or ended with an error in its own format. */
  get isEnded(): boolean {
    return this.#isEnded
  }

  /** Why nothing could be stored, or undefined. */
  get failure(): ServiceError | undefined {
    return this.#failure
  }

  open(head: AnswerHead): void {
    this.#head = head
    this.#options.feed.setHead(head)
  }

  write(bytes: string | Uint8Array, encoding: 'latin1' | 'utf8' = 'utf8'): boolean {
    this.#add(bytes, encoding)
    this.#schedule()
    return this.#hasRoom
  }

  end(bytes?: string | Uint8Array, encoding: 'latin1' | 'utf8' = 'utf8'): void {
    if (bytes !== undefined) this.#add(bytes, encoding)
    this.#isEnded = true
    this.#schedule()
  }

  /** Content follows: the run holds it until it is stored and the request is marked as delivered. */
  hold(): void {
    this.#isHeld = true
    this.#hasContent = true
  }

  release(): void {
    this.#isHeld = false
    if (this.#failure !== undefined) return
    this.#isDelivered = true
    for (const chunk of this.#ready.splice(0)) this.#options.feed.push(chunk)
    this.#passEnd()
    this.#schedule()
  }

  /** Nothing may be delivered, or a client of the run would be too slow: it has none, so its store is. */
  drop(): void {
    this.#isDropped = true
    this.#fail(new ServiceError('record_unavailable', { retryAfterSeconds: 1 }))
  }

  onDrain(run: () => void): void {
    this.#drain.push(run)
  }

  onDisconnect(run: (failure?: ServiceError) => void): void {
    if (this.#isCanceled) run(this.#failure)
    else this.#disconnect.push(run)
  }

  /** Stops the run, as if its client had disconnected, even if it has not begun yet. */
  cancel(): void {
    this.#isCanceled = true
    for (const run of this.#disconnect.splice(0)) run(this.#failure)
  }

  /** Resolves when everything written so far is stored, or `failure` says why it cannot be. */
  async flushed(): Promise<void> {
    await this.#flush()
  }

  /** Resolves when everything written so far is stored. @throws ServiceError if it cannot be */
  async stored(): Promise<void> {
    await this.flushed()
    if (this.#failure !== undefined) throw this.#failure
  }

  /**
   * Stores the rest; the run is over. `end` and `rest` are for an answer that is not complete: its state, and what ends
   * its stream.
   */
  async close(end: GenerationEnd, rest?: Buffer): Promise<void> {
    this.#isHeld = false
    if (rest !== undefined) {
      this.#pending.push(rest)
      this.#pendingBytes += rest.length
    }
    this.#isEnded = true
    await this.#flush(end)
    if (this.#isTooLarge)
      await this.#options.store.endLease(this.#options.requestId).catch((error: unknown) => this.#failWith(error))
  }

  get #hasRoom(): boolean {
    return this.#failure !== undefined || (this.#pendingBytes < maxWaitingBytes && !this.#options.feed.isBehind)
  }

  #add(bytes: string | Uint8Array, encoding: 'latin1' | 'utf8'): void {
    if (this.#failure !== undefined) return
    const text = typeof bytes === 'string' ? (this.#ids?.add(bytes) ?? bytes) : bytes
    const buffer = typeof text === 'string' ? Buffer.from(text, encoding) : Buffer.from(text)
    if (buffer.length === 0) return
    this.#pending.push(buffer)
    this.#pendingBytes += buffer.length
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#isHeld || this.#failure !== undefined) return
    const { clock } = this.#options
    const waitMs = Math.max(0, this.#wroteMs + gatherMs - clock.monotonicMs())
    this.#timer = clock.after(waitMs, () => {
      this.#timer = undefined
      void this.#flush()
    })
  }

  /** Writes after earlier writes. Never rejects. */
  #flush(end?: GenerationEnd): Promise<void> {
    this.#writes = this.#writes.then(() => this.#write(end)).catch((error: unknown) => this.#failWith(error))
    return this.#writes
  }

  async #write(end: GenerationEnd | undefined): Promise<void> {
    if (this.#failure !== undefined) return
    this.#isWriting = true
    this.#wroteMs = this.#options.clock.monotonicMs()
    const bytes = Buffer.concat(this.#pending)
    this.#pending = []
    this.#pendingBytes = 0
    const state = this.#isEndStored ? undefined : (end ?? (this.#isEnded && this.#hasContent ? 'finished' : undefined))
    if (bytes.length > 0 || state !== undefined) await this.#storeOrPass(bytes, state)
    this.#isWriting = false
    this.#passEnd()
    if (this.#hasRoom) for (const run of this.#drain) run()
    if (this.#pending.length > 0) this.#schedule()
  }

  async #storeOrPass(bytes: Buffer, end: GenerationEnd | undefined): Promise<void> {
    if (!this.#isTooLarge && !this.#mayStore(bytes.length)) await this.#giveUpStoring()
    if (!this.#isTooLarge) await this.#store(bytes, end)
    if (this.#failure !== undefined || bytes.length === 0) return
    if (this.#isHeld) this.#ready.push(bytes)
    else this.#options.feed.push(bytes)
  }

  async #store(bytes: Buffer, end: GenerationEnd | undefined): Promise<void> {
    const { accountId, requestId, store, sealer } = this.#options
    const pieces = Math.max(1, Math.ceil(bytes.length / pieceBytes))
    for (let piece = 0; piece < pieces; piece += 1) {
      const part = bytes.subarray(piece * pieceBytes, (piece + 1) * pieceBytes)
      const isLast = piece === pieces - 1
      const binding = generationBinding(accountId, requestId, this.#number)
      const isTaken = await store.append({
        accountId,
        requestId,
        number: this.#number,
        sealed: part.length === 0 ? undefined : sealer.seal(binding, part.toString('latin1')),
        bytes: part.length,
        head: this.#isHeadStored ? undefined : this.#headText(),
        hasContent: this.#hasContent,
        end: isLast ? end : undefined,
      })
      if (!isTaken) return this.#fail(new ServiceError('restarting', { retryAfterSeconds: 1 }))
      this.#isHeadStored ||= this.#head !== undefined
      if (part.length > 0) this.#number += 1
    }
    this.#bytes += bytes.length
    this.#isEndStored ||= end !== undefined
  }

  #headText(): string | undefined {
    if (this.#head === undefined) return undefined
    const { signals: _, ...head } = this.#head
    return JSON.stringify(head satisfies FeedHead)
  }

  #mayStore(bytes: number): boolean {
    const { maxBytes, held } = this.#options
    if (this.#bytes + bytes > maxBytes) return false
    try {
      held.grow(bytes)
      return true
    } catch (error) {
      if (error instanceof ServiceError) return false
      throw error
    }
  }

  /** The answer goes on for the clients that read it now, but no retry can have it (contract 39.12). */
  async #giveUpStoring(): Promise<void> {
    const { accountId, requestId, store, feed } = this.#options
    const { hasContent } = this
    await store.append({ accountId, requestId, number: this.#number, bytes: 0, hasContent, end: 'too_large' })
    await store.dropChunks(requestId)
    this.#isTooLarge = true
    this.#isEndStored = true
    feed.forget(() => {
      for (const run of this.#drain) run()
    })
  }

  #passEnd(): void {
    if (!this.#isEnded || this.#isHeld || this.#isWriting || this.#failure !== undefined) return
    const isAllPassed = this.#pending.length === 0 && this.#ready.length === 0
    if (isAllPassed && (this.#isEndStored || !this.#hasContent)) this.#options.feed.end()
  }

  #failWith(error: unknown): void {
    this.#options.log({ event: 'store_failing', reason: errorName(error) })
    this.#fail(new ServiceError('store_unavailable', { retryAfterSeconds: 1, cause: error }))
  }

  #fail(error: ServiceError): void {
    if (this.#failure !== undefined) return
    this.#failure = error
    this.#pending = []
    this.#pendingBytes = 0
    this.#timer?.cancel()
    // A run that waits for the store gets the error; any other one is stopped with it, so its client has not disconnected.
    if (!this.#isHeld && !this.#isDropped) this.cancel()
  }
}
