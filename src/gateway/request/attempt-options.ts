import type { Conversation } from '../../domain/conversation.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Lane } from '../lanes/lane.ts'
import type { AttemptObserver } from '../ports.ts'

export interface AttemptOptions {
  readonly lane: Lane
  readonly stream: boolean
  readonly clock: Clock
  readonly observer?: AttemptObserver | undefined
  /** Estimates the input of an answer whose provider counted nothing. */
  readonly conversation?: Conversation
}

/** Receives an attempt's text from the first content on. */
export interface AnswerFlow {
  write(text: string): void
  /** The answer is complete; `last` is the last piece of a stream, or a whole answer. */
  ended(last: string | Buffer): void
  /** `error` is an UpstreamError, or a bug. */
  broke(error: Error): void
}
