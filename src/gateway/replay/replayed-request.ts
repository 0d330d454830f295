import type { Conversation } from '../../domain/conversation.ts'
import type { RequestRouting } from '../../domain/routing-policy.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import type { AttemptObserver, Backend } from '../ports.ts'
import { RequestRetries } from '../request/request-retries.ts'
import type { BreakerKey } from '../routing/backend-breakers.ts'
import { BackendChoice } from '../routing/backend-choice.ts'
import type { BackendStatistics } from '../routing/backend-statistics.ts'
import { beginAttempt } from '../routing/begin-attempt.ts'
import { Candidates, maxAttempts } from '../routing/candidates.ts'
import type { CircuitBreakers } from '../routing/circuit-breakers.ts'
import type { HedgeBudget } from '../routing/hedge-budget.ts'
import { hedgingFor, type Hedging } from '../routing/hedging.ts'
import type { PromptKind } from '../routing/prompt-kind.ts'
import type { RetryBudget } from '../routing/retry-budget.ts'
import type { EventQueue } from './event-queue.ts'
import type { Observation, Position } from './observations.ts'

/** The parts that route requests, as in a service that just started, over simulated time. */
export interface ReplayWorld {
  readonly clock: EventQueue
  readonly random: () => number
  readonly breakers: CircuitBreakers
  readonly statistics: BackendStatistics
  readonly budget: RetryBudget
  readonly hedges: HedgeBudget
}

/** How a request ended. */
export interface ReplayedOutcome {
  /** The result of the call that answered; undefined if none did. */
  readonly answer: Observation | undefined
  readonly firstContentMs: number
  readonly calls: number
  /** The backends whose calls were aborted because another one was faster. */
  readonly aborted: readonly string[]
  /** A call whose result is unknown: nothing else is known of the request. */
  readonly unseen: { readonly backend: string; readonly position: Position } | undefined
}

interface ReplayedRequestOptions {
  readonly world: ReplayWorld
  readonly accountId: string
  readonly kind: PromptKind
  readonly promptTokens: number
  readonly stream: boolean
  readonly backends: readonly Backend[]
  readonly routing: RequestRouting
  /** The result of a call; undefined if it is unknown. */
  readonly resultOf: (backend: string, position: Position) => Observation | undefined
  readonly onEnd: (outcome: ReplayedOutcome) => void
}

interface OpenCall {
  readonly backend: Backend
  readonly observer: AttemptObserver
  isOver: boolean
}

/**
 * One request under another policy. It asks backends as `Failover` does, with the same candidates, circuit breakers,
 * retries, and hedging, but takes the results from records (contract 33.12).
 */
export class ReplayedRequest {
  readonly #options: ReplayedRequestOptions
  readonly #key: BreakerKey
  readonly #candidates: Candidates
  readonly #retries: RequestRetries
  readonly #hedging: Hedging | undefined
  readonly #startMs: number
  readonly #open = new Set<OpenCall>()
  readonly #aborted: string[] = []
  #calls = 0
  #isOver = false

  constructor(options: ReplayedRequestOptions) {
    this.#options = options
    const { world, accountId, kind, promptTokens, stream, backends, routing } = options
    const { clock, breakers, statistics, budget, random } = world
    const key: BreakerKey = { accountId, contentKind: () => 'plain' }
    this.#key = key
    this.#startMs = clock.nowMs()
    const context = {
      routing,
      kind,
      promptTokens,
      nowMs: this.#startMs,
      unanswered: ({ id }: Backend) => breakers.unanswered(id),
    }
    const choice = routing.sort === 'order' ? undefined : new BackendChoice(statistics, context, random)
    this.#candidates = new Candidates({ backends, routing, breakers, breakerKey: key, statistics, choice })
    this.#retries = new RequestRetries({ breakers, budget }, key, {})
    const routed = { request: { bytes: noBytes }, conversation: conversationOf(stream), backends, routing }
    this.#hedging = hedgingFor(world, routed, key, kind)
  }

  start(): void {
    this.#options.world.budget.requestStarted(this.#options.accountId)
    this.#askNext()
  }

  #askNext(): void {
    const first = this.#calls === 0
    const backend =
      this.#calls >= maxAttempts
        ? undefined
        : this.#candidates.next(first ? undefined : (other) => this.#retries.take(other))
    if (backend === undefined) return this.#end(undefined)
    const delayMs = first ? this.#hedging?.delayMs(backend) : undefined
    this.#call(backend, first ? 'first' : 'later')
    if (delayMs !== undefined) this.#options.world.clock.after(delayMs, () => this.#hedge(backend))
  }

  #hedge(first: Backend): void {
    const hedging = this.#hedging
    const isWaiting = [...this.#open].some(({ backend }) => backend === first)
    if (hedging === undefined || !isWaiting || this.#isOver || hedging.isUnderLoad) return
    const backend = this.#candidates.next((other) => hedging.mayAsk(other, first))
    if (backend !== undefined) this.#call(backend, 'later', true)
  }

  #call(backend: Backend, position: Position, isSecond = false): void {
    const { world, kind, resultOf } = this.#options
    const { clock } = world
    const { id: backendId } = backend
    this.#calls += 1
    const observer = beginAttempt(world, { backend, caller: this.#key, kind, isSecond })
    const call: OpenCall = { backend, observer, isOver: false }
    this.#open.add(call)
    const result = resultOf(backendId, position)
    if (result === undefined) return this.#end(undefined, { backend: backendId, position })
    clock.after(result.ms, () => {
      if (call.isOver) return
      if (result.outcome === 'answered') this.#answered(call, result)
      else this.#failed(call, result)
    })
  }

  #answered(call: OpenCall, result: Observation): void {
    const { clock } = this.#options.world
    this.#close(call)
    call.observer.sawAnswer()
    call.observer.sawContent()
    this.#retries.refund()
    this.#end(result)
    clock.after(result.restMs, () => call.observer.ended(result.isBroken ? new UpstreamError('broken') : undefined))
  }

  #failed(call: OpenCall, { outcome, status }: Observation): void {
    this.#close(call)
    if (outcome !== 'answered') call.observer.ended(new UpstreamError(outcome, { status }))
    this.#retries.failed()
    this.#candidates.failed(call.backend)
    if (this.#open.size === 0) this.#askNext()
  }

  #close(call: OpenCall): void {
    call.isOver = true
    this.#open.delete(call)
  }

  #end(answer: Observation | undefined, unseen?: ReplayedOutcome['unseen']): void {
    if (this.#isOver) return
    this.#isOver = true
    const { world, accountId, onEnd } = this.#options
    for (const call of this.#open) {
      this.#close(call)
      if (answer !== undefined) {
        call.observer.lost()
        this.#aborted.push(call.backend.id)
      }
      call.observer.ended(new UpstreamError('cancelled'))
    }
    world.clock.after(answer?.restMs ?? 0, () => world.budget.requestEnded(accountId))
    const firstContentMs = world.clock.nowMs() - this.#startMs
    onEnd({ answer, firstContentMs, calls: this.#calls, aborted: this.#aborted, unseen })
  }
}

const noBytes = Buffer.alloc(0)

/** Records do not say what a request contained. */
function conversationOf(stream: boolean): Conversation {
  return { profile: '', stream, turns: [], tools: [], sampling: {}, streamUsage: false, hints: {} }
}
