import type { Turn } from '../../domain/conversation.ts'

/** How coding agents begin what they tell the model in their user's place, also beside results of tools. */
const reminder = '<system-reminder>'

/** Whether a turn is the user's own: it spoke, and not its agent alone. */
export function isUsers(turn: Turn): boolean {
  return turn.role === 'user' && !isReminder(turn)
}

/** Whether a turn tells the model how to go on, and is neither the user's nor an answer to anything. */
export function isInstruction(turn: Turn): boolean {
  return turn.role === 'system' || turn.role === 'developer' || isReminder(turn)
}

function isReminder({ role, parts }: Turn): boolean {
  if (role !== 'user' || parts.length === 0) return false
  return parts.every((part) => part.type === 'text' && part.text.trimStart().startsWith(reminder))
}
