import { createHash } from 'node:crypto'
import type { Turn } from './conversation.ts'

/** What a deliberated turn leaves for the turns with tool results that follow it. */
export interface FusionMemo {
  /** The backend that wrote, by id: its cache is warm. */
  readonly writer: string
  /** The findings in short, every line fenced; absent where nothing was found. */
  readonly notes?: string
  /** What each line of the notes begins with. */
  readonly mark?: string
}

/** Finds a conversation of an account again by its turns, reasoning aside: clients tell it as they like, or not at all. */
export function conversationKey(accountId: string, turns: readonly Turn[]): string {
  const told = turns.map((turn) =>
    turn.role === 'assistant' ? { ...turn, parts: turn.parts.filter(({ type }) => type !== 'reasoning') } : turn,
  )
  return createHash('sha256')
    .update(JSON.stringify([accountId, told]))
    .digest('base64url')
}
