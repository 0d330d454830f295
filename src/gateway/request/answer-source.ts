import type { RequestOutcome } from '../../domain/requests.ts'
import type { Attempt } from '../../domain/upstream.ts'
import type { Lane } from '../lanes/lane.ts'
import type { AttemptRun } from './attempt.ts'

/** Who gave an answer, as its response headers say. */
export interface AnswerOrigin {
  /** Returned as `X-Svc-Router-Upstream`. */
  readonly id: string
  /** The model requested from the backend (contract 2.34); absent if several backends may have contributed. */
  readonly model?: string
  readonly simulated: boolean
}

/** A lane that can write a keep-alive at any time. */
interface ProgressLane extends Lane {
  keepAlive(): string
}

/** A stream that the source writes itself, including its keep-alives. */
export interface OwnStream {
  /** The only lane of the answer. */
  readonly lane: ProgressLane
  /** Silence after which the stream is opened before there is content, milliseconds. */
  readonly silenceMs: number
  /** Silence after which a keep-alive is sent, milliseconds. */
  readonly keepAliveMs: number
  /** The source calls it when the next keep-alive has progress to report. */
  onProgress: (() => void) | undefined
}

/** Where a request's answer comes from. The request run owns everything else: failover is the default source. */
export interface AnswerSource {
  /** The outcome of every upstream request so far, in order. */
  readonly attempts: readonly Attempt[]
  /** The attempt that is waiting or answering. */
  readonly current: AttemptRun | undefined
  /** How many attempts failed before the current one. */
  readonly retryCount: number
  /** Undefined until it is known: at the latest when `firstContent` resolves. */
  readonly origin: AnswerOrigin | undefined
  /** The members of the request's record that only the source knows. */
  readonly recordMembers: Partial<Pick<RequestOutcome, 'passedBy' | 'fusions'>>
  /** Absent if the request run writes the stream through the lanes that it opens. */
  readonly ownStream?: OwnStream
  /** Resolves when an attempt has content. @throws the error to answer with if none of them has */
  firstContent(): Promise<AttemptRun>
  /**
   * Called when nothing more of the answer will be sent. Stops the source's own work, and waits until `attempts` and
   * `recordMembers` are complete. The request run stops `current` itself.
   */
  end(): void | Promise<void>
}
