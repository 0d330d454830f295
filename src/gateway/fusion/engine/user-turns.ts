import type { Turn } from '../../../domain/conversation.ts'

/** Prefix of the messages that coding agents send in the user's role, also alongside tool results. */
const reminder = '<system-reminder>'

/** Whether a turn contains words of the user, not only of the agent. */
export function isUserTurn(turn: Turn): boolean {
  return turn.role === 'user' && !isReminder(turn)
}

/** Whether a turn only gives the model instructions, and is neither the user's nor an answer to anything. */
export function isInstruction(turn: Turn): boolean {
  return turn.role === 'system' || turn.role === 'developer' || isReminder(turn)
}

function isReminder({ role, parts }: Turn): boolean {
  if (role !== 'user' || parts.length === 0) return false
  return parts.every((part) => part.type === 'text' && part.text.trimStart().startsWith(reminder))
}
