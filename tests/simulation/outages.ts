import type { ServiceError } from '../../src/domain/errors.ts'
import { linksFor } from '../../src/domain/links.ts'
import { fusionId } from '../../src/domain/profiles.ts'
import { UpstreamError } from '../../src/domain/upstream.ts'
import { formatById, relayById } from '../../src/formats/formats.ts'
import { JsonScan } from '../../src/formats/json-scan.ts'
import { DigestCache } from '../../src/gateway/auth/digest-cache.ts'
import { KeyCache } from '../../src/gateway/auth/key-cache.ts'
import { seededRandom } from '../../src/gateway/fusion/engine/seeded-random.ts'
import { Gateway } from '../../src/gateway/gateway.ts'
import type {
  Admission,
  Backend,
  Principal,
  UpstreamCall,
  UpstreamListener,
  UpstreamRequest,
} from '../../src/gateway/ports.ts'
import { BackendStatistics } from '../../src/gateway/routing/backend-statistics.ts'
import { CircuitBreakers } from '../../src/gateway/routing/circuit-breakers.ts'
import { LearnedLimits } from '../../src/gateway/routing/learned-limits.ts'
import { FakeSink } from '../gateway/fake-gateway.ts'
import { signals } from './simulated-gateway.ts'
import { SimulatedTime } from './simulated-time.ts'

const plan = {
  id: 'max',
  name: 'Max',
  requestsPerMinute: 1e9,
  requestsPerMonth: 1e9,
  premium: true,
  fusionsAtOnce: 1e3,
}
const profile = { description: '', backends: [], premium: false, quotaUnits: 1 }
const keptLimits = { maxDepth: 50, maxTokens: 1_000, maxMembers: 1_000 }

/** How a backend fails during its outage. */
const failures = ['refuses', 'errs', 'hangs', 'cuts', 'stalls'] as const
export type Failure = (typeof failures)[number] | 'limits'

export interface OutageOptions {
  /** How the backends fail. Default: all ways but `limits`, at random for each call. */
  readonly failures?: readonly Failure[]
  /** Default: 1 to 3, at random. */
  readonly backends?: number
  /** The share of requests that are fusions. Default: a quarter. */
  readonly fusions?: number
}

/** The result of one request. */
export interface Seen {
  readonly beganMs: number
  readonly isFusion: boolean
  readonly ok: boolean
  readonly endedMs: number
  /** Undefined if it was answered, or broke after its first content. */
  readonly error: ServiceError | undefined
}

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const whole = JSON.stringify({
  id: 'c',
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'An answer.' }, finish_reason: 'stop' }],
})

/** The real gateway over backends that each fail in their own way until the recovery, and succeed afterwards. */
export class Outage {
  readonly clock = new SimulatedTime()
  readonly seen: Seen[] = []
  readonly startMs = this.clock.nowMs()
  readonly recoveryMs: number
  /** Calls of backends during the outage. */
  calls = 0
  readonly #options: Required<Omit<OutageOptions, 'backends'>>
  readonly #random: () => number
  readonly #backends: readonly Backend[]
  readonly #gateway: Gateway
  #requests = 0

  constructor(seed: number, outageMs: number, options: OutageOptions = {}) {
    this.recoveryMs = this.startMs + outageMs
    this.#options = { failures, fusions: 0.25, ...options }
    this.#random = seededRandom(seed)
    const { clock } = this
    const count = options.backends ?? 1 + Math.floor(this.#random() * 3)
    this.#backends = Array.from({ length: count }, (_, place) => this.#backend(`b${place}`))
    const keys = { find: () => Promise.resolve(undefined), revision: () => Promise.resolve(1) }
    const admission: Admission = {
      signals: () => signals,
      durable: () => undefined,
      deliver: () => {},
      settle: () => {},
    }
    this.#gateway = new Gateway({
      clock,
      breakers: new CircuitBreakers({ clock, random: this.#random, log: () => {} }),
      statistics: new BackendStatistics(clock),
      learned: new LearnedLimits(clock),
      randomBytes: (length) => Uint8Array.from({ length }, () => this.#random() * 256),
      log: () => {},
      links: linksFor('https://example.com'),
      authentication: {
        keys: new KeyCache(
          keys,
          clock,
          () => {},
          () => {},
        ),
        digests: new DigestCache([]),
        planById: () => plan,
        findAccount: () => Promise.resolve(undefined),
        nowMs: () => clock.nowMs(),
      },
      profiles: [
        { id: 'p', ...profile },
        { id: fusionId, ...profile },
      ],
      backends: { forProfile: () => this.#backends, stillServes: () => true },
      ledger: { admit: () => admission, signals: () => signals },
      formats: formatById,
      relays: relayById,
      mintId: () => 'x',
      keepAliveMs: 10_000,
    })
  }

  /** Sends `count` requests at random times between the two (from the start), and waits for all of them. */
  async run(
    traffic: readonly { readonly fromMs: number; readonly toMs: number; readonly count: number }[],
  ): Promise<void> {
    const all: Promise<void>[] = []
    for (const { fromMs, toMs, count } of traffic)
      for (let place = 0; place < count; place++) all.push(this.#sendAfter(fromMs + this.#random() * (toMs - fromMs)))
    await this.clock.until(Promise.all(all))
  }

  #sendAfter(ms: number): Promise<void> {
    const kind = this.#random()
    return new Promise((resolve) => {
      this.clock.after(ms, () => {
        void this.#send(kind < this.#options.fusions, kind < 0.1 || kind > 0.5).then(resolve)
      })
    })
  }

  async #send(isFusion: boolean, stream: boolean): Promise<void> {
    const beganMs = this.clock.nowMs()
    const model = isFusion ? fusionId : 'p'
    const bytes = Buffer.from(JSON.stringify({ model, stream, messages: [{ role: 'user', content: 'Why?' }] }))
    const scan = new JsonScan(keptLimits)
    scan.push(bytes)
    const sink = new FakeSink()
    const request = {
      id: `req_${this.#requests++}`,
      format: 'openai-chat' as const,
      bytes,
      members: scan.members(bytes),
      body: JSON.parse(bytes.toString()) as { model: string },
      timeoutMs: undefined,
    }
    const accountId = `acc_${Math.floor(this.#random() * 3)}`
    const principal: Principal = { accountId, keyId: 'k', plan, limits: undefined, recheck: () => principal }
    const ended = this.#gateway.answer(principal, request, sink)
    const error = await ended.then(
      () => undefined,
      (thrown: unknown) => thrown as ServiceError,
    )
    const ok = error === undefined && sink.text !== '' && !sink.text.includes('"error"')
    this.seen.push({ beganMs, isFusion, ok, endedMs: this.clock.nowMs(), error })
  }

  #backend(id: string): Backend {
    return {
      id,
      failureDomain: id,
      issuer: id,
      format: 'openai-chat',
      model: `model-${id}`,
      simulated: false,
      timeouts: {
        connectMs: 2_000,
        headersMs: 10_000,
        firstContentMs: 30_000,
        wholeAnswerMs: 300_000,
        idleMs: 30_000,
        totalMs: 600_000,
      },
      dialect: { maxTokensField: 'max_tokens', developerRole: true, streamUsage: true, refusedFields: [] },
      call: (request, listener) => this.#call(request, listener),
    }
  }

  #call(request: UpstreamRequest, listener: UpstreamListener): UpstreamCall {
    let isAborted = false
    const after = (ms: number, run: () => void): void =>
      void this.clock.after(ms, () => {
        if (!isAborted) run()
      })
    const isDown = this.clock.nowMs() < this.recoveryMs
    const ways = this.#options.failures
    const failure = ways[Math.floor(this.#random() * ways.length)]!
    if (isDown) this.calls += 1
    if (isDown) this.#fail(failure, request, listener, after)
    else this.#answer(request, listener, after)
    return { pause: () => {}, resume: () => {}, abort: () => void (isAborted = true) }
  }

  #fail(
    failure: Failure,
    { stream }: UpstreamRequest,
    listener: UpstreamListener,
    after: (ms: number, run: () => void) => void,
  ): void {
    const ms = 5 + this.#random() * 200
    if (failure === 'refuses') after(ms, () => listener.onError(new UpstreamError('unreachable')))
    if (failure === 'errs' || failure === 'limits') {
      const of = failure === 'errs' ? { status: 500, retryAfterMs: undefined } : { status: 429, retryAfterMs: 2_000 }
      after(ms, () => {
        listener.onHead({ ...of, contentType: 'text/html', requestId: undefined })
        listener.onEnd()
      })
    }
    if (failure === 'cuts' || failure === 'stalls') {
      after(ms, () => {
        listener.onHead(head(stream))
        if (stream) listener.onData(Buffer.from(chunk({ content: 'Half of an' })))
        if (failure === 'cuts') after(ms, () => listener.onError(new UpstreamError('reset')))
      })
    }
  }

  #answer({ stream }: UpstreamRequest, listener: UpstreamListener, after: (ms: number, run: () => void) => void): void {
    const ms = 50 + this.#random() * 2_000
    // A non-streaming answer is silent until it is complete; a stream starts at once.
    after(stream ? 20 : ms, () => {
      listener.onHead(head(stream))
      if (!stream) listener.onData(Buffer.from(whole))
      else listener.onData(Buffer.from(chunk({ content: 'An answer.' })))
      if (!stream) listener.onEnd()
    })
    if (!stream) return
    after(20 + ms, () => {
      listener.onData(Buffer.from(`${chunk({}, 'stop')}data: [DONE]\n\n`))
      listener.onEnd()
    })
  }
}

function head(stream: boolean) {
  const contentType = stream ? 'text/event-stream' : 'application/json'
  return { status: 200, contentType, retryAfterMs: undefined, requestId: undefined }
}
