import { BoundedMap } from '../../domain/bounded-map.ts'
import type { Clock } from '../../domain/clock.ts'
import type { Turn } from '../../domain/conversation.ts'
import { conversationKey } from '../../domain/fusion-memo.ts'
import { isUsers } from '../fusion/users-words.ts'
import type { Questions } from './questions.ts'

/** Calls of callers' tools that a question waits for, of all accounts together; the one that waited longest is forgotten first. */
const maxCalls = 2_000
/** Answers that come later than this find no question any more (contract 16.6). */
const keptMs = 30 * 60_000

/** Questions that wait, and where they are found by the calls whose answers they wait for. */
export interface Deferred extends Questions {
  readonly keys: readonly string[]
  readonly keptUntilMs: number
}

/**
 * Questions that a model asked in the same turn in which it called tools of the caller: they wait, in this process's
 * memory, for what those tools say. Bound to the account and to what the user said, since some models count the calls of
 * every conversation from the beginning; never answered they are gone without a trace.
 */
export class DeferredQuestions {
  readonly #byCall = new BoundedMap<string, Deferred>(maxCalls)
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Keeps questions until one of these calls is answered, which the model made behind these turns. */
  keep(accountId: string, turns: readonly Turn[], callIds: readonly string[], questions: Questions): void {
    const keys = keysOf(accountId, turns, callIds)
    const deferred = { ...questions, keys, keptUntilMs: this.#clock.monotonicMs() + keptMs }
    for (const key of keys) this.#byCall.setLast(key, deferred)
  }

  /** What was asked beside any of the calls whose results these turns end with. */
  find(accountId: string, turns: readonly Turn[]): Deferred | undefined {
    const called = turns.findLastIndex(({ role }) => role === 'assistant')
    const answered = turns.slice(called + 1).flatMap((turn) => (turn.role === 'tool' ? [turn.callId] : []))
    for (const key of keysOf(accountId, turns.slice(0, Math.max(0, called)), answered)) {
      const found = this.#byCall.get(key)
      if (found !== undefined && found.keptUntilMs > this.#clock.monotonicMs()) return found
    }
    return undefined
  }

  /** Once what was asked is part of an answer, it is not asked again. */
  forget({ keys }: Deferred): void {
    for (const key of keys) this.#byCall.delete(key)
  }
}

function keysOf(accountId: string, turns: readonly Turn[], callIds: readonly string[]): string[] {
  if (callIds.length === 0) return []
  const said = turns.findLast(isUsers)
  const conversation = conversationKey(accountId, said === undefined ? [] : [said])
  return callIds.map((callId) => JSON.stringify([conversation, callId]))
}
