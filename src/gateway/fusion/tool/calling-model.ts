import type { Conversation } from '../../../domain/conversation.ts'
import { invalidRequest, ServiceError } from '../../../domain/errors.ts'
import { UpstreamError } from '../../../domain/upstream.ts'
import type { Backend } from '../../ports.ts'
import type { CostTracker, Reservation } from '../engine/cost-tracker.ts'
import type { Fence } from '../engine/fence.ts'
import type { FusionSession } from '../fused-answer.ts'
import { membersOf } from '../members.ts'
import { CallingModelAnswer } from './calling-model-answer.ts'
import { CallingModelCall } from './calling-model-turn.ts'
import type { ToolRunReporter } from './tool-run-reporter.ts'

/** One reply of the model, and the error that broke it, if any. */
export interface ModelReply {
  readonly reply: CallingModelAnswer
  readonly error?: ServiceError | UpstreamError
}

/** The calling model: any of the requested profile's backends, call by call. */
export class CallingModel {
  /** Whether it can call tools at all. */
  readonly knowsTools: boolean
  readonly #session: FusionSession
  readonly #costs: CostTracker
  readonly #reporter: ToolRunReporter
  /** The backend that answered last is first: its own reasoning means nothing to others. */
  #backends: readonly Backend[]

  constructor(session: FusionSession, backends: readonly Backend[], costs: CostTracker, reporter: ToolRunReporter) {
    this.#session = session
    this.#costs = costs
    this.#reporter = reporter
    const able = backends.filter(({ capabilities }) => capabilities?.tools !== false)
    this.knowsTools = able.length > 0
    this.#backends = able.length > 0 ? able : backends
  }

  /** Id of the backend that answered last, or that would be tried first. */
  get writer(): string {
    return this.#backends[0]!.id
  }

  /** The smallest known context window. */
  get window(): Pick<Backend, 'contextWindow'> {
    const windows = this.#backends.flatMap(({ contextWindow }) => contextWindow ?? [])
    return windows.length === 0 ? {} : { contextWindow: Math.min(...windows) }
  }

  /** Moves the backend that answered last to the end. */
  skip(): void {
    const [last, ...others] = this.#backends
    this.#backends = [...others, last!]
  }

  /** Calls the model once and passes its reply on as it arrives. Rejects only on a bug. */
  async read(request: Conversation, fences: readonly Fence[]): Promise<ModelReply> {
    const { context } = this.#session
    const keepsSeals = context.conversation.hints.sealedReasoning === true
    const reply = new CallingModelAnswer(context.mintId, fences, keepsSeals)
    const reservation = this.#reserve(request)
    if (reservation === undefined) return { reply, error: costLimitReached() }
    using turn = new CallingModelCall(this.#session, request, this.#backends, fences.length > 0)
    this.#reporter.turn()
    try {
      const backend = await turn.open()
      this.#session.answeredBy(backend, turn.retryCount)
      this.#backends = [backend, ...this.#backends.filter((other) => other !== backend)]
      for (let events = await turn.next(); events !== undefined; events = await turn.next())
        await this.#reporter.writeText(reply.take(events))
      await this.#reporter.writeText(reply.rest())
      return { reply }
    } catch (error) {
      if (error instanceof UpstreamError || error instanceof ServiceError) return { reply, error }
      throw error
    } finally {
      this.#close(reservation, turn, reply)
    }
  }

  /** Reserves the worst-case cost of a reply from the most expensive backend; undefined if that is too much. */
  #reserve(request: Conversation): Reservation | undefined {
    const costs = this.#costs
    const [first, ...others] = membersOf(this.#backends)
    const mostExpensive = others.reduce(
      (before, member) => (costs.worstUsd(member, request) > costs.worstUsd(before, request) ? member : before),
      first!,
    )
    return costs.reserve('outer', mostExpensive, costs.worstUsd(mostExpensive, request))
  }

  #close(reservation: Reservation, { usage, ms }: CallingModelCall, { finish }: CallingModelAnswer): void {
    const [member] = membersOf(this.#backends)
    const status = finish !== undefined ? 'answered' : usage === undefined ? 'unreachable' : 'broken'
    this.#costs.settle({ ...reservation, member: member! }, { status, ms, ...(usage === undefined ? {} : { usage }) })
  }
}

function costLimitReached(): ServiceError {
  const problem = 'parameters.max_cost_usd is too low for this request. Raise it, or send a shorter request.'
  return invalidRequest('parameters.max_cost_usd', problem)
}
