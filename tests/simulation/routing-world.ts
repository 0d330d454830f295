import type { RequestOpening, RequestOutcome, RequestRecord } from '../../src/domain/requests.ts'
import type { RoutingPolicy } from '../../src/domain/routing-policy.ts'
import { UpstreamError } from '../../src/domain/upstream.ts'
import { bodyShape, JsonScan } from '../../src/formats/json-scan.ts'
import { hashText, seededRandom } from '../../src/gateway/fusion/engine/seeded-random.ts'
import type { Gateway } from '../../src/gateway/gateway.ts'
import type {
  AttemptObserver,
  Backend,
  Principal,
  UpstreamCall,
  UpstreamListener,
  UpstreamRequest,
} from '../../src/gateway/ports.ts'
import type { BreakerKey } from '../../src/gateway/routing/backend-breakers.ts'
import { BackendStatistics, type BackendReading } from '../../src/gateway/routing/backend-statistics.ts'
import type { BackendKey } from '../../src/gateway/routing/by-backend.ts'
import { CircuitBreakers } from '../../src/gateway/routing/circuit-breakers.ts'
import { FakeSink } from '../gateway/fake-gateway.ts'
import { someBackend } from '../gateway/routing/some-backend.ts'
import { plan, signals, simulatedGateway, timeouts } from './simulated-gateway.ts'
import { SimulatedTime } from './simulated-time.ts'

const bytes = Buffer.from(JSON.stringify({ model: 'p', stream: true, messages: [{ role: 'user', content: 'Why?' }] }))
const body = JSON.parse(bytes.toString()) as { model: string }
const scan = new JsonScan(bodyShape)
scan.push(bytes)
const members = scan.members(bytes)
const accounts = 20

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const start = Buffer.from(chunk({ content: 'An answer.' }))
const rest = Buffer.from(`${chunk({}, 'stop')}data: [DONE]\n\n`)

/** What a backend does at one moment: how many times slower it is, or how it fails. */
export type Condition = { readonly slower: number } | 'refuses' | 'hangs'

/** One simulated backend. All times are milliseconds since the start. */
export interface SimulatedBackend {
  readonly id: string
  readonly failureDomain: string
  /** The median time to first content. */
  readonly medianMs: number
  /** How many calls it answers at full speed. */
  readonly capacity: number
  readonly conditionAt: (ms: number) => Condition
  readonly usdPerMillion?: { readonly input: number; readonly output: number } | undefined
}

/** Knows only open calls: with it, `balanced` is the usual power of two choices, besides circuit breakers. */
class LoadOnly extends BackendStatistics {
  override read(backendId: string, kind: number, nowMs: number): BackendReading {
    const { inFlight, limit } = super.read(backendId, kind, nowMs)
    return { inFlight, limit, firstContentMs: undefined, errorRate: 0, failuresInARow: 0, calledMs: undefined }
  }
}

/** Knows only failures: nothing of calls that wait. */
class FailuresOnly extends CircuitBreakers {
  override begin(backend: BackendKey, breakerKey: BreakerKey): AttemptObserver {
    return super.begin(backend, breakerKey)
  }
}

/** The result of one request. */
export interface Outcome {
  readonly sentMs: number
  /** Undefined if there was no answer. */
  readonly firstContentMs: number | undefined
  readonly backend: string | undefined
}

/** The call of one request to one backend. */
interface MadeCall {
  readonly backend: string
  readonly atMs: number
  /** Whether its circuit breaker was closed, so that it was no probe. */
  readonly isClosed: boolean
  failed: boolean
}

/**
 * The real gateway over simulated backends. The same seed gives the same requests, and the same time for each request at
 * each backend, whatever the routing: policies are compared on common random numbers.
 */
export class RoutingWorld {
  readonly outcomes: Outcome[] = []
  readonly calls: MadeCall[] = []
  /** In the order of admission. */
  readonly records: RequestRecord[] = []
  readonly #clock = new SimulatedTime()
  readonly #startMs = this.#clock.nowMs()
  readonly #seed: number
  readonly #breakers: CircuitBreakers
  readonly #gateway: Gateway
  readonly #open = new Map<string, number>()

  constructor(seed: number, routing: RoutingPolicy, backends: readonly SimulatedBackend[], isLoadOnly = false) {
    this.#seed = seed
    const clock = this.#clock
    const random = seededRandom(seed)
    this.#breakers = new (isLoadOnly ? FailuresOnly : CircuitBreakers)({ clock, random, log: () => {} })
    const served = backends.map((one) => this.#backend(one))
    this.#gateway = simulatedGateway({
      clock,
      random,
      profileId: 'p',
      routing,
      served,
      breakers: this.#breakers,
      statistics: isLoadOnly ? new LoadOnly(clock) : new BackendStatistics(clock),
      admit: (opening) => this.#admit(opening),
    })
  }

  /** Sends one request at each of these times, and waits for all of them. */
  async run(times: readonly number[]): Promise<this> {
    const all = times.map(
      (ms, index) =>
        new Promise<void>((resolve) => {
          this.#clock.after(ms, () => void this.#send(index).then(resolve))
        }),
    )
    await this.#clock.until(Promise.all(all))
    return this
  }

  get #nowMs(): number {
    return this.#clock.nowMs() - this.#startMs
  }

  #admit(opening: RequestOpening) {
    const index = this.records.length
    const admittedAtMs = this.#clock.nowMs()
    const open = { ...opening, admittedAtMs, periodId: '2027-01', charged: 0, attempts: [], totalMs: 0 }
    this.records.push({ ...open, state: 'open' })
    const settle = (outcome: RequestOutcome): void => {
      this.records[index] = { ...open, ...outcome, state: 'done' }
    }
    return { signals: () => signals, durable: () => undefined, deliver: () => {}, settle }
  }

  async #send(index: number): Promise<void> {
    const sentMs = this.#nowMs
    const sink = new FakeSink()
    const accountId = `acc_${hashText(`${this.#seed} ${index}`) % accounts}`
    const principal: Principal = { accountId, keyId: 'k', plan, limits: undefined, recheck: () => principal }
    let firstContentMs: number | undefined
    let backend: string | undefined
    sink.write = (text) => {
      if (firstContentMs === undefined && String(text).includes('An answer.')) {
        firstContentMs = this.#nowMs - sentMs
        backend = sink.head?.upstream
      }
      return true
    }
    const id = `req_${index}`
    const request = { id, format: 'openai-chat' as const, bytes, members, body, timeoutMs: undefined }
    await this.#gateway.answer(principal, request, sink).catch(() => {})
    this.outcomes.push({ sentMs, firstContentMs, backend })
  }

  #backend(one: SimulatedBackend): Backend {
    const { id, failureDomain, usdPerMillion } = one
    return someBackend(id, {
      failureDomain,
      ...(usdPerMillion === undefined ? {} : { usdPerMillion }),
      timeouts,
      call: (request, listener) => this.#call(one, request, listener),
    })
  }

  #call(
    { id, medianMs, capacity, conditionAt }: SimulatedBackend,
    request: UpstreamRequest,
    listener: UpstreamListener,
  ) {
    const open = this.#open.get(id) ?? 0
    this.#open.set(id, open + 1)
    const made: MadeCall = {
      backend: id,
      atMs: this.#nowMs,
      isClosed: this.#breakers.condition(id).state === 'closed',
      failed: false,
    }
    this.calls.push(made)
    let isOver = false
    const end = (): void => {
      if (!isOver) this.#open.set(id, this.#open.get(id)! - 1)
      isOver = true
    }
    const after = (ms: number, run: () => void): void =>
      void this.#clock.after(ms, () => {
        if (!isOver) run()
      })
    const condition = conditionAt(this.#nowMs)
    const random = seededRandom(hashText(`${this.#seed} ${request.requestId} ${id}`))
    const fail = (ms: number, error: UpstreamError): void => {
      made.failed = true
      after(ms, () => {
        end()
        listener.onError(error)
      })
    }
    if (condition === 'refuses') fail(5, new UpstreamError('unreachable'))
    else if (condition === 'hangs') made.failed = true
    else if (open >= 3 * capacity) fail(20, new UpstreamError('server_error', { status: 503 }))
    else {
      const load = Math.max(1, open / capacity)
      const ms = medianMs * condition.slower * load * spread(random)
      after(ms, () => {
        listener.onHead({
          status: 200,
          contentType: 'text/event-stream',
          retryAfterMs: undefined,
          requestId: undefined,
        })
        listener.onData(start)
      })
      after(ms + 1_000 + random() * 2_000 * load, () => {
        end()
        listener.onData(rest)
        listener.onEnd()
      })
    }
    const call: UpstreamCall = { pause: () => {}, resume: () => {}, abort: end }
    return call
  }
}

/** Lognormal, with one answer in fifty that takes ten times as long. */
function spread(random: () => number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  return Math.exp(0.4 * normal) * (random() < 0.02 ? 10 : 1)
}

/** Times of requests, on average this many per second, from one time to another. */
export function poisson(seed: number, perSecond: number, fromMs: number, toMs: number): number[] {
  const random = seededRandom(seed)
  const times: number[] = []
  for (let ms = fromMs; ;) {
    ms -= (Math.log(1 - random()) / perSecond) * 1000
    if (ms >= toMs) return times
    times.push(ms)
  }
}

/** Five backends, two of them in one failure domain, that are slow or down now and then for a while. */
export function unsteadyBackends(seed: number, untilMs: number): SimulatedBackend[] {
  const shared = episodes(seededRandom(hashText(`${seed} shared`)), untilMs, 1_500_000, 20_000)
  return [400, 500, 600, 700, 800].map((medianMs, index) => {
    const random = seededRandom(hashText(`${seed} ${index}`))
    const slow = episodes(random, untilMs, 300_000, 15_000)
    const down = episodes(random, untilMs, 900_000, 20_000)
    const isHanging = random() < 0.5
    const conditionAt = (ms: number): Condition => {
      if (isIn(down, ms) || (index < 2 && isIn(shared, ms))) return isHanging ? 'hangs' : 'refuses'
      return { slower: isIn(slow, ms) ? 8 : 1 }
    }
    return { id: `b${index}`, failureDomain: index < 2 ? 'shared' : `d${index}`, medianMs, capacity: 20, conditionAt }
  })
}

/** Equal backends in the same condition at all times unless `conditionAt` says otherwise. */
export function steadyBackends(
  count: number,
  capacity: number,
  conditionAt: (id: string, ms: number) => Condition = () => ({ slower: 1 }),
): SimulatedBackend[] {
  return Array.from({ length: count }, (_, index) => {
    const id = `b${index}`
    return { id, failureDomain: id, medianMs: 500, capacity, conditionAt: (ms) => conditionAt(id, ms) }
  })
}

function episodes(
  random: () => number,
  untilMs: number,
  everyMs: number,
  lastingMs: number,
): (readonly [number, number])[] {
  const found: (readonly [number, number])[] = []
  for (let ms = 0; ms < untilMs;) {
    const from = ms - Math.log(1 - random()) * everyMs
    ms = from - Math.log(1 - random()) * lastingMs
    found.push([from, ms])
  }
  return found
}

function isIn(all: readonly (readonly [number, number])[], ms: number): boolean {
  return all.some(([from, to]) => ms >= from && ms < to)
}

/** The value that this share of the values stays below. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
