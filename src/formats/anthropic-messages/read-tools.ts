import type { Conversation, Tool, ToolChoice } from '../../domain/conversation.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { fusionToolType } from '../../domain/profiles.ts'
import { lifetimeOf } from '../cache/placed-blocks.ts'
import { booleanField, type Draft, objectField, requiredString, stringField, wrongType } from '../fields.ts'
import { addFusionTool } from '../fusion-tool.ts'
import { clientTool } from './client-tools.ts'

/** The tools declared in `tools`; `fusionTool` is our `svc-router:fusion` (contract 16.1). */
interface ReadTools {
  readonly tools: Tool[]
  fusionTool?: JsonObject
}

/**
 * Reads `tools`. Tools that the caller runs become functions, Anthropic's own included; tools that only Anthropic can
 * run become hosted tools. @throws ServiceError `invalid_request`
 */
export function readTools(list: readonly Json[]): ReadTools {
  const read: ReadTools = { tools: [] }
  for (let index = 0; index < list.length; index++) {
    const tool = list[index]
    const path = `tools[${index}]`
    if (!isObject(tool)) throw wrongType(path, 'an object')
    const type = stringField(tool, 'type', `${path}.`) ?? 'custom'
    if (type === fusionToolType) addFusionTool(read, tool, path)
    else read.tools.push(readTool(tool, type, path))
  }
  return read
}

function readTool(tool: JsonObject, type: string, path: string): Tool {
  if (type === 'custom') return readFunction(tool, path)
  const known = clientTool(type)
  const { name } = tool
  if (known === undefined || typeof name !== 'string') return { type: 'hosted', declaration: tool }
  return { type: 'function', name, ...known }
}

function readFunction(tool: JsonObject, path: string): Tool {
  const read: Draft<Extract<Tool, { type: 'function' }>> = {
    type: 'function',
    name: requiredString(tool, 'name', `${path}.`),
  }
  const description = stringField(tool, 'description', `${path}.`)
  const parameters = objectField(tool, 'input_schema', `${path}.`)
  if (description !== undefined) read.description = description
  if (parameters !== undefined) read.parameters = parameters
  const mark = lifetimeOf(tool['cache_control'])
  if (mark !== undefined) read.mark = mark
  // `strict` is dropped: its requirements on the schema differ between vendors, which reject schemas that do not meet
  // them.
  return read
}

/** Reads `tool_choice`; an unknown value leaves the choice to the model. @throws ServiceError `invalid_request` */
export function readToolChoice(choice: JsonObject | undefined): Pick<Conversation, 'toolChoice' | 'parallelToolCalls'> {
  if (choice === undefined) return {}
  const serial = booleanField(choice, 'disable_parallel_tool_use', 'tool_choice.')
  const parallel = serial === undefined ? undefined : { parallelToolCalls: !serial }
  const toolChoice = readMode(choice)
  return { ...(toolChoice !== undefined && { toolChoice }), ...parallel }
}

function readMode(choice: JsonObject): ToolChoice | undefined {
  switch (choice['type']) {
    case 'auto':
    case 'none':
      return { type: choice['type'] }
    case 'any':
      return { type: 'required' }
    case 'tool':
      return { type: 'tool', kind: 'function', name: requiredString(choice, 'name', 'tool_choice.') }
    default:
      return undefined
  }
}
