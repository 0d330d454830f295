import type { RequestOutcome } from '../../src/domain/requests.ts'
import type { RoutingPolicy } from '../../src/domain/routing-policy.ts'
import { UpstreamError } from '../../src/domain/upstream.ts'
import { bodyShape, JsonScan } from '../../src/formats/json-scan.ts'
import { CacheSessions } from '../../src/gateway/cache/cache-sessions.ts'
import type { CacheSessionStore } from '../../src/gateway/cache/session-store.ts'
import { hashText, seededRandom } from '../../src/gateway/fusion/engine/seeded-random.ts'
import type { Gateway } from '../../src/gateway/gateway.ts'
import type { Backend, Principal, UpstreamListener, UpstreamRequest } from '../../src/gateway/ports.ts'
import { BackendStatistics } from '../../src/gateway/routing/backend-statistics.ts'
import { CircuitBreakers } from '../../src/gateway/routing/circuit-breakers.ts'
import { KeyedDigest } from '../../src/runtime/keyed-digest.ts'
import { FakeSink } from '../gateway/fake-gateway.ts'
import { someBackend } from '../gateway/routing/some-backend.ts'
import { plan, signals, simulatedGateway, timeouts } from './simulated-gateway.ts'
import { SimulatedTime } from './simulated-time.ts'

/** Claude Opus 5 without marks: writing costs as much as input. US dollars per million tokens. */
const price = { input: 5, output: 25, cachedInput: 0.5 }
/** Bodies are short, so that thousands of sessions can be simulated: each byte stands for this many tokens. */
const tokensPerByte = 5
/** As OpenAI describes it: whole messages, from 1,024 tokens on, five minutes after the last use. */
const leastTokens = 1_024
const lifetimeMs = 300_000
const outputTokens = 300

/** What a backend does at one moment. */
export type CacheCondition = 'answers' | 'refuses' | { readonly retryAfterMs: number } | { readonly cutAfter: number }

/** One simulated backend with a cache of its own. Times are milliseconds since the start. */
export interface CachingBackend {
  readonly id: string
  /** Backends with the same domain have one cache. */
  readonly domain: string
  readonly conditionAt: (ms: number) => CacheCondition
  readonly medianMs: number
}

/** One request of a session. */
export interface SentTurn {
  readonly session: string
  readonly accountId?: string
  readonly messages: readonly object[]
  readonly tools?: readonly object[]
  readonly routing?: object
  /** The body names no session. */
  readonly isAnonymous?: boolean
  /** Gets the client's side of the answer before the request begins. */
  readonly onSink?: (sink: FakeSink) => void
}

/** What became of one request. */
export interface TurnResult {
  readonly backend: string | undefined
  readonly outcome: RequestOutcome | undefined
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly waitedMs: number
}

export interface CacheWorldOptions {
  readonly backends: readonly CachingBackend[]
  readonly routing: RoutingPolicy
  readonly seed?: number
  readonly store?: CacheSessionStore
  readonly clock?: SimulatedTime
  readonly profileId?: string
  readonly caches?: Map<string, Map<number, number>>
}

/** The real gateway over simulated backends that cache prompts and report it. */
export class CacheWorld {
  readonly clock: SimulatedTime
  /** What providers bill for all answers, US dollars. */
  costUsd = 0
  calls = 0
  /** When the last call began. */
  calledMs = 0
  readonly sessions: CacheSessions
  readonly breakers: CircuitBreakers
  /** By domain: the hash of a beginning, and until when it is cached. */
  readonly caches: Map<string, Map<number, number>>
  readonly #startMs: number
  readonly #gateway: Gateway
  readonly #settled = new Map<string, RequestOutcome>()
  readonly #seed: number
  readonly #profileId: string
  #requests = 0

  constructor(options: CacheWorldOptions) {
    const {
      backends,
      routing,
      seed = 1,
      store,
      clock = new SimulatedTime(),
      caches = new Map(),
      profileId = 'p',
    } = options
    this.#profileId = profileId
    this.clock = clock
    this.caches = caches
    this.#seed = seed
    this.#startMs = clock.nowMs()
    const random = seededRandom(seed)
    const log = (): void => {}
    this.sessions = new CacheSessions({ digest: new KeyedDigest(new Uint8Array(32)), clock, log, store })
    this.breakers = new CircuitBreakers({ clock, random, log })
    const served = backends.map((one) => this.#backend(one))
    this.#gateway = simulatedGateway({
      clock,
      random,
      profileId,
      routing,
      served,
      sessions: this.sessions,
      breakers: this.breakers,
      statistics: new BackendStatistics(clock),
      admit: ({ id }) => ({
        signals: () => signals,
        durable: () => undefined,
        deliver: () => {},
        settle: (outcome) => void this.#settled.set(id, outcome),
      }),
    })
  }

  get nowMs(): number {
    return this.clock.nowMs() - this.#startMs
  }

  async pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => void this.clock.after(ms, resolve))
  }

  /** Sends one request and waits for the end of its answer. */
  async send(turn: SentTurn): Promise<TurnResult> {
    const { session, accountId = 'acc_1', messages, tools, routing, isAnonymous, onSink } = turn
    const sink = new FakeSink()
    onSink?.(sink)
    const principal: Principal = { accountId, keyId: 'k', plan, limits: undefined, recheck: () => principal }
    const id = `req_${(this.#requests += 1)}`
    const named = isAnonymous === true ? {} : { prompt_cache_key: session }
    const body = {
      model: this.#profileId,
      stream: true,
      ...named,
      stream_options: { include_usage: true },
      routing,
      tools,
      messages,
    }
    const bytes = Buffer.from(JSON.stringify(body))
    const scan = new JsonScan(bodyShape)
    scan.push(bytes)
    const request = {
      id,
      format: 'openai-chat' as const,
      bytes,
      members: scan.members(bytes),
      body: JSON.parse(bytes.toString()) as { model: string },
      timeoutMs: undefined,
    }
    const sentMs = this.nowMs
    await this.#gateway.answer(principal, request, sink).catch(() => {})
    const outcome = this.#settled.get(id)
    this.#settled.delete(id)
    const { inputTokens = 0, cachedTokens = 0 } = outcome?.usage ?? {}
    const backend = outcome?.errorCode === undefined ? sink.head?.upstream : undefined
    return { backend, outcome, inputTokens, cachedTokens, waitedMs: this.nowMs - sentMs }
  }

  #backend(one: CachingBackend): Backend {
    return someBackend(one.id, {
      issuer: one.domain,
      model: 'gpt-5.2',
      timeouts,
      usdPerMillion: price,
      call: (request, listener) => this.#call(one, request, listener),
    })
  }

  #call(one: CachingBackend, request: UpstreamRequest, listener: UpstreamListener) {
    this.calls += 1
    this.calledMs = this.nowMs
    let isOver = false
    const after = (ms: number, run: () => void): void =>
      void this.clock.after(ms, () => {
        if (!isOver) run()
      })
    const abort = (): void => {
      isOver = true
    }
    const condition = one.conditionAt(this.nowMs)
    if (condition === 'refuses') after(5, () => listener.onError(new UpstreamError('unreachable')))
    else if (condition !== 'answers' && 'retryAfterMs' in condition) {
      const { retryAfterMs } = condition
      after(20, () => {
        listener.onHead({ status: 429, contentType: 'application/json', retryAfterMs, requestId: undefined })
        listener.onEnd()
      })
    } else if (condition === 'answers') this.#answer(one, request, { listener, after })
    else this.#answer(one, request, { listener: cutListener(listener, condition.cutAfter, abort), after })
    return { pause: () => {}, resume: () => {}, abort }
  }

  #answer(
    { domain, medianMs, id }: CachingBackend,
    request: UpstreamRequest,
    { listener, after }: { listener: UpstreamListener; after: (ms: number, run: () => void) => void },
  ): void {
    const beginnings = beginningsOf(String(Buffer.from(request.body as Uint8Array)))
    const cache = this.caches.get(domain) ?? new Map<number, number>()
    this.caches.set(domain, cache)
    const nowMs = this.clock.nowMs()
    const { tokens: all } = beginnings.at(-1)!
    const hit = beginnings.findLast(({ hash, tokens }) => tokens >= leastTokens && (cache.get(hash) ?? 0) > nowMs)
    const cached = hit?.tokens ?? 0
    const random = seededRandom(hashText(`${this.#seed} ${request.requestId} ${id}`))
    const chunk = (members: object): string =>
      `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [], ...members })}\n\n`
    const choice = (delta: object, finish: string | null) => ({ choices: [{ index: 0, delta, finish_reason: finish }] })
    after(medianMs * (0.5 + random()), () => {
      // Readable once the answer begins; the lifetime counts from the start of the request.
      for (const { hash } of beginnings) cache.set(hash, nowMs + lifetimeMs)
      listener.onHead({ status: 200, contentType: 'text/event-stream', retryAfterMs: undefined, requestId: undefined })
      listener.onData(Buffer.from(chunk(choice({ content: 'An answer.' }, null))))
    })
    after(medianMs * 1.5 + 500 + 1_500 * random(), () => {
      const details = { cached_tokens: cached }
      const usage = { prompt_tokens: all, completion_tokens: outputTokens, prompt_tokens_details: details }
      this.costUsd += ((all - cached) * price.input + cached * price.cachedInput + outputTokens * price.output) / 1e6
      listener.onData(Buffer.from(`${chunk(choice({}, 'stop'))}${chunk({ usage })}data: [DONE]\n\n`))
      listener.onEnd()
    })
  }
}

/** A connection that breaks after so many bytes of an answer. */
function cutListener(listener: UpstreamListener, bytes: number, abort: () => void): UpstreamListener {
  let left = bytes
  return {
    onHead: (head) => listener.onHead(head),
    onData(chunk) {
      if (left > 0) listener.onData(chunk.subarray(0, left))
      left -= chunk.length
      if (left >= 0) return
      abort()
      listener.onError(new UpstreamError('reset'))
    },
    onEnd: () => listener.onEnd(),
    onError: (error) => listener.onError(error),
  }
}

/** The beginnings of a prompt that may be cached, shortest first, in the order in which providers read it. */
function beginningsOf(text: string): readonly { readonly hash: number; readonly tokens: number }[] {
  const { tools = [], messages } = JSON.parse(text) as { tools?: object[]; messages: object[] }
  let hash = 0
  let bytes = 0
  return [tools, ...messages].map((part) => {
    const json = JSON.stringify(part)
    hash = hashText(`${hash} ${json}`)
    bytes += json.length
    return { hash, tokens: bytes * tokensPerByte }
  })
}

/** A session of an agent: a long system prompt, then in each turn a question or result that was added. */
export class AgentSession {
  readonly name: string
  readonly tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }]
  readonly messages: object[]
  #turns = 0

  constructor(name: string, systemBytes = 4_000) {
    this.name = name
    this.messages = [{ role: 'system', content: `${name} ${'Be brief. '.repeat(systemBytes / 10)}` }]
  }

  /** The next request. */
  next(): SentTurn {
    if (this.#turns > 0) this.messages.push({ role: 'assistant', content: `An answer ${this.#turns}.` })
    this.#turns += 1
    this.messages.push({ role: 'user', content: `${this.name} asks question ${this.#turns}. ${'More. '.repeat(30)}` })
    return { session: this.name, messages: [...this.messages], tools: this.tools }
  }
}
