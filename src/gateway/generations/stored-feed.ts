import { ServiceError } from '../../domain/errors.ts'
import type { EventLog } from '../../domain/events.ts'
import { generationBinding } from '../../domain/seal-bindings.ts'
import type { Clock } from '../../runtime/clock.ts'
import { errorName } from '../../runtime/describe-bug.ts'
import { pause } from '../../runtime/pause.ts'
import type { Sealer } from '../../runtime/sealer.ts'
import type { HeldBytes } from '../ports.ts'
import type { AnswerFeed, FeedHead } from './answer-feed.ts'
import type { GenerationStore, StoredGeneration } from './generation-store.ts'

/** How often the store is asked for new chunks of a generation that another process runs (contract 39.5). */
const pollMs = 50

interface StoredFeedDeps {
  readonly store: GenerationStore
  readonly sealer: Sealer
  readonly clock: Clock
  readonly log: EventLog
  /** Counts the bytes in memory. */
  readonly held: HeldBytes
}

/** Fills a feed with what another process stored of a generation, until it ends or nobody reads it. */
export class StoredFeed {
  readonly #deps: StoredFeedDeps
  readonly #feed: AnswerFeed
  readonly #accountId: string
  readonly #requestId: string
  #isStopped = false

  constructor(deps: StoredFeedDeps, feed: AnswerFeed, { accountId, requestId }: StoredGeneration) {
    this.#deps = deps
    this.#feed = feed
    this.#accountId = accountId
    this.#requestId = requestId
  }

  stop(): void {
    this.#isStopped = true
  }

  /** Resolves when the feed has ended or was stopped. Never rejects. */
  async run(): Promise<void> {
    try {
      while (!this.#isStopped && (await this.#readNews())) await pause(this.#deps.clock, pollMs)
    } catch (error) {
      if (error instanceof ServiceError) return this.#feed.fail(error)
      this.#deps.log({ event: 'store_failing', reason: errorName(error) })
      this.#feed.fail(new ServiceError('store_unavailable', { retryAfterSeconds: 1, cause: error }))
    }
  }

  /** Whether there may be more. */
  async #readNews(): Promise<boolean> {
    const { store, sealer, held } = this.#deps
    const feed = this.#feed
    const news = await store.read(this.#accountId, this.#requestId, feed.length)
    if (news === undefined) return this.#vanish()
    const { generation, chunks } = news
    if (generation.head !== undefined) feed.setHead(JSON.parse(generation.head) as FeedHead)
    const opened = chunks.map(({ number, sealed }) =>
      Buffer.from(sealer.open(generationBinding(this.#accountId, this.#requestId, number), sealed), 'latin1'),
    )
    // For all together: otherwise clients would receive a part.
    held.grow(opened.reduce((sum, { length }) => sum + length, 0))
    for (const bytes of opened) feed.push(bytes)
    if (generation.state === 'too_large') return this.#fail()
    if (feed.length < generation.chunks) return true
    if (generation.state === 'running') return generation.leaseLeftMs > 0 || (await this.#bury(generation))
    if (generation.head === undefined || (!feed.isStream && generation.state !== 'finished')) return this.#fail()
    feed.end()
    return false
  }

  /** The process that ran it is dead. Without content it can start again; otherwise what there is ends with an error. */
  async #bury(generation: StoredGeneration): Promise<boolean> {
    const { accountId, requestId, hasContent, isBackground, chunks: number } = generation
    const feed = this.#feed
    const isKnown = isBackground && (!feed.isStream || number > 0)
    if (!hasContent && !isKnown) return this.#vanish()
    const rest = feed.hasBegunStream ? feed.brokenEnd(interrupted()) : Buffer.alloc(0)
    const sealed =
      rest.length === 0
        ? undefined
        : this.#deps.sealer.seal(generationBinding(accountId, requestId, number), rest.toString('latin1'))
    const chunk = { accountId, requestId, number, sealed, bytes: rest.length, hasContent, end: 'interrupted' } as const
    await this.#deps.store.append({ ...chunk, onlyIfAbandoned: true })
    return true
  }

  #fail(): false {
    this.#feed.fail(interrupted())
    return false
  }

  #vanish(): false {
    this.#feed.vanish(new ServiceError('restarting', { retryAfterSeconds: 1 }))
    return false
  }
}

/** The error of an answer that cannot be completed under its key (contract 39.8). */
export function interrupted(): ServiceError {
  return new ServiceError('answer_interrupted')
}
