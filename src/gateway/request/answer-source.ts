import type { SkippedBackend } from '../../domain/backend-state.ts'
import type { RequestOutcome } from '../../domain/requests.ts'
import type { Attempt } from '../../domain/upstream.ts'
import type { Lane } from '../lanes/lane.ts'
import type { Backend } from '../ports.ts'
import type { AttemptRun } from './attempt.ts'

/** Where a request's answer comes from: failover asks one backend after another, fusion asks several at once. */
export interface AnswerSource {
  /** The outcome of every upstream request so far, in order. */
  readonly attempts: readonly Attempt[]
  /** The attempt that is waiting or answering. */
  readonly current: AttemptRun | undefined
  /** How many attempts failed before the current one. */
  readonly retryCount: number
  /** Backends that were skipped when the backend was chosen, in order; undefined if none were. */
  readonly skippedBackends?: readonly SkippedBackend[] | undefined
  /** Resolves when an attempt has content. @throws the error to answer with if none of them has */
  firstContent(): Promise<AttemptRun>
  /** Gives back what the current attempt took from the retry budget. */
  release(): void
}

/** A lane that can always write a keep-alive. */
interface ComposedLane extends Lane {
  keepAlive(): string
}

/** A source that writes the client's stream itself, reports progress, and must be ended. Fusion implements it. */
export interface ComposedAnswerSource extends AnswerSource {
  /** Represents all backends that contribute to the answer. */
  readonly backend: Backend
  readonly lane: ComposedLane
  /** Silence after which the stream is opened early, milliseconds. */
  readonly silenceMs: number
  /** Silence after which a keep-alive is sent, milliseconds. */
  readonly keepAliveMs: number
  /** Called when there is progress to report that is not content. */
  onProgress: (() => void) | undefined
  /** The fusion records for the request's record. */
  readonly fusionRecords: Pick<RequestOutcome, 'fusions'>
  /** Aborts what is still running, and waits until its records are complete. */
  end(): Promise<void>
}
