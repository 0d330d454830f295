import type { Conversation, ToolChoice } from '../../domain/conversation.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import { allowedNames, modeOf } from '../allowed-tools.ts'
import { customAsFunction } from '../custom-tools.ts'
import type { Draft } from '../fields.ts'
import type { ToolNames } from '../tool-names.ts'
import { writeSchema } from './write-schema.ts'

/** Writes `tools` and `toolConfig`; nothing if no tool is left. */
export function writeTools(body: Draft<JsonObject>, conversation: Conversation, names: ToolNames): void {
  const { toolChoice } = conversation
  const declarations: Json[] = []
  for (const tool of conversation.tools) {
    if (tool.type === 'hosted') continue
    const name = names.flatten(tool.name, tool.namespace)
    const { description, parameters } = tool.type === 'custom' ? customAsFunction(tool) : tool
    const declaration: Draft<JsonObject> = { name }
    if (description !== undefined && description !== '') declaration['description'] = description
    // A function without parameters is declared without any schema.
    if (parameters !== undefined) declaration['parametersJsonSchema'] = writeSchema({ type: 'object', ...parameters })
    declarations.push(declaration)
  }
  if (declarations.length === 0) return
  body['tools'] = [{ functionDeclarations: declarations }]
  const calling = toolChoice === undefined ? undefined : writeChoice(toolChoice, conversation, names)
  if (calling !== undefined) body['toolConfig'] = { functionCallingConfig: calling }
}

function writeChoice(choice: ToolChoice, conversation: Conversation, names: ToolNames): JsonObject {
  if (choice.type === 'tool') {
    return { mode: 'ANY', allowedFunctionNames: [names.flatten(choice.name, choice.namespace)] }
  }
  const mode = choice.type === 'allowed' ? modeOf(choice) : choice.type
  const allowed = mode === 'required' ? allowedNames(conversation, names) : undefined
  if (allowed !== undefined) return { mode: 'ANY', allowedFunctionNames: allowed }
  return { mode: mode === 'none' ? 'NONE' : mode === 'required' ? 'ANY' : 'AUTO' }
}
