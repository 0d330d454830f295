import type { Conversation, Tool, ToolChoice } from '../../domain/conversation.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import { customAsFunction } from '../custom-tools.ts'
import type { Draft } from '../fields.ts'
import type { ToolNames } from '../tool-names.ts'
import { inputSchema, unlistedChoices } from './json-schema.ts'
import type { ModelTraits } from './model-traits.ts'

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
  const { toolChoice } = conversation
  const tools: Json[] = []
  for (const tool of conversation.tools) {
    if (tool.type === 'hosted') continue
    if (toolChoice?.type === 'allowed' && !toolChoice.names.includes(tool.name)) continue
    tools.push(writeTool(tool, names))
  }
  if (tools.length > 0) {
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
  if (toolChoice?.type === 'none') return { type: 'none' }
  if (toolChoice === undefined && parallelToolCalls === undefined) return undefined
  const serial = parallelToolCalls === undefined ? undefined : { disable_parallel_tool_use: !parallelToolCalls }
  if (!isForced(toolChoice) || !traits.forcedTools) return { type: 'auto', ...serial }
  if (toolChoice?.type !== 'tool') return { type: 'any', ...serial }
  return { type: 'tool', name: names.flatten(toolChoice.name, toolChoice.namespace), ...serial }
}
