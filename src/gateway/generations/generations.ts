import { ServiceError } from '../../domain/errors.ts'
import type { EventLog } from '../../domain/events.ts'
import type { JsonObject } from '../../domain/json.ts'
import type { Links } from '../../domain/links.ts'
import type { ClientFormatId } from '../../formats/format.ts'
import type { RelayRules } from '../../formats/relay.ts'
import type { Clock } from '../../runtime/clock.ts'
import { errorName } from '../../runtime/describe-bug.ts'
import { pause } from '../../runtime/pause.ts'
import type { Sealer } from '../../runtime/sealer.ts'
import type { Gateway } from '../gateway.ts'
import type { HeldBytes } from '../ports.ts'
import { describeFailure } from '../request/describe-failure.ts'
import { askStore } from '../responses/ask-store.ts'
import type { FollowEnd } from './answer-feed.ts'
import { BackgroundResponses } from './background-responses.ts'
import { brokenEnd } from './event-ids.ts'
import { type Entry, type KeyedRequest, nameOf, newEntry, type Resumption } from './generation-entry.ts'
import { GenerationRun } from './generation-run.ts'
import type { GenerationStore, NewGeneration, StoredGeneration } from './generation-store.ts'
import { interrupted, StoredFeed } from './stored-feed.ts'

/** How often running generations prolong their leases and look for cancellations. */
const renewMs = 2_000
/** How often a request starts again because the generation that it followed disappeared. */
const maxTries = 4
/** What a request with a key costs before admission, besides its body and an answer that is read (contract 29.5, 39.7). */
const claimCost = 48 * 1024
/** How long a cancellation waits for the process that runs the response: it looks every `renewMs`. */
const cancelMs = 6_000
/** How long a request waits until another one with its key is admitted. */
const admittedMs = 10_000
const pollMs = 50

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
  readonly mintRequestId: () => string
}

/** The response object of a background response, for the request that started it, or for a retry (contract 39.7). */
export interface StartedResponse {
  readonly response: JsonObject
  /** The request that runs or ran it. */
  readonly requestId: string
  readonly isReplayed: boolean
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
  async answer(given: KeyedRequest): Promise<void> {
    let keyed = given
    const { principal, request } = keyed
    const stream = keyed.answer === undefined && this.#deps.gateway.check(principal, request).stream
    request.work?.spend(claimCost)
    if (stream && keyed.after !== undefined) await this.#assertStored(keyed)
    for (let tries = 1; ; tries += 1) {
      // The key may have been revoked while another request's generation was followed (contract 3.11).
      if (tries > 1) await principal.recheck()
      const entry = this.#entryFor(keyed, stream)
      this.#join(entry, keyed)
      try {
        if ((await this.#follow(entry, keyed)) === 'over') return
        if (tries === maxTries) throw new ServiceError('restarting', { retryAfterSeconds: 1 })
        if (entry.runner === keyed) keyed = this.#another(keyed)
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
  async start(keyed: KeyedRequest): Promise<StartedResponse> {
    const { principal, request } = keyed
    const { stream } = this.#deps.gateway.check(principal, request)
    request.work?.spend(claimCost)
    const entry = this.#entryFor(keyed, stream)
    await entry.ready
    if (entry.bodyDigest !== keyed.bodyDigest) throw new ServiceError('idempotency_key_reused')
    const { requestId } = entry
    if (entry.runner === keyed) return { response: await entry.started.promise, requestId, isReplayed: false }
    const response = await this.backgrounds.responseOf(await this.#admitted(principal.accountId, requestId))
    return { response, requestId, isReplayed: true }
  }

  /** The generation of a background response that another request just started. @throws ServiceError `restarting` */
  async #admitted(accountId: string, requestId: string): Promise<StoredGeneration> {
    for (let waitedMs = 0; waitedMs < admittedMs; waitedMs += pollMs) {
      const found = await this.backgrounds.find(accountId, requestId)
      if (found === undefined) break
      if (found.sealedResponse !== undefined || found.state !== 'running') return found
      // Nobody has received its ID, so the next retry may run it again (contract 39.13).
      if (found.leaseLeftMs <= 0) break
      await pause(this.#deps.clock, pollMs)
    }
    throw new ServiceError('restarting', { retryAfterSeconds: 1 })
  }

  /**
   * Deletes a background response. One that runs is canceled first, wherever it runs, so that nothing of it is stored
   * afterwards (contract 39.21). @throws ServiceError `store_unavailable` if its process does not stop it in time
   */
  async remove(generation: StoredGeneration, removeAnswer: () => Promise<void>): Promise<void> {
    if (!(await this.cancel(generation))) throw new ServiceError('store_unavailable', { retryAfterSeconds: 1 })
    await removeAnswer()
    await this.backgrounds.remove(generation.accountId, generation.requestId)
  }

  /** Deletes a generation whose answer is complete, once its clients have the end of it. @throws ServiceError `store_unavailable` */
  async removeComplete(generation: StoredGeneration): Promise<void> {
    await this.#ended(generation)
    await this.backgrounds.remove(generation.accountId, generation.requestId)
  }

  /** Cancels a background response, wherever it runs, and waits until it has ended (contract 39.16); false if it has not in time. */
  async cancel(generation: StoredGeneration): Promise<boolean> {
    const { accountId, requestId } = generation
    const { store, log } = this.#deps
    const ended = this.#ended(generation)
    if (this.#running.has(requestId)) this.#cancel(requestId)
    else if (isLive(generation)) await askStore(log, () => store.requestCancel(accountId, requestId))
    return await ended
  }

  async #ended(generation: StoredGeneration): Promise<boolean> {
    const { accountId, requestId } = generation
    const isHere = this.#running.has(requestId)
    const isOver = (of: StoredGeneration | undefined): boolean =>
      isHere ? !this.#running.has(requestId) : of === undefined || !isLive(of)
    let found: StoredGeneration | undefined = generation
    for (let waitedMs = 0; waitedMs < cancelMs && !isOver(found); waitedMs += pollMs) {
      await pause(this.#deps.clock, pollMs)
      found = await this.backgrounds.find(accountId, requestId)
    }
    return isOver(found)
  }

  /**
   * Continues the stream of a response after an event, whether it still runs or not (contract 39.15). Resolves when the
   * client has everything or has disconnected. @throws ServiceError if the client has received nothing
   */
  async resume(generation: StoredGeneration, resumption: Resumption): Promise<void> {
    const name = nameOf(generation)
    const known = this.#entries.get(name)
    const isKnown = known?.requestId === generation.requestId && known.feed.isReadable
    const entry = isKnown ? known : this.#newEntry(name, generation)
    const held = isKnown ? undefined : resumption.hold()
    this.#join(entry, resumption)
    if (held !== undefined) {
      this.#entries.set(name, entry)
      void this.#read(entry, generation, held)
    }
    await entry.ready
    const signals = await this.#deps.gateway.signals(resumption.principal)
    const { sinkFor, after } = resumption
    const end = await entry.feed.follow({ sink: sinkFor(generation.requestId), signals, after })
    if (end === 'vanished') throw interrupted()
  }

  /** The entry has one client more, until the client has everything or has disconnected. */
  #join(entry: Entry, { onClosed }: Pick<KeyedRequest, 'onClosed'>): void {
    entry.clients += 1
    entry.detached?.cancel()
    onClosed(() => {
      entry.clients -= 1
      if (entry.clients === 0) this.#idle(entry)
    })
  }

  async #follow(entry: Entry, keyed: KeyedRequest): Promise<FollowEnd> {
    await entry.ready
    if (entry.bodyDigest !== keyed.bodyDigest) throw new ServiceError('idempotency_key_reused')
    const isReplayed = entry.runner !== keyed
    const signals = isReplayed ? await this.#deps.gateway.signals(keyed.principal) : undefined
    return await entry.feed.follow({ sink: keyed.sinkFor(entry.requestId), signals, after: keyed.after })
  }

  /** A request that ran is recorded under its ID, whatever became of it: a second run is a request of its own (contract 39.20). */
  #another(keyed: KeyedRequest): KeyedRequest {
    return { ...keyed, request: { ...keyed.request, id: this.#deps.mintRequestId() } }
  }

  /**
   * A client that continues a stream cannot go on with another answer (contract 39.18).
   * @throws ServiceError `answer_interrupted` if its stream is no longer stored
   */
  async #assertStored({ principal, keyDigest }: KeyedRequest): Promise<void> {
    const { store, log, clock } = this.#deps
    const { accountId } = principal
    if (this.#entries.has(nameOf({ accountId, keyDigest }))) return
    if (!(await askStore(log, () => store.has(accountId, keyDigest, clock.nowMs())))) throw interrupted()
  }

  /** The entry for a key. A new one is in the map before anything is awaited, so that one request of this process claims. */
  #entryFor(keyed: KeyedRequest, stream: boolean): Entry {
    const { principal, keyDigest, bodyDigest, request } = keyed
    const { accountId } = principal
    const name = nameOf({ accountId, keyDigest })
    const known = this.#entries.get(name)
    if (known !== undefined && known.feed.isReadable) return known
    const entry = this.#newEntry(name, { requestId: request.id, bodyDigest, format: request.format, stream })
    this.#entries.set(name, entry)
    entry.ready = this.#claim(entry, keyed)
    // Each client awaits it; without any, nobody needs to know.
    entry.ready.catch(() => this.#forget(entry))
    return entry
  }

  #newEntry(name: string, of: Pick<StoredGeneration, 'requestId' | 'bodyDigest' | 'format' | 'stream'>): Entry {
    const entry = newEntry(name, of, {
      clock: this.#deps.clock,
      brokenEnd: (error, events) => this.#brokenEnd(of.format, entry, error, events),
    })
    return entry
  }

  /** The next request with its key looks in the store. */
  #forget(entry: Entry): void {
    if (this.#entries.get(entry.name) === entry) this.#entries.delete(entry.name)
  }

  /** @throws ServiceError `store_unavailable`, `server_busy` */
  async #claim(entry: Entry, keyed: KeyedRequest): Promise<void> {
    const { store, log } = this.#deps
    const held = keyed.hold()
    try {
      const generation = this.#newGeneration(keyed, entry.feed.isStream)
      const found = await askStore(log, () => store.claim(generation))
      if (found !== undefined) keyed.request.work?.spend(found.bytes)
      void (found === undefined ? this.#run(entry, keyed, held) : this.#read(entry, found, held))
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
    const reader = new StoredFeed({ store, sealer, clock, log, held }, entry.feed, found)
    entry.stop = reader.stop.bind(reader)
    if (entry.clients > 0) await reader.run()
    this.#over(entry, held)
  }

  /** Runs a generation to its end, even if no client reads it anymore. Never rejects. */
  async #run(entry: Entry, keyed: KeyedRequest, held: HeldBytes & Disposable): Promise<void> {
    const { id } = keyed.request
    this.#running.set(id, entry)
    if (!this.#isRenewing) this.#renewLater()
    const run = new GenerationRun({ ...this.#deps, backgrounds: this.backgrounds }, entry, keyed, held)
    if (entry.clients === 0) this.#idle(entry)
    try {
      await run.run()
    } finally {
      entry.detached?.cancel()
      this.#running.delete(id)
      this.#over(entry, held)
    }
  }

  /** Nothing is added to the answer anymore. Its bytes count while clients receive them (contract 39.19). */
  #over(entry: Entry, held: Disposable): void {
    this.#forget(entry)
    entry.release = held[Symbol.dispose].bind(held)
    if (entry.clients === 0) entry.release()
  }

  /** No client is left: what another process runs is no longer read, and what runs here is canceled after a while (contract 30.22, 39.10). */
  #idle(entry: Entry): void {
    if (entry.release !== undefined) entry.release()
    else if (entry.runner === undefined) {
      entry.stop()
      // Another client could join before it has stopped.
      this.#forget(entry)
    } else if (!entry.runner.isBackground) entry.detached = this.#deps.clock.after(this.#deps.detachedMs, entry.stop)
  }

  #brokenEnd(format: ClientFormatId, entry: Entry, error: ServiceError | undefined, events: Buffer): Buffer {
    const rules = this.#deps.relays(format).stream
    if (rules === undefined) return Buffer.alloc(0)
    // A background response that has failed stays failed.
    const isStored = entry.runner?.isBackground === true
    return brokenEnd(rules, events, error && describeFailure(error, this.#deps.links, entry.requestId, isStored))
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

/** Whether a process still runs it, as far as the store knows. */
function isLive({ state, leaseLeftMs }: StoredGeneration): boolean {
  return (state === 'running' || state === 'too_large') && leaseLeftMs > 0
}

/** Whether an error says something about the key or the limits of the caller. */
function isAboutCaller(error: unknown): boolean {
  return error instanceof ServiceError && [401, 403, 429].includes(error.status)
}
