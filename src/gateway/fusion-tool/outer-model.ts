import type { Conversation } from '../../domain/conversation.ts'
import { invalidRequest, ServiceError } from '../../domain/errors.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import type { FusedSurface } from '../fused-answer.ts'
import type { Book, Reservation } from '../fusion/book.ts'
import type { Fence } from '../fusion/fence.ts'
import { membersOf } from '../fusion/members.ts'
import type { Backend } from '../ports.ts'
import { OuterAnswer } from './outer-answer.ts'
import { OuterTurn } from './outer-turn.ts'
import type { Telling } from './telling.ts'

/** One reply of the model, and the error that broke it, if any. */
export interface Heard {
  readonly heard: OuterAnswer
  readonly error?: ServiceError | UpstreamError
}

/** The calling model: any of the requested profile's backends, call by call. */
export class OuterModel {
  /** Whether it can call tools at all. */
  readonly knowsTools: boolean
  readonly #surface: FusedSurface
  readonly #book: Book
  readonly #telling: Telling
  /** The backend that answered last is first: its own reasoning means nothing to others. */
  #backends: readonly Backend[]

  constructor(surface: FusedSurface, backends: readonly Backend[], book: Book, telling: Telling) {
    this.#surface = surface
    this.#book = book
    this.#telling = telling
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
  passOver(): void {
    const [last, ...others] = this.#backends
    this.#backends = [...others, last!]
  }

  /** Calls the model once and passes its reply on as it arrives. Rejects only on a bug. */
  async hear(request: Conversation, fences: readonly Fence[]): Promise<Heard> {
    const { context } = this.#surface
    const keepsSeals = context.conversation.hints.sealedReasoning === true
    const heard = new OuterAnswer(context.mintId, fences, keepsSeals)
    const reservation = this.#reserve(request)
    if (reservation === undefined) return { heard, error: tooDear() }
    using turn = new OuterTurn(this.#surface, request, this.#backends, fences.length > 0)
    this.#telling.turn()
    try {
      const backend = await turn.open()
      this.#surface.answeredBy(backend, turn.retryCount)
      this.#backends = [backend, ...this.#backends.filter((other) => other !== backend)]
      for (let events = await turn.next(); events !== undefined; events = await turn.next())
        await this.#telling.say(heard.take(events))
      await this.#telling.say(heard.rest())
      return { heard }
    } catch (error) {
      if (error instanceof UpstreamError || error instanceof ServiceError) return { heard, error }
      throw error
    } finally {
      this.#close(reservation, turn, heard)
    }
  }

  /** Reserves the worst-case cost of a reply from the most expensive backend; undefined if that is too much. */
  #reserve(request: Conversation): Reservation | undefined {
    const book = this.#book
    const [first, ...others] = membersOf(this.#backends)
    const mostExpensive = others.reduce(
      (before, member) => (book.worstUsd(member, request) > book.worstUsd(before, request) ? member : before),
      first!,
    )
    return book.reserve('outer', mostExpensive, book.worstUsd(mostExpensive, request))
  }

  #close(reservation: Reservation, { usage, ms }: OuterTurn, { finish }: OuterAnswer): void {
    const [member] = membersOf(this.#backends)
    const status = finish !== undefined ? 'answered' : usage === undefined ? 'unreachable' : 'broken'
    this.#book.close({ ...reservation, member: member! }, { status, ms, ...(usage === undefined ? {} : { usage }) })
  }
}

function tooDear(): ServiceError {
  const problem = 'parameters.max_cost_usd is too low for this request. Raise it, or send a shorter request.'
  return invalidRequest('parameters.max_cost_usd', problem)
}
