import type { Conversation, Tool } from '../../domain/conversation.ts'

/**
 * The conversation with its tools in the order of their names, so that a client that lists them in another order with
 * each request still finds its prompt in the cache (contract 44.6). Tools that arrived later stay last.
 */
export function withStableTools(conversation: Conversation): Conversation {
  const { tools, hints } = conversation
  const listed = tools.length - (hints.lateTools ?? 0)
  if (isSorted(tools, listed)) return conversation
  return { ...conversation, tools: [...tools.slice(0, listed).toSorted(compare), ...tools.slice(listed)] }
}

function isSorted(tools: readonly Tool[], count: number): boolean {
  for (let at = 1; at < count; at += 1) if (compare(tools[at - 1]!, tools[at]!) > 0) return false
  return true
}

/** Tools of a namespace stay together. */
function compare(one: Tool, other: Tool): number {
  return order(groupOf(one), groupOf(other)) || order(nameOf(one), nameOf(other))
}

function groupOf(tool: Tool): string {
  if (tool.type !== 'hosted') return tool.namespace ?? tool.name
  const { type } = tool.declaration
  return typeof type === 'string' ? type : ''
}

function nameOf(tool: Tool): string {
  return tool.type === 'hosted' || tool.namespace === undefined ? '' : tool.name
}

/** By code units, which no locale changes. */
function order(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}
