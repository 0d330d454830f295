import { ServiceError } from '../../domain/errors.ts'
import type { EventLog } from '../../domain/events.ts'
import type { JsonObject } from '../../domain/json.ts'
import type { Links } from '../../domain/links.ts'
import type { AnswerContext, ClientFormatId } from '../../formats/format.ts'
import type { RelayRules } from '../../formats/relay.ts'
import type { Clock } from '../../runtime/clock.ts'
import { describeBug, errorName } from '../../runtime/describe-bug.ts'
import type { Sealer } from '../../runtime/sealer.ts'
import type { Gateway } from '../gateway.ts'
import type { HeldBytes } from '../ports.ts'
import { streamFailure } from '../request/stream-failure.ts'
import { askStore } from '../responses/ask-store.ts'
import { BackgroundResponses } from './background-responses.ts'
import { brokenEnd } from './event-ids.ts'
import { type Entry, type KeyedRequest, nameOf, newEntry, type Resumption } from './generation-entry.ts'
import type { GenerationStore, NewGeneration, StoredGeneration } from './generation-store.ts'
import { RecordingSink } from './recording-sink.ts'
import { interrupted, StoredFeed } from './stored-feed.ts'

/** How often running generations prolong their leases and look for cancellations. */
const renewMs = 2_000
/** How often a request starts again because the generation that it followed disappeared. */
const maxTries = 4
/** What a request with a key costs before admission, besides its body: the store is asked (contract 29.5). */
const claimCost = 48 * 1024
/** How long a cancellation waits for the process that runs the response: it looks every `renewMs`. */
const cancelMs = 6_000
const cancelPollMs = 50
/** The largest answer that is stored for retries, bytes (contract 39.12). */
const maxBytes = 8 * 1024 * 1024

export interface GenerationsDeps {
  readonly gateway: Pick<Gateway, 'answer' | 'check' | 'signals'>
  readonly store: GenerationStore
  readonly sealer: Sealer
  readonly clock: Clock
  readonly log: EventLog
  readonly links: Links
  readonly relays: (id: ClientFormatId) => RelayRules
  /** How long answers are stored for retries; 0 disables it. */
  readonly retentionMs: number
  /** How long a generation runs without any client. */
  readonly detachedMs: number
}

/** Answers that are generated once, however often they are asked for (contract 39). */
export class Generations {
  readonly #deps: GenerationsDeps
  readonly #entries = new Map<string, Entry>()
  /** By request ID. */
  readonly #running = new Map<string, Entry>()
  #isRenewing = false

  /** The responses that run in the background, in any process. */
  readonly backgrounds: BackgroundResponses

  constructor(deps: GenerationsDeps) {
    this.#deps = deps
    this.backgrounds = new BackgroundResponses(deps)
  }

  /** Whether answers are stored for retries at all. */
  get isOn(): boolean {
    return this.#deps.retentionMs > 0
  }

  /** Generations that run in this process. */
  get running(): number {
    return this.#running.size
  }

  /**
   * Answers a request, or attaches it to the generation with the same key. Resolves when the client has everything or
   * has disconnected. @throws ServiceError if the client has received nothing
   */
  async answer(keyed: KeyedRequest): Promise<void> {
    const { principal, request } = keyed
    const { stream } = this.#deps.gateway.check(principal, request)
    request.work?.spend(claimCost)
    for (let tries = 1; ; tries += 1) {
      const entry = this.#entryFor(keyed, stream)
      try {
        if ((await this.#follow(entry, keyed)) === 'over') return
        if (tries === maxTries) throw new ServiceError('restarting', { retryAfterSeconds: 1 })
      } catch (error) {
        // What was wrong with the caller of one request need not be wrong with that of another.
        const isOthers = entry.runner !== undefined && entry.runner !== keyed && isAboutCaller(error)
        if (!isOthers || tries === maxTries) throw error
      }
    }
  }

  /**
   * Starts a response in the background, and resolves with its response object once it is admitted; for a retry, with
   * what became of it (contract 39.14). @throws ServiceError
   */
  async start(keyed: KeyedRequest): Promise<JsonObject> {
    const { principal, request } = keyed
    const { stream } = this.#deps.gateway.check(principal, request)
    request.work?.spend(claimCost)
    const entry = this.#entryFor(keyed, stream)
    await entry.ready
    if (entry.bodyDigest !== keyed.bodyDigest) throw new ServiceError('idempotency_key_reused')
    if (entry.runner === keyed) return entry.started.promise
    const found = await this.backgrounds.find(principal.accountId, entry.requestId)
    if (found === undefined) throw new ServiceError('restarting', { retryAfterSeconds: 1 })
    return this.backgrounds.responseOf(found)
  }

  /** Cancels a background response, wherever it runs, and resolves with its response object (contract 39.16). */
  async cancel(generation: StoredGeneration): Promise<JsonObject> {
    const { accountId, requestId } = generation
    const { store, log, clock } = this.#deps
    if (this.#running.has(requestId)) this.#cancel(requestId)
    else if (generation.state === 'running') await askStore(log, () => store.requestCancel(accountId, requestId))
    let current: StoredGeneration | undefined = generation
    for (let waitedMs = 0; waitedMs < cancelMs && current?.state === 'running'; waitedMs += cancelPollMs) {
      await new Promise<void>((resolve) => clock.after(cancelPollMs, resolve))
      current = await this.backgrounds.find(accountId, requestId)
    }
    return this.backgrounds.responseOf(current ?? generation)
  }

  /**
   * Continues the stream of a response after an event, whether it still runs or not (contract 39.15). Resolves when the
   * client has everything or has disconnected. @throws ServiceError if the client has received nothing
   */
  async resume(generation: StoredGeneration, resumption: Resumption): Promise<void> {
    const name = nameOf(generation)
    let entry = this.#entries.get(name)
    if (entry === undefined || !entry.feed.isReadable || entry.requestId !== generation.requestId) {
      entry = this.#newEntry(generation)
      const made = entry
      this.#entries.set(name, made)
      const forget = (): void => this.#forget(name, made)
      void this.#read(made, generation, resumption.hold()).finally(forget)
    }
    await entry.ready
    const signals = await this.#deps.gateway.signals(resumption.principal)
    entry.detached?.cancel()
    const { sinkFor, after } = resumption
    const end = await entry.feed.follow({ sink: sinkFor(generation.requestId), signals, after })
    if (end === 'vanished') throw interrupted()
  }

  async #follow(entry: Entry, keyed: KeyedRequest): Promise<'over' | 'vanished'> {
    await entry.ready
    if (entry.bodyDigest !== keyed.bodyDigest) throw new ServiceError('idempotency_key_reused')
    const isReplayed = entry.runner !== keyed
    const signals = isReplayed ? await this.#deps.gateway.signals(keyed.principal) : undefined
    entry.detached?.cancel()
    return await entry.feed.follow({ sink: keyed.sinkFor(entry.requestId), signals, after: keyed.after })
  }

  /** The entry for a key. A new one is in the map before anything is awaited, so that one request of this process claims. */
  #entryFor(keyed: KeyedRequest, stream: boolean): Entry {
    const { principal, keyDigest, bodyDigest, request } = keyed
    const { accountId } = principal
    const name = nameOf({ accountId, keyDigest })
    const known = this.#entries.get(name)
    if (known !== undefined && known.feed.isReadable) return known
    const entry = this.#newEntry({ requestId: request.id, bodyDigest, format: request.format, stream })
    this.#entries.set(name, entry)
    const forget = (): void => this.#forget(name, entry)
    entry.ready = this.#claim(entry, keyed, forget)
    // Each follower awaits it; without any, nobody needs to know.
    entry.ready.catch(forget)
    return entry
  }

  #newEntry(of: Pick<StoredGeneration, 'requestId' | 'bodyDigest' | 'format' | 'stream'>): Entry {
    const entry = newEntry(of, {
      clock: this.#deps.clock,
      failureText: (error, events) => this.#failureText(of.format, entry.requestId, error, events),
      onIdle: () => this.#idle(entry),
    })
    return entry
  }

  #forget(name: string, entry: Entry): void {
    if (this.#entries.get(name) === entry) this.#entries.delete(name)
  }

  /** @throws ServiceError `store_unavailable`, `server_busy` */
  async #claim(entry: Entry, keyed: KeyedRequest, forget: () => void): Promise<void> {
    const { store, log } = this.#deps
    const held = keyed.hold()
    try {
      const generation = this.#newGeneration(keyed, entry.feed.isStream)
      const found = await askStore(log, () => store.claim(generation))
      if (found === undefined) void this.#run(entry, keyed, held).finally(forget)
      else void this.#read(entry, found, held).finally(forget)
    } catch (error) {
      held[Symbol.dispose]()
      throw error
    }
  }

  #newGeneration(keyed: KeyedRequest, stream: boolean): NewGeneration {
    const { principal, request, keyDigest, bodyDigest, isBackground } = keyed
    const createdAtMs = this.#deps.clock.nowMs()
    return {
      accountId: principal.accountId,
      keyDigest,
      requestId: request.id,
      bodyDigest,
      format: request.format,
      stream,
      isBackground,
      createdAtMs,
      expiresAtMs: createdAtMs + this.#deps.retentionMs,
    }
  }

  /** Reads a generation that another process runs or that has ended. Never rejects. */
  async #read(entry: Entry, found: StoredGeneration, held: HeldBytes & Disposable): Promise<void> {
    entry.requestId = found.requestId
    entry.bodyDigest = found.bodyDigest
    const { store, sealer, clock, log } = this.#deps
    const failureText = (error: ServiceError, events: Buffer): Buffer =>
      this.#failureText(found.format, found.requestId, error, events)
    const reader = new StoredFeed({ store, sealer, clock, log, held, failureText }, entry.feed, found)
    entry.stop = () => reader.stop()
    try {
      await reader.run()
    } finally {
      held[Symbol.dispose]()
    }
  }

  /** Runs a generation to its end, even if no client reads it anymore. Never rejects. */
  async #run(entry: Entry, keyed: KeyedRequest, held: HeldBytes & Disposable): Promise<void> {
    const { gateway, store, sealer, clock, log, relays } = this.#deps
    const { principal, request } = keyed
    const { accountId } = principal
    const { feed } = entry
    const rules = feed.isStream ? relays(request.format).stream : undefined
    const shared = { accountId, requestId: request.id, store, sealer, clock, log, feed, rules, maxBytes, held }
    const sink = new RecordingSink(shared)
    const onAdmitted = keyed.isBackground
      ? (context: AnswerContext): void => this.#started(entry, accountId, context)
      : undefined
    entry.runner = keyed
    entry.stop = () => sink.cancel()
    this.#running.set(request.id, entry)
    if (!this.#isRenewing) this.#renewLater()
    try {
      await gateway.answer(principal, { ...request, held, onAdmitted }, sink)
      await this.#finish(entry, sink, accountId)
    } catch (error) {
      await this.#refuse(entry, accountId, error)
    } finally {
      entry.detached?.cancel()
      // A client that still reads may leave later.
      entry.stop = () => {}
      this.#running.delete(request.id)
      held[Symbol.dispose]()
    }
  }

  /** The request of a background response is admitted: from now on, it can be retrieved. */
  #started(entry: Entry, accountId: string, context: AnswerContext): void {
    entry.isAdmitted = true
    const response = this.backgrounds.queued(context)
    this.backgrounds.save(accountId, entry.requestId, response).then(
      () => entry.started.resolve(response),
      (error: unknown) => {
        this.#deps.log({ event: 'store_failing', reason: errorName(error) })
        entry.started.reject(new ServiceError('store_unavailable', { retryAfterSeconds: 1, cause: error }))
        entry.stop()
      },
    )
  }

  /** The run has ended: stores the end, and deletes what may be asked again. */
  async #finish(entry: Entry, sink: RecordingSink, accountId: string): Promise<void> {
    const { feed, requestId } = entry
    const { failure } = sink
    if (failure !== undefined) {
      // Once content was delivered, the lease ends, and what is stored ends with an error.
      if (sink.isDelivered) return feed.fail(interrupted())
      await this.#remove(accountId, requestId)
      return failure.code === 'restarting' ? feed.vanish(failure) : feed.fail(failure)
    }
    if (sink.isEnded) {
      await sink.close('finished')
      // An error in a stream that had to begin early is not an answer.
      if (!sink.hasContent && entry.runner?.isBackground !== true) await this.#remove(accountId, requestId)
    } else {
      // Every client left, or it was canceled.
      const rest = feed.isStream && sink.hasContent ? await this.#broken(entry, sink) : undefined
      await sink.close(entry.isCanceled ? 'canceled' : 'interrupted', rest)
      if (rest === undefined) feed.fail(interrupted())
    }
    if (sink.failure !== undefined) feed.fail(sink.failure)
  }

  async #broken({ feed, runner, requestId }: Entry, sink: RecordingSink): Promise<Buffer | undefined> {
    if (runner === undefined) return undefined
    await sink.stored()
    return this.#failureText(runner.request.format, requestId, interrupted(), feed.all())
  }

  /** Nothing was answered, so nothing is stored: a retry may succeed (contract 39.13). */
  async #refuse(entry: Entry, accountId: string, thrown: unknown): Promise<void> {
    const { feed, requestId } = entry
    const error = thrown instanceof ServiceError ? thrown : new ServiceError('internal_error', { cause: thrown })
    // Otherwise the bug is logged with the response that reports it.
    if (error.code === 'internal_error' && feed.followers === 0)
      this.#deps.log({ event: 'internal_error', requestId, ...describeBug(error.cause) })
    if (entry.runner?.isBackground !== true) await this.#remove(accountId, requestId)
    else await this.#failBackground(entry, accountId, error)
    feed.fail(error)
  }

  /** A background response that was not admitted never existed; any other has failed. */
  async #failBackground(
    { started, isAdmitted, requestId }: Entry,
    accountId: string,
    error: ServiceError,
  ): Promise<void> {
    if (!isAdmitted) {
      started.reject(error)
      return this.#remove(accountId, requestId)
    }
    try {
      await this.backgrounds.fail(accountId, requestId, await started.promise, error)
    } catch (cause) {
      // Once the lease has ended, it counts as failed, too.
      this.#deps.log({ event: 'store_failing', reason: errorName(cause) })
    }
  }

  /** If this fails, a retry starts again once the lease has ended. */
  async #remove(accountId: string, requestId: string): Promise<void> {
    const { store, log } = this.#deps
    await store.remove(accountId, requestId).catch((error: unknown) => {
      log({ event: 'store_failing', reason: errorName(error) })
    })
  }

  /** Nobody reads it now: what another process runs is no longer read, and what runs here is canceled after a while (contract 30.22, 39.10). */
  #idle(entry: Entry): void {
    if (entry.runner === undefined) entry.stop()
    else if (!entry.runner.isBackground) entry.detached = this.#deps.clock.after(this.#deps.detachedMs, entry.stop)
  }

  #failureText(format: ClientFormatId, requestId: string, error: ServiceError, events: Buffer): Buffer {
    const rules = this.#deps.relays(format).stream
    if (rules === undefined) return Buffer.alloc(0)
    return brokenEnd(rules, events, streamFailure(error, this.#deps.links, requestId))
  }

  #renewLater(): void {
    this.#isRenewing = true
    this.#deps.clock.after(renewMs, () => {
      this.#isRenewing = false
      if (this.#running.size === 0) return
      this.#renew().catch((error: unknown) => {
        this.#deps.log({ event: 'store_failing', reason: errorName(error) })
      })
      this.#renewLater()
    })
  }

  async #renew(): Promise<void> {
    const canceled = await this.#deps.store.renew([...this.#running.keys()])
    for (const requestId of canceled) this.#cancel(requestId)
  }

  #cancel(requestId: string): void {
    const entry = this.#running.get(requestId)
    if (entry === undefined) return
    entry.isCanceled = true
    entry.stop()
  }
}

/** Whether an error says something about the key or the limits of the caller. */
function isAboutCaller(error: unknown): boolean {
  return error instanceof ServiceError && [401, 403, 429].includes(error.status)
}
