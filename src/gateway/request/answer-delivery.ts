import type { CostRecord } from '../../domain/request-cost.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import type { AnswerSink } from '../ports.ts'
import type { AnswerFlow } from './attempt-options.ts'
import type { AttemptRun } from './attempt.ts'

/** A client that reads nothing for this long is dropped (contract 9.12). */
const slowReaderMs = 60_000
/** Longest time between two checks: the answer may have become complete. */
const longestCheckMs = 1_000
/** A check that is later than this shows that the process was paused and could read nothing. */
const pauseFromMs = 1_000

/** The part of a sink that one delivery uses. */
type DeliverySink = Pick<AnswerSink, 'write' | 'end' | 'onDrain'>

/** A sink that stays open after the last event of the answer, because something follows it. */
export function openEnded(sink: AnswerSink): DeliverySink {
  return {
    write: (bytes, encoding) => sink.write(bytes, encoding),
    end: (bytes, encoding) => void (bytes === undefined || sink.write(bytes, encoding)),
    onDrain: (run) => sink.onDrain(run),
  }
}

/** What a stream cost, as a comment after its last event (contract 42.11); undefined if that is unknown. */
export function costComment(cost: CostRecord | undefined): string | undefined {
  return cost === undefined ? undefined : `: X-Svc-Router-Cost: ${cost.usd}\n\n`
}

/** How a started stream ended. */
export type AnswerDeliveryEnd =
  | { readonly whole: true }
  /** `slowReader`: the client stopped reading; the backend is not at fault. */
  | { readonly whole: false; readonly error: Error; readonly slowReader: boolean }

/**
 * Delivers one stream from its backend to the client: sends keep-alives, applies backpressure, and detects stalls
 * (contract 9.5, 9.12, 10.10).
 */
export class AnswerDelivery implements AnswerFlow {
  readonly #run: AttemptRun
  readonly #sink: DeliverySink
  readonly #clock: Clock
  readonly #keepAliveMs: number
  readonly #done: (end: AnswerDeliveryEnd) => void
  #lastWriteMs: number
  /** When the client stopped reading; undefined while it reads. */
  #blockedSinceMs: number | undefined
  #slowReader = false
  #timer: Timer | undefined

  constructor(
    run: AttemptRun,
    sink: DeliverySink,
    clock: Clock,
    keepAliveMs: number,
    done: (end: AnswerDeliveryEnd) => void,
  ) {
    this.#run = run
    this.#sink = sink
    this.#clock = clock
    this.#keepAliveMs = keepAliveMs
    this.#done = done
    this.#lastWriteMs = clock.monotonicMs()
    sink.onDrain(() => this.#drained())
    this.#watch()
  }

  write(text: string): void {
    if (text === '') return
    this.#lastWriteMs = this.#run.lastEventMs
    const taken = this.#sink.write(text, this.#run.lane.encoding)
    if (!taken && this.#blockedSinceMs === undefined) {
      this.#blockedSinceMs = this.#clock.monotonicMs()
      this.#run.pause()
    }
  }

  ended(last: string | Buffer): void {
    this.#timer?.cancel()
    this.#sink.end(last, this.#run.lane.encoding)
    this.#done({ whole: true })
  }

  broke(error: Error): void {
    this.#timer?.cancel()
    this.#done({ whole: false, error, slowReader: this.#slowReader })
  }

  #drained(): void {
    if (this.#blockedSinceMs === undefined) return
    this.#blockedSinceMs = undefined
    // The backend could not send meanwhile, so its silence does not count.
    this.#run.lastEventMs = this.#clock.monotonicMs()
    this.#run.resume()
  }

  /** `dueAtMs` is when this check was due. While the process is paused, nobody is silent. */
  #watch(dueAtMs?: number): void {
    const nowMs = this.#clock.monotonicMs()
    const pausedMs = dueAtMs === undefined ? 0 : nowMs - dueAtMs
    if (pausedMs >= pauseFromMs) {
      this.#run.lastEventMs = Math.min(nowMs, this.#run.lastEventMs + pausedMs)
      if (this.#blockedSinceMs !== undefined) this.#blockedSinceMs = Math.min(nowMs, this.#blockedSinceMs + pausedMs)
    }
    const silentMs = this.#run.longestSilenceMs
    let dueMs = this.#keepAliveMs
    if (this.#blockedSinceMs !== undefined) {
      if (nowMs - this.#blockedSinceMs >= slowReaderMs) {
        this.#slowReader = true
        return this.#run.stop(new UpstreamError('cancelled'))
      }
    } else if (silentMs !== undefined && nowMs - this.#run.lastEventMs >= silentMs) {
      return this.#run.passSilence()
    } else {
      // Since the last write: a backend may send what the client does not get.
      const quietMs = nowMs - this.#lastWriteMs
      if (quietMs >= this.#keepAliveMs) this.#keepAlive(nowMs)
      else dueMs -= quietMs
    }
    const nextMs = Math.min(dueMs, silentMs ?? longestCheckMs, longestCheckMs)
    this.#timer = this.#clock.after(nextMs, () => this.#watch(nowMs + nextMs))
  }

  #keepAlive(nowMs: number): void {
    // The last event may be held back until the answer is stored: a keep-alive would have the number after it.
    if (this.#run.lane.finished) return
    const text = this.#run.lane.keepAlive()
    if (text === undefined) return
    this.#lastWriteMs = nowMs
    this.#sink.write(text, this.#run.lane.encoding)
  }
}
