import type { Conversation } from '../../../domain/conversation.ts'
import type { Degradation } from '../../../domain/fusion-record.ts'
import { aborted } from '../../../runtime/aborted.ts'
import type { Timer } from '../../../runtime/clock.ts'
import { CostTracker } from './cost-tracker.ts'
import { planFusion, type FusionPlan } from './plan.ts'
import type { FusionMember, FusionPort } from './ports.ts'
import { hashText, seededRandom } from './seeded-random.ts'
import type { FusionSettings } from './settings.ts'

/** The input of a fusion. */
export interface FusionRequest {
  readonly conversation: Conversation
  /** Every model that may be called for this account. At least one. */
  readonly members: readonly FusionMember[]
  readonly settings: FusionSettings
  /** The backend that answered this session before, so that its prompt cache is reused. */
  readonly pinned?: string
  /** Shared by fusions whose calls count together; a new one if absent. */
  readonly costs?: CostTracker
}

/** State shared by all steps of one fusion. Disposing it aborts everything that is still running. */
export class FusionRun implements Disposable {
  readonly request: FusionRequest
  readonly port: FusionPort
  readonly plan: FusionPlan
  readonly costs: CostTracker
  /** Deterministic: the same for the same seed and conversation (contract 15.19). */
  readonly random: () => number
  readonly degraded: Degradation[] = []
  readonly startedMs: number
  readonly #life = new AbortController()
  readonly #deadline: Timer
  readonly #caller: AbortSignal
  readonly #onDisconnect = (): void => this.#life.abort(aborted)

  /** @throws ServiceError `invalid_request` if no member fits the cost limit */
  constructor(request: FusionRequest, port: FusionPort, caller: AbortSignal) {
    const { conversation, members, settings } = request
    if (members.length === 0) throw new Error('a fusion needs a member')
    this.request = request
    this.port = port
    this.plan = planFusion(request)
    if (this.plan.isMissingNamed) this.degrade('member_lost')
    this.costs = request.costs ?? new CostTracker(settings.maxCostUsd)
    this.random = seededRandom(settings.seed === undefined ? drawSeed(port) : seedOf(settings.seed, conversation))
    this.startedMs = port.clock.monotonicMs()
    this.#caller = caller
    this.#deadline = port.clock.after(settings.totalMs, this.#onDisconnect)
    caller.addEventListener('abort', this.#onDisconnect, { once: true })
    if (caller.aborted) this.#onDisconnect()
  }

  /** Aborted when the client disconnects, when the time is up before the answer started, and at the end. */
  get signal(): AbortSignal {
    return this.#life.signal
  }

  get isClientDisconnected(): boolean {
    return this.#caller.aborted
  }

  /** Aborted only when the client disconnects. */
  get caller(): AbortSignal {
    return this.#caller
  }

  get elapsedMs(): number {
    return Math.round(this.port.clock.monotonicMs() - this.startedMs)
  }

  /** Milliseconds until the fusion's deadline. */
  get remainingMs(): number {
    return Math.max(0, this.request.settings.totalMs - (this.port.clock.monotonicMs() - this.startedMs))
  }

  /** The caller's answer has started to stream: from here on, the deadline does not abort it. */
  begin(): void {
    this.#deadline.cancel()
  }

  degrade(step: Degradation): void {
    if (!this.degraded.includes(step)) this.degraded.push(step)
  }

  [Symbol.dispose](): void {
    this.#deadline.cancel()
    this.#caller.removeEventListener('abort', this.#onDisconnect)
    this.#life.abort(aborted)
  }
}

function drawSeed({ random }: FusionPort): number {
  const [a = 0, b = 0, c = 0, d = 0] = random(4)
  return (a << 24) | (b << 16) | (c << 8) | d
}

function seedOf(seed: number, { turns }: Conversation): number {
  const last = turns.findLast(({ role }) => role === 'user')
  return (last?.parts ?? []).reduce(
    (hash, part) => ('text' in part ? hashText(part.text, hash) : hash),
    hashText(`${seed}`),
  )
}
