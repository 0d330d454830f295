import type { Tool, ToolChoice } from '../../domain/conversation.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { fusionFunctionName, fusionToolType } from '../../domain/profiles.ts'
import {
  arrayField,
  booleanField,
  type Draft,
  isArray,
  objectField,
  requiredString,
  stringField,
  wrongType,
} from '../fields.ts'
import { addFusionTool } from '../fusion-tool.ts'
import { readMark } from './cache-marks.ts'

/** The tools of one request while they are collected; `fusionTool` is our `svc-router:fusion` (contract 16.1). */
export interface DeclaredTools {
  readonly tools: Tool[]
  fusionTool?: JsonObject
}

/**
 * Adds a list of tools in the spelling of either OpenAI format. Tools inside a namespace are added with that namespace;
 * an unknown type becomes a hosted tool (contract 11.7). @throws ServiceError `invalid_request`
 */
export function addTools(declared: DeclaredTools, list: readonly Json[], path: string, namespace?: string): void {
  for (let index = 0; index < list.length; index++) {
    const tool = list[index]
    const itemPath = `${path}[${index}]`
    if (!isObject(tool)) throw wrongType(itemPath, 'an object')
    const type = stringField(tool, 'type', `${itemPath}.`) ?? (isObject(tool['function']) ? 'function' : '')
    if (type === 'function') declared.tools.push(readFunction(tool, itemPath, namespace))
    else if (type === 'custom') declared.tools.push(readCustom(tool, itemPath, namespace))
    else if (type === fusionToolType) addFusionTool(declared, tool, itemPath)
    else if (type === 'namespace' && namespace === undefined) {
      const children = arrayField(tool, 'tools', `${itemPath}.`) ?? []
      addTools(declared, children, `${itemPath}.tools`, requiredString(tool, 'name', `${itemPath}.`))
    } else declared.tools.push({ type: 'hosted', declaration: tool })
  }
}

function readFunction(tool: JsonObject, path: string, namespace: string | undefined): Tool {
  const nested = tool['function']
  const source = isObject(nested) ? nested : tool
  const itemPath = isObject(nested) ? `${path}.function.` : `${path}.`
  const read: Draft<Extract<Tool, { type: 'function' }>> = {
    type: 'function',
    name: requiredString(source, 'name', itemPath),
  }
  const description = stringField(source, 'description', itemPath)
  const parameters = objectField(source, 'parameters', itemPath)
  const strict = booleanField(source, 'strict', itemPath)
  if (namespace !== undefined) read.namespace = namespace
  if (description !== undefined) read.description = description
  if (parameters !== undefined) read.parameters = parameters
  if (strict !== undefined) read.strict = strict
  const mark = readMark(tool)
  if (mark !== undefined) read.mark = mark
  return read
}

function readCustom(tool: JsonObject, path: string, namespace: string | undefined): Tool {
  const nested = tool['custom']
  const source = isObject(nested) ? nested : tool
  const itemPath = isObject(nested) ? `${path}.custom.` : `${path}.`
  const read: Draft<Extract<Tool, { type: 'custom' }>> = {
    type: 'custom',
    name: requiredString(source, 'name', itemPath),
  }
  const description = stringField(source, 'description', itemPath)
  const format = objectField(source, 'format', itemPath)
  // Chat nests a grammar one level deeper than Responses.
  const grammar = format === undefined ? undefined : format['grammar']
  if (namespace !== undefined) read.namespace = namespace
  if (description !== undefined) read.description = description
  if (format !== undefined) read.format = isObject(grammar) ? { type: 'grammar', ...grammar } : format
  return read
}

/**
 * Reads `tool_choice` of either format; an unknown value leaves the choice to the model. @throws ServiceError
 * `invalid_request`
 */
export function readToolChoice(choice: Json | undefined): ToolChoice | undefined {
  if (choice === undefined || choice === null) return undefined
  if (choice === 'auto' || choice === 'none' || choice === 'required') return { type: choice }
  if (typeof choice === 'string') return undefined
  if (!isObject(choice)) throw wrongType('tool_choice', 'a string or an object')
  const { type } = choice
  if (type === 'allowed_tools') return readAllowed(choice)
  if (type !== 'function' && type !== 'custom') return undefined
  const nested = choice[type]
  const name = isObject(nested)
    ? requiredString(nested, 'name', `tool_choice.${type}.`)
    : requiredString(choice, 'name', 'tool_choice.')
  const namespace = stringField(choice, 'namespace', 'tool_choice.')
  return namespace === undefined ? { type: 'tool', kind: type, name } : { type: 'tool', kind: type, name, namespace }
}

/** Whether `tool_choice` names our own server tool. */
export function isFusionChoice(choice: Json | undefined): boolean {
  return isObject(choice) && choice['type'] === fusionToolType
}

function readAllowed(choice: JsonObject): ToolChoice {
  const nested = choice['allowed_tools']
  const source = isObject(nested) ? nested : choice
  const list = source['tools']
  if (!isArray(list)) throw wrongType('tool_choice.tools', 'an array')
  const names: string[] = []
  for (const entry of list) {
    if (!isObject(entry)) throw wrongType('tool_choice.tools', 'an array of objects')
    const inner = entry['function'] ?? entry['custom']
    const name = isObject(inner) ? inner['name'] : entry['name']
    if (typeof name === 'string') names.push(name)
    else if (entry['type'] === fusionToolType) names.push(fusionFunctionName)
  }
  return { type: 'allowed', mode: source['mode'] === 'required' ? 'required' : 'auto', names }
}
