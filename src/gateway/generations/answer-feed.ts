import type { UsageSignals } from '../../domain/account-meter.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import type { AnswerHead, AnswerSink } from '../ports.ts'
import { EventSkip } from './event-ids.ts'

/** A client that reads nothing for this long is dropped (contract 9.12). */
const slowReaderMs = 60_000
/** Bytes that the fastest client may be behind once the answer is no longer stored. */
const maxBacklogBytes = 256 * 1024
/** Bytes that are kept then for slower clients. */
const maxKeptBytes = 512 * 1024

/** How an answer was produced, with the counters of the request that runs it, if it runs in this process. */
export type FeedHead = Omit<AnswerHead, 'signals' | 'isReplayed'> & Partial<Pick<AnswerHead, 'signals'>>

/**
 * How following ended: `over` if the client received everything there was or disconnected; `vanished` if the generation
 * no longer exists and the client has received nothing, so that it can start again.
 */
export type FollowEnd = 'over' | 'vanished'

export interface FollowOptions {
  readonly sink: AnswerSink
  /** The client's counters; undefined if its request runs the generation. */
  readonly signals: UsageSignals | undefined
  /** The ID of the last event that the client has; undefined to start from the beginning. */
  readonly after?: number | undefined
}

export interface FeedOptions {
  readonly isStream: boolean
  readonly clock: Clock
  /** The end of a broken or canceled stream; `events` are all that the clients have received. */
  readonly brokenEnd: (error: ServiceError | undefined, events: Buffer) => Buffer
}

/** What has been written of one answer, for any number of clients, each at its own position (contract 39.5). */
export class AnswerFeed {
  readonly #options: FeedOptions
  readonly #followers = new Set<Follower>()
  #head: FeedHead | undefined
  /** Chunks from number `#first` on. Earlier ones are no longer needed. */
  #chunks: Buffer[] = []
  #first = 0
  #isEnded = false
  #isPartial = false
  /** Of a partial answer: its first event and its latest chunk, which a broken end continues. */
  #firstEvent: Buffer | undefined
  #latest: Buffer | undefined
  #failure: ServiceError | 'vanished' | undefined
  #wasBehind = false
  #drained: () => void = () => {}

  constructor(options: FeedOptions) {
    this.#options = options
  }

  get isStream(): boolean {
    return this.#options.isStream
  }

  get clock(): Clock {
    return this.#options.clock
  }

  get head(): FeedHead | undefined {
    return this.#head
  }

  /** Whether clients may have a part of the stream, even if only keep-alives, so that it must end with an event. */
  get hasBegunStream(): boolean {
    return this.isStream && this.#head !== undefined
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  /** The number of chunks so far. */
  get length(): number {
    return this.#first + this.#chunks.length
  }

  /** Whether another client can read it from the beginning. */
  get isReadable(): boolean {
    return !this.#isPartial && this.#failure === undefined
  }

  /** Whether even the fastest client is so far behind that the answer must wait. Only if it is not stored. */
  get isBehind(): boolean {
    if (!this.#isPartial) return false
    let fastest = this.#first
    for (const { position } of this.#followers) fastest = Math.max(fastest, position)
    return this.#bytesFrom(fastest) > maxBacklogBytes
  }

  chunk(number: number): Buffer | undefined {
    return this.#chunks[number - this.#first]
  }

  /** Everything so far. */
  all(): Buffer {
    return this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks)
  }

  /** What ends a stream that broke off here; without an error, one that was canceled. */
  brokenEnd(error: ServiceError | undefined): Buffer {
    const ends = [this.#firstEvent, this.#latest].filter((part) => part !== undefined)
    return this.#options.brokenEnd(error, this.#isPartial ? Buffer.concat(ends) : this.all())
  }

  setHead(head: FeedHead): void {
    this.#head ??= head
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk)
    if (this.#isPartial) this.#keepEnds(chunk)
    this.advance()
    if (this.#isPartial) this.#dropSlowest()
  }

  end(): void {
    this.#isEnded = true
    if (!this.isStream && this.#chunks.length > 1) {
      // Joined once: all clients send the same bytes.
      const whole = this.all()
      this.#first = this.length - 1
      this.#chunks = [whole]
    }
    this.advance()
  }

  /** Ends the answer with an error: for clients that have received nothing, as their whole response. */
  fail(error: ServiceError): void {
    this.#failure = error
    const text = this.#textOnce(error)
    for (const follower of this.#followers) follower.fail(error, text)
  }

  /** The generation is gone. Clients that have received something get the error. */
  vanish(error: ServiceError): void {
    this.#failure = 'vanished'
    const text = this.#textOnce(error)
    for (const follower of this.#followers) follower.vanish(text)
  }

  /** The answer is no longer stored: from now on only what its clients have not read is in memory. */
  forget(onDrain: () => void): void {
    this.#isPartial = true
    this.#drained = onDrain
    for (const chunk of [this.#chunks[0], this.#chunks.at(-1)]) if (chunk !== undefined) this.#keepEnds(chunk)
    this.#trim()
  }

  /** Resolves when the client has everything or has disconnected. @throws ServiceError if it has received nothing */
  follow(options: FollowOptions): Promise<FollowEnd> {
    if (this.#failure === 'vanished') return Promise.resolve('vanished')
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    // It became too large after this client had found it.
    if (this.#isPartial && this.#first > 0) return Promise.reject(new ServiceError('answer_interrupted'))
    const { promise, resolve, reject } = Promise.withResolvers<FollowEnd>()
    const follower = new Follower(this, options, (end) => {
      this.#followers.delete(follower)
      this.#trim()
      if (end instanceof Error) reject(end)
      else resolve(end)
    })
    this.#followers.add(follower)
    options.sink.onDisconnect(() => follower.leave())
    options.sink.onDrain(() => {
      follower.drained()
      this.#trim()
    })
    follower.advance()
    return promise
  }

  advance(): void {
    for (const follower of this.#followers) follower.advance()
    this.#trim()
  }

  /** Made at most once: all clients that have received something get the same. */
  #textOnce(error: ServiceError): () => Buffer {
    let text: Buffer | undefined
    return () => (text ??= this.brokenEnd(error))
  }

  #keepEnds(chunk: Buffer): void {
    this.#firstEvent ??= Buffer.from(chunk.subarray(0, chunk.indexOf('\n\n') + 2))
    this.#latest = chunk
  }

  #bytesFrom(number: number): number {
    return this.#chunks.slice(number - this.#first).reduce((sum, { length }) => sum + length, 0)
  }

  /** Clients that keep up do not wait for one that is far behind: it is disconnected (contract 39.5). */
  #dropSlowest(): void {
    if (this.isBehind) return
    let keptFrom = this.length
    for (let bytes = 0; keptFrom > this.#first; keptFrom -= 1) {
      bytes += this.chunk(keptFrom - 1)!.length
      if (bytes > maxKeptBytes) break
    }
    for (const follower of this.#followers) if (follower.position < keptFrom) follower.drop()
  }

  #trim(): void {
    if (!this.#isPartial) return
    let needed = this.length
    for (const { position } of this.#followers) needed = Math.min(needed, Math.max(position, this.#first))
    this.#chunks = this.#chunks.slice(needed - this.#first)
    this.#first = needed
    const { isBehind } = this
    const hasCaughtUp = this.#wasBehind && !isBehind
    this.#wasBehind = isBehind
    if (hasCaughtUp) this.#drained()
  }
}

/** One client that reads an answer. */
class Follower {
  readonly #feed: AnswerFeed
  readonly #options: FollowOptions
  readonly #done: (end: FollowEnd | ServiceError) => void
  readonly #skip: EventSkip | undefined
  /** The number of the next chunk. */
  position = 0
  #isOpen = false
  #isOver = false
  #isBlocked = false
  #limit: Timer | undefined

  constructor(feed: AnswerFeed, options: FollowOptions, done: (end: FollowEnd | ServiceError) => void) {
    this.#feed = feed
    this.#options = options
    this.#done = done
    this.#skip = options.after === undefined ? undefined : new EventSkip(options.after)
  }

  advance(): void {
    const { isStream, isEnded } = this.#feed
    if (this.#isOver || this.#feed.head === undefined) return
    if (isStream) this.#advanceStream()
    else if (isEnded) {
      this.#open()
      this.#end(this.#feed.all())
    }
  }

  drained(): void {
    this.#isBlocked = false
    this.#limit?.cancel()
    this.advance()
  }

  leave(): void {
    this.#finish('over')
  }

  /** Disconnects a client that reads too slowly. */
  drop(): void {
    this.#options.sink.drop()
    this.#finish('over')
  }

  fail(error: ServiceError, text: () => Buffer): void {
    if (this.#isOpen) this.#end(text())
    else this.#finish(error)
  }

  vanish(text: () => Buffer): void {
    if (this.#isOpen) this.#end(text())
    else this.#finish('vanished')
  }

  #advanceStream(): void {
    for (let chunk = this.#next(); chunk !== undefined; chunk = this.#next()) {
      this.#open()
      this.position += 1
      const rest = this.#skip === undefined ? chunk : this.#skip.rest(chunk)
      if (rest.length > 0 && !this.#options.sink.write(rest)) this.#block()
    }
    if (this.#feed.isEnded && this.position === this.#feed.length) this.#end()
  }

  #next(): Buffer | undefined {
    return this.#isBlocked || this.#isOver ? undefined : this.#feed.chunk(this.position)
  }

  #block(): void {
    this.#isBlocked = true
    this.#limit = this.#feed.clock.after(slowReaderMs, () => this.drop())
  }

  #open(): void {
    const { head } = this.#feed
    if (this.#isOpen || head === undefined) return
    this.#isOpen = true
    const { sink } = this.#options
    const signals = this.#options.signals ?? head.signals
    if (signals === undefined) throw new Error('an answer without counters')
    sink.open({ ...head, signals, ...(this.#options.signals !== undefined && { isReplayed: true }) })
  }

  #end(last?: Buffer): void {
    this.#open()
    this.#options.sink.end(last)
    this.#finish('over')
  }

  #finish(end: FollowEnd | ServiceError): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#limit?.cancel()
    this.#done(end)
  }
}
