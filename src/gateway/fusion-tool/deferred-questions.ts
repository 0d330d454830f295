import { BoundedMap } from '../../domain/bounded-map.ts'
import type { Clock } from '../../domain/clock.ts'
import type { Questions } from './questions.ts'

/** Calls of callers' tools that a question waits for, of all accounts together; the one that waited longest is forgotten first. */
const maxCalls = 2_000
/** Answers that come later than this find no question any more. */
const keptMs = 30 * 60_000

/** Questions that wait, and the calls whose answers they wait for. */
export interface Deferred extends Questions {
  readonly callIds: readonly string[]
  readonly keptUntilMs: number
}

/**
 * Questions that a model asked in the same turn in which it called tools of the caller: they wait, in this process's
 * memory, for what those tools say. Bound to the account; never answered they are gone without a trace.
 */
export class DeferredQuestions {
  readonly #byCall = new BoundedMap<string, Deferred>(maxCalls)
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Keeps questions until one of these calls is answered. */
  keep(accountId: string, callIds: readonly string[], questions: Questions): void {
    const deferred = { ...questions, callIds, keptUntilMs: this.#clock.nowMs() + keptMs }
    for (const callId of callIds) this.#byCall.setLast(keyOf(accountId, callId), deferred)
  }

  /** What was asked beside any of these calls. */
  find(accountId: string, callIds: readonly string[]): Deferred | undefined {
    for (const callId of callIds) {
      const found = this.#byCall.get(keyOf(accountId, callId))
      if (found !== undefined && found.keptUntilMs > this.#clock.nowMs()) return found
    }
    return undefined
  }

  /** Once what was asked is part of an answer, it is not asked again. */
  forget(accountId: string, { callIds }: Deferred): void {
    for (const callId of callIds) this.#byCall.delete(keyOf(accountId, callId))
  }
}

function keyOf(accountId: string, callId: string): string {
  return JSON.stringify([accountId, callId])
}
