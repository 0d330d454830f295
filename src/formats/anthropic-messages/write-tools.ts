import type { CacheLifetime, Conversation, Tool, ToolChoice } from '../../domain/conversation.ts'
import type { JsonObject } from '../../domain/json.ts'
import { modeOf } from '../allowed-tools.ts'
import { customAsFunction } from '../custom-tools.ts'
import type { Draft } from '../fields.ts'
import type { ToolNames } from '../tool-names.ts'
import { inputSchema, unlistedChoices } from './json-schema.ts'
import type { ModelTraits } from './model-traits.ts'
import { withMark } from './write-parts.ts'

/**
 * Adds `tools` and `tool_choice`. A conversation with tool calls must declare tools, so if the caller declares none,
 * the tools in `called` are declared but disabled.
 */
export function writeTools(
  body: Draft<JsonObject>,
  conversation: Conversation,
  called: ReadonlySet<string>,
  names: ToolNames,
  traits: ModelTraits,
): void {
  const tools: JsonObject[] = []
  let mark: CacheLifetime | undefined
  for (const tool of conversation.tools) {
    if (tool.type === 'hosted') continue
    tools.push(writeTool(tool, names))
    if (tool.type === 'function') mark = tool.mark ?? mark
  }
  if (tools.length > 0) {
    // The order of the tools may differ from the caller's, so a mark on any of them stands after all.
    if (traits.cacheMarks) tools.push(withMark(tools.pop()!, mark))
    body['tools'] = tools
    const choice = writeToolChoice(conversation, names, traits)
    if (choice !== undefined) body['tool_choice'] = choice
  } else if (called.size > 0) {
    body['tools'] = Array.from(called, (name) => ({ name, input_schema: inputSchema(undefined) }))
    body['tool_choice'] = { type: 'none' }
  }
}

/** Whether the caller forces a tool call. */
export function isForced(choice: ToolChoice | undefined): boolean {
  return (
    choice?.type === 'required' || choice?.type === 'tool' || (choice?.type === 'allowed' && choice.mode === 'required')
  )
}

function writeTool(tool: Exclude<Tool, { readonly type: 'hosted' }>, names: ToolNames): JsonObject {
  const name = names.flatten(tool.name, tool.namespace)
  if (tool.type === 'custom') {
    const { description, parameters } = customAsFunction(tool)
    return { name, ...(description !== '' && { description }), input_schema: parameters }
  }
  const note = unlistedChoices(tool.parameters)
  const description = note === undefined ? tool.description : [tool.description, note].filter(Boolean).join('\n\n')
  return { name, ...(description !== undefined && { description }), input_schema: inputSchema(tool.parameters) }
}

function writeToolChoice(
  { toolChoice, parallelToolCalls }: Conversation,
  names: ToolNames,
  traits: ModelTraits,
): JsonObject | undefined {
  const isNone = toolChoice?.type === 'none' || (toolChoice?.type === 'allowed' && modeOf(toolChoice) === 'none')
  if (isNone) return { type: 'none' }
  if (toolChoice === undefined && parallelToolCalls === undefined) return undefined
  const serial = parallelToolCalls === undefined ? undefined : { disable_parallel_tool_use: !parallelToolCalls }
  if (!isForced(toolChoice) || !traits.forcedTools) return { type: 'auto', ...serial }
  if (toolChoice?.type !== 'tool') return { type: 'any', ...serial }
  return { type: 'tool', name: names.flatten(toolChoice.name, toolChoice.namespace), ...serial }
}
