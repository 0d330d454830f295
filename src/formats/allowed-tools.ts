import type { Conversation, Tool, ToolChoice } from '../domain/conversation.ts'
import type { ToolNames } from './tool-names.ts'

/**
 * The names under which a backend knows the tools that `tool_choice` allows; undefined if all are allowed. The list of
 * tools stays whole, because a change would lose the cache of the whole prompt (contract 44.6).
 */
export function allowedNames({ tools, toolChoice }: Conversation, names: ToolNames): readonly string[] | undefined {
  if (toolChoice?.type !== 'allowed') return undefined
  const chosen = new Set(toolChoice.names)
  const allowed = tools.filter((tool): tool is Exclude<Tool, { readonly type: 'hosted' }> => {
    return tool.type !== 'hosted' && chosen.has(tool.name)
  })
  return allowed.map(({ name, namespace }) => names.flatten(name, namespace))
}

/** What the choice among some of the tools is as a choice among all of them. */
export function modeOf({
  mode,
  names,
}: Extract<ToolChoice, { readonly type: 'allowed' }>): 'auto' | 'required' | 'none' {
  return names.length === 0 ? 'none' : mode
}

/** Tells the model which tools it may call, where no field can. Calls of others are rejected. */
export function allowedNote(conversation: Conversation, names: ToolNames): string | undefined {
  const allowed = allowedNames(conversation, names) ?? []
  return allowed.length === 0 ? undefined : `For this answer, call only these tools: ${allowed.join(', ')}.`
}
