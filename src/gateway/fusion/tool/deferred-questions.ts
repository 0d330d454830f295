import type { Turn } from '../../../domain/conversation.ts'
import { conversationKey } from '../../../domain/fusion-memo.ts'
import { BoundedMap } from '../../../runtime/bounded-map.ts'
import type { Clock } from '../../../runtime/clock.ts'
import { isUserTurn } from '../engine/user-turns.ts'
import type { Questions } from './questions.ts'

/** Caller tool calls that have a question waiting, over all accounts; the oldest is evicted first. */
const maxCalls = 2_000
/** Answers that arrive later than this find no question (contract 16.6). */
const expiresAfterMs = 30 * 60_000

/** A waiting question and the calls that it waits for. */
export interface DeferredEntry extends Questions {
  readonly keys: readonly string[]
  readonly keptUntilMs: number
}

/**
 * Questions that a model asked in the same turn in which it called the caller's tools: they wait in this process's
 * memory for the results of those tools. Bound to the account and to the user's words, because some models reuse call
 * ids in every conversation. Unanswered questions expire silently.
 */
export class DeferredQuestions {
  readonly #byCall = new BoundedMap<string, DeferredEntry>(maxCalls)
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Stores questions until one of these calls, which the model made after these turns, is answered. */
  keep(accountId: string, turns: readonly Turn[], callIds: readonly string[], questions: Questions): void {
    const keys = keysOf(accountId, turns, callIds)
    const deferred = { ...questions, keys, keptUntilMs: this.#clock.monotonicMs() + expiresAfterMs }
    for (const key of keys) this.#byCall.setLast(key, deferred)
  }

  /** The questions asked alongside any of the calls whose results these turns end with. */
  find(accountId: string, turns: readonly Turn[]): DeferredEntry | undefined {
    const called = turns.findLastIndex(({ role }) => role === 'assistant')
    const answered = turns.slice(called + 1).flatMap((turn) => (turn.role === 'tool' ? [turn.callId] : []))
    for (const key of keysOf(accountId, turns.slice(0, Math.max(0, called)), answered)) {
      const found = this.#byCall.get(key)
      if (found !== undefined && found.keptUntilMs > this.#clock.monotonicMs()) return found
    }
    return undefined
  }

  /** Deletes a question once its findings are part of an answer. */
  forget({ keys }: DeferredEntry): void {
    for (const key of keys) this.#byCall.delete(key)
  }
}

function keysOf(accountId: string, turns: readonly Turn[], callIds: readonly string[]): string[] {
  if (callIds.length === 0) return []
  const userTurn = turns.findLast(isUserTurn)
  const conversation = conversationKey(accountId, userTurn === undefined ? [] : [userTurn])
  return callIds.map((callId) => JSON.stringify([conversation, callId]))
}
