import type { KeyRate, UsageSignals } from '../../src/domain/account-meter.ts'
import type { ServiceEvent } from '../../src/domain/events.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import { linksFor } from '../../src/domain/links.ts'
import type { Profile } from '../../src/domain/profiles.ts'
import type { RequestOutcome } from '../../src/domain/requests.ts'
import type { Draft } from '../../src/formats/fields.ts'
import type { ClientFormatId, FormatId, Formats, ProviderFormat } from '../../src/formats/format.ts'
import { formatById, relayById } from '../../src/formats/formats.ts'
import { JsonScan } from '../../src/formats/json-scan.ts'
import { DigestCache } from '../../src/gateway/auth/digest-cache.ts'
import { KeyCache } from '../../src/gateway/auth/key-cache.ts'
import { Gateway } from '../../src/gateway/gateway.ts'
import type {
  Admission,
  AnswerHead,
  AnswerSink,
  Backend,
  DeliveryState,
  HeldBytes,
  Principal,
  UpstreamListener,
  UpstreamRequest,
} from '../../src/gateway/ports.ts'
import { BackendStatistics } from '../../src/gateway/routing/backend-statistics.ts'
import { CircuitBreakers } from '../../src/gateway/routing/circuit-breakers.ts'
import { LearnedLimits } from '../../src/gateway/routing/learned-limits.ts'
import { signals } from '../simulation/simulated-gateway.ts'
import { ManualClock } from './manual-clock.ts'

const plan = { id: 'max', name: 'Max', requestsPerMinute: 10, requestsPerMonth: 10, premium: true }

/** A backend that sends only what a test passes to its listeners. */
export class FakeBackend implements Backend {
  readonly id: string
  readonly failureDomain: string
  readonly issuer: string
  readonly format: FormatId
  readonly model = 'backend-model'
  readonly simulated = false
  readonly timeouts = {
    connectMs: 1e6,
    headersMs: 1e6,
    firstContentMs: 1e6,
    wholeAnswerMs: 1e6,
    idleMs: 1e6,
    totalMs: 5e6,
  }
  readonly dialect = {
    maxTokensField: 'max_tokens',
    developerRole: true,
    streamUsage: true,
    refusedFields: [],
  } as const
  readonly requests: UpstreamRequest[] = []
  listener!: UpstreamListener

  constructor(id: string, format: FormatId) {
    this.id = id
    this.failureDomain = id
    this.issuer = id
    this.format = format
  }

  call(request: UpstreamRequest, listener: UpstreamListener) {
    this.requests.push(request)
    this.listener = listener
    return { pause: () => {}, resume: () => {}, abort: () => {} }
  }

  head(status = 200, contentType = 'text/event-stream'): void {
    this.listener.onHead({ status, contentType, retryAfterMs: undefined, requestId: undefined })
  }

  send(text: string): void {
    this.listener.onData(Buffer.from(text))
  }

  end(): void {
    this.listener.onEnd()
  }
}

/** A client that a test can slow down or disconnect. */
export class FakeSink implements AnswerSink {
  head: AnswerHead | undefined
  text = ''
  isReading = true
  isDropped = false
  disconnect: () => void = () => {}
  /** Set for an answer that is stored for retries. */
  stored?: () => Promise<void>

  open(head: AnswerHead): void {
    this.head = head
  }
  write(bytes: string | Uint8Array): boolean {
    this.text += typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString()
    return this.isReading
  }
  end(bytes: string | Uint8Array = ''): void {
    if (!this.isDropped) this.write(bytes)
  }
  hold(): void {}
  release(): void {}
  drop(): void {
    this.isDropped = true
  }
  onDrain(): void {}
  onDisconnect(run: () => void): void {
    this.disconnect = run
  }
}

/** The gateway over ports that a test controls step by step. */
export class FakeGateway {
  readonly clock = new ManualClock()
  readonly events: ServiceEvent[] = []
  readonly statistics = new BackendStatistics(this.clock)
  readonly breakers: CircuitBreakers
  /** The account that sends requests. */
  accountId = 'a'
  readonly sink = new FakeSink()
  readonly backends: readonly FakeBackend[]
  readonly settled: { outcome: RequestOutcome; delivery: DeliveryState }[] = []
  admitted = 0
  /** The key's own limit in the last admission. */
  rate: KeyRate | undefined
  /** Its members can be changed by a test. */
  readonly profile: Draft<Profile> = { id: 'p', description: '', backends: [], premium: false, quotaUnits: 1 }
  /** The result of `durable`. */
  durable: Promise<void> | undefined
  /** The caller that later authorization checks find. */
  recheck: (principal: Principal) => Principal = (principal) => principal
  stillServes: (backend: Backend) => boolean = () => true
  /** How the ledger reads what it needs for an admission. */
  prepare: () => Promise<void> | undefined = () => undefined
  /** Counts the bytes of non-streaming answers. */
  held: HeldBytes | undefined
  /** How the ledger reads the counters. */
  readSignals: () => UsageSignals | Promise<UsageSignals> = () => signals
  /** Called by `deliver`. */
  deliver: () => void = () => {}
  readonly #gateway: Gateway

  constructor(backendFormats: readonly FormatId[], formats: (id: FormatId) => ProviderFormat = formatById) {
    this.backends = backendFormats.map((format, index) => new FakeBackend(`b${index}`, format))
    const { clock } = this
    const log = (event: ServiceEvent): void => void this.events.push(event)
    this.breakers = new CircuitBreakers({ clock, random: () => 0.5, log })
    const keys = { find: () => Promise.resolve(undefined), revision: () => Promise.resolve(1) }
    this.#gateway = new Gateway({
      clock,
      breakers: this.breakers,
      statistics: this.statistics,
      learned: new LearnedLimits(clock),
      randomBytes: (length) => new Uint8Array(length),
      log,
      links: linksFor('https://example.com'),
      authentication: {
        keys: new KeyCache(keys, clock, log, () => {}),
        digests: new DigestCache([]),
        planById: () => plan,
        findAccount: () => Promise.resolve(undefined),
        nowMs: () => clock.nowMs(),
      },
      profiles: [this.profile],
      backends: { forProfile: () => this.backends, stillServes: (backend) => this.stillServes(backend) },
      ledger: {
        prepare: () => this.prepare(),
        admit: (_opening, _plan, rate) => this.#admit(rate),
        signals: () => this.readSignals(),
      },
      formats: formats as Formats,
      relays: relayById,
      mintId: () => 'x',
      keepAliveMs: 10_000,
    })
  }

  /** The log line of an admitted request. */
  get line(): ServiceEvent | undefined {
    return this.events.find(({ event }) => event === 'request')
  }

  /** `timeoutMs` is the caller's own time limit. */
  answer(format: ClientFormatId, body: JsonObject, timeoutMs?: number): Promise<void> {
    return this.answerText(format, JSON.stringify({ model: 'p', ...body }), timeoutMs)
  }

  answerText(format: ClientFormatId, text: string, timeoutMs?: number): Promise<void> {
    const bytes = Buffer.from(text)
    const scan = new JsonScan({ maxDepth: 50, maxTokens: 1_000, maxMembers: 1_000 })
    scan.push(bytes)
    const request = {
      id: 'req_1',
      format,
      bytes,
      members: scan.members(bytes),
      body: JSON.parse(bytes.toString()) as JsonObject,
      timeoutMs,
      held: this.held,
    }
    const principal: Principal = {
      accountId: this.accountId,
      keyId: 'k',
      plan,
      limits: undefined,
      recheck: () => this.recheck(principal),
    }
    return this.#gateway.answer(principal, request, this.sink)
  }

  abortAll(): number {
    return this.#gateway.abortAll()
  }

  /** The counters of the caller, as a retry reads them. */
  signals(): Promise<UsageSignals> {
    return this.#gateway.signals({ accountId: this.accountId, plan, limits: undefined } as Principal)
  }

  #admit(rate: KeyRate | undefined): Admission {
    this.admitted += 1
    this.rate = rate
    return {
      signals: () => signals,
      durable: () => this.durable,
      deliver: () => this.deliver(),
      settle: (outcome, delivery) => void this.settled.push({ outcome, delivery }),
    }
  }
}
