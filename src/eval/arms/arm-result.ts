import { findAnswer, isRight, keyOf } from '../questions/check-answer.ts'
import type { Expected } from '../questions/question.ts'

/** The result of one arm on one question. */
export interface ArmResult {
  readonly isRight: boolean
  /** Whether the reply has an answer in the required form. */
  readonly hasAnswer: boolean
  /** Milliseconds, with parallel calls made in parallel. */
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

/** The result of a single reply. */
export function resultOf(expected: Expected, { text, ms, usd }: Reply): ArmResult {
  return { isRight: isRight(expected, text), hasAnswer: findAnswer(text) !== undefined, ms, usd }
}

/** The most frequent answer; of equally frequent ones, the first. Replies without an answer do not vote. */
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
