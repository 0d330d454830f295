import type { AnswerEvent } from '../../domain/conversation.ts'
import type { AnswerWriter } from '../../formats/format.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { asError } from '../../runtime/describe-bug.ts'
import type { Lane, LaneOptions } from '../lanes/lane.ts'
import { openLane } from '../lanes/open-lane.ts'
import type { AttemptRun } from './attempt.ts'

/**
 * Reads of one answer that wait to be taken before the backend is told to pause: of 64 KiB at most each (contract
 * 9.12).
 */
const maxWaiting = 4

const nothing = (): string => ''

/**
 * The events of one attempt's answer, for a reader of our own: what its lane would write for a caller is collected
 * here.
 */
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

  /** The lane of an attempt whose answer is collected here: always translated, whatever its backend speaks. */
  laneOf(choice: Omit<LaneOptions, 'client' | 'relay'>): Lane {
    return openLane({ ...choice, client: { writeAnswer: () => this.#writer }, relay: undefined })
  }

  /** Lets an attempt whose content has begun go on; `ended` is told once, with what broke it if anything did. */
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

  /** Ends it from outside, where nothing has begun to flow. */
  fail(error: unknown): void {
    this.#failure ??= asError(error)
    this.#end()
  }

  /**
   * What arrived together next; undefined behind the last. @throws UpstreamError, `timeout` after a silence (contract
   * 9.5)
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

  /** Only while something is waited for: a backend that was told to pause is not silent of its own accord. */
  #watch(): Timer | undefined {
    const run = this.#run
    return run && this.#clock.after(run.longestSilenceMs, () => run.passSilence())
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
