import type { AnswerEvent } from '../../domain/conversation.ts'
import type { AnswerWriter } from '../../formats/format.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { asError } from '../../runtime/describe-bug.ts'
import type { Lane, LaneOptions } from '../lanes/lane.ts'
import { openLane } from '../lanes/open-lane.ts'
import type { AttemptRun } from './attempt.ts'

/** Unread batches of events, of at most 64 KiB of the answer each, from which on the backend is paused (contract 9.12). */
const maxWaiting = 4

const nothing = (): string => ''

/** The answer of one attempt as events, for the service itself: collects what the lane would write to a client. */
export class AnswerEvents {
  readonly #writer: AnswerWriter = {
    writeEvents: (events) => {
      this.#take(events)
      return ''
    },
    writeWhole: (events) => {
      this.#take(events)
      return {}
    },
    writeEnd: nothing,
    writeKeepAlive: nothing,
    writeFailure: nothing,
  }
  readonly #waiting: (readonly AnswerEvent[])[] = []
  #run: AttemptRun | undefined
  #wake: PromiseWithResolvers<void> | undefined
  #isOver = false
  #failure: Error | undefined
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The lane of the attempt whose answer is collected here: always a translation, even within one format. */
  laneOf(choice: Omit<LaneOptions, 'client' | 'relay'>): Lane {
    return openLane({ ...choice, client: { writeAnswer: () => this.#writer }, relay: undefined })
  }

  /**
   * Collects the answer of an attempt that has content. Calls `ended` once when the attempt ends, with the error if it
   * failed.
   */
  flowFrom(run: AttemptRun, ended: (error?: Error) => void): void {
    this.#run = run
    run.flowTo({
      write: () => {},
      ended: () => {
        ended()
        this.#end()
      },
      broke: (error) => {
        ended(error)
        this.fail(error)
      },
    })
  }

  /** Makes `next` throw `error`: for an attempt that fails before its first content. */
  fail(error: unknown): void {
    this.#failure ??= asError(error)
    this.#end()
  }

  /**
   * The next events that arrived together; undefined at the end.
   * @throws UpstreamError, `timeout` after a silence (contract 9.5)
   */
  async next(): Promise<readonly AnswerEvent[] | undefined> {
    for (;;) {
      const events = this.#waiting.shift()
      if (events !== undefined) {
        if (this.#waiting.length < maxWaiting) this.#run?.resume()
        return events
      }
      if (this.#failure !== undefined) throw this.#failure
      if (this.#isOver) return undefined
      this.#wake = Promise.withResolvers()
      const idle = this.#watch()
      try {
        await this.#wake.promise
      } finally {
        idle?.cancel()
      }
    }
  }

  /** Limits the silence only while the reader waits: a paused backend cannot send anything. */
  #watch(): Timer | undefined {
    const run = this.#run
    const silentMs = run?.longestSilenceMs
    return silentMs === undefined ? undefined : this.#clock.after(silentMs, () => run?.passSilence())
  }

  #take(events: readonly AnswerEvent[]): void {
    this.#waiting.push(events)
    if (this.#waiting.length >= maxWaiting) this.#run?.pause()
    this.#wake?.resolve()
  }

  #end(): void {
    this.#isOver = true
    this.#wake?.resolve()
  }
}
