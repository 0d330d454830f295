import { createHash } from 'node:crypto'
import type { Turn } from './conversation.ts'

/** What a fusion leaves for the turns with tool results that follow it. */
export interface FusionMemo {
  /** The id of the backend that wrote the answer. Its prompt cache is warm. */
  readonly writer: string
  /** A summary of the findings, with every line fenced; absent if there are none. */
  readonly notes?: string
  /** The prefix of each line of the notes. */
  readonly mark?: string
}

/**
 * Identifies a conversation of an account by its turns, without reasoning, which clients send back in different ways or
 * not at all.
 */
export function conversationKey(accountId: string, turns: readonly Turn[]): string {
  const told = turns.map((turn) =>
    turn.role === 'assistant' ? { ...turn, parts: turn.parts.filter(({ type }) => type !== 'reasoning') } : turn,
  )
  return createHash('sha256')
    .update(JSON.stringify([accountId, told]))
    .digest('base64url')
}
