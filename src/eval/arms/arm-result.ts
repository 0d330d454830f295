import type { Expected } from '../questions/question.ts'
import { findAnswer, isRight, keyOf } from '../questions/check-answer.ts'

/** How one arm did on one question. */
export interface ArmResult {
  readonly isRight: boolean
  /** Whether the reply has an answer in the form that was asked for. */
  readonly hasAnswer: boolean
  /** Milliseconds, with whatever can be asked at once asked at once. */
  readonly ms: number
  /** US dollars. */
  readonly usd: number
}

/** One reply of one model. */
export interface Reply {
  readonly text: string
  readonly ms: number
  readonly usd: number
}

/** A reply that stands for itself. */
export function resultOf(expected: Expected, { text, ms, usd }: Reply): ArmResult {
  return { isRight: isRight(expected, text), hasAnswer: findAnswer(text) !== undefined, ms, usd }
}

/** What most replies say; of several said equally often, the one that came first in the list. Who says nothing has no vote. */
export function voteOf(expected: Expected, replies: readonly Reply[]): ArmResult {
  const votes = new Map<string, { count: number; readonly reply: Reply }>()
  for (const reply of replies) {
    const answer = findAnswer(reply.text)
    const key = answer === undefined ? undefined : keyOf(expected, answer)
    if (key === undefined) continue
    const vote = votes.get(key)
    if (vote === undefined) votes.set(key, { count: 1, reply })
    else vote.count += 1
  }
  const most = Math.max(0, ...[...votes.values()].map(({ count }) => count))
  const chosen = [...votes.values()].find(({ count }) => count === most)?.reply
  return {
    isRight: chosen !== undefined && isRight(expected, chosen.text),
    hasAnswer: chosen !== undefined,
    ms: Math.max(0, ...replies.map(({ ms }) => ms)),
    usd: replies.reduce((sum, { usd }) => sum + usd, 0),
  }
}
