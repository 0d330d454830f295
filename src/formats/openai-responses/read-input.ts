import type { AssistantPart, ToolTurn, Turn } from '../../domain/conversation.ts'
import { invalidRequest } from '../../domain/errors.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { fusionToolType } from '../../domain/profiles.ts'
import { arrayField, isArray, requiredString, stringField, wrongType } from '../fields.ts'
import { readAssistantParts, readInputParts } from '../openai/read-parts.ts'
import { addTools, type DeclaredTools } from '../openai/read-tools.ts'
import { summarizeFusionItem, isFusionEcho } from './fusion-echo.ts'
import { isBareReasoning } from './stored-items.ts'

/** The turns of an input, and the ids of items that it only references (`item_reference`). */
export interface ReadInput {
  readonly turns: readonly Turn[]
  readonly references: readonly string[]
  readonly compactions?: boolean
  readonly fusionEchoes?: boolean
  readonly bareReasoning?: boolean
}

/**
 * Reads `input`. Consecutive model output becomes one turn; tools of `additional_tools` items are added to `declared`;
 * items of unknown types are skipped. @throws ServiceError `invalid_request`
 */
export function readInput(input: Json | undefined, declared: DeclaredTools): ReadInput {
  const reader = new InputReader(declared)
  if (typeof input === 'string')
    return { turns: [{ role: 'user', parts: readInputParts(input, 'input') }], references: [] }
  if (input === undefined || input === null) return reader
  if (!isArray(input)) throw wrongType('input', 'a string or an array of items')
  for (let index = 0; index < input.length; index++) {
    const item = input[index]
    const path = `input[${index}]`
    if (!isObject(item)) throw wrongType(path, 'an object')
    reader.read(item, path)
  }
  return reader
}

class InputReader implements ReadInput {
  readonly turns: Turn[] = []
  readonly references: string[] = []
  compactions = false
  fusionEchoes = false
  bareReasoning = false
  readonly #declared: DeclaredTools
  /** The parts of the open assistant turn. */
  #parts: AssistantPart[] | undefined

  constructor(declared: DeclaredTools) {
    this.#declared = declared
  }

  read(item: JsonObject, path: string): void {
    const itemPath = `${path}.`
    const type = stringField(item, 'type', itemPath) ?? (item['role'] === undefined ? 'item_reference' : 'message')
    switch (type) {
      case 'message':
        return this.#readMessage(item, path)
      case 'reasoning':
        return this.#readReasoning(item)
      case 'function_call':
        return this.#readCall(item, itemPath, 'function')
      case 'custom_tool_call':
        return this.#readCall(item, itemPath, 'custom')
      case 'function_call_output':
        return this.#readOutput(item, path, 'function')
      case 'custom_tool_call_output':
        return this.#readOutput(item, path, 'custom')
      case 'item_reference':
        this.references.push(requiredString(item, 'id', itemPath))
        return
      case 'compaction':
        this.compactions = true
        return
      case 'mcp_call':
      case fusionToolType:
        return this.#readServiceCall(item)
      case 'additional_tools':
        return addTools(this.#declared, arrayField(item, 'tools', itemPath) ?? [], `${itemPath}tools`)
      default:
    }
  }

  #readMessage(item: JsonObject, path: string): void {
    const role = requiredString(item, 'role', `${path}.`)
    if (role === 'assistant') return readAssistantParts(item['content'], `${path}.content`, this.#assistant())
    if (role !== 'user' && role !== 'system' && role !== 'developer') {
      throw invalidRequest(`${path}.role`, `${path}.role must be system, developer, user, or assistant.`)
    }
    this.#parts = undefined
    this.turns.push({ role, parts: readInputParts(item['content'], `${path}.content`) })
  }

  #readReasoning(item: JsonObject): void {
    const text = joinTexts(item['summary']) || joinTexts(item['content'])
    const sealed = item['encrypted_content']
    if (isBareReasoning(item)) this.bareReasoning = true
    if (typeof sealed === 'string' && sealed !== '') this.#assistant().push({ type: 'reasoning', text, sealed })
    else if (text !== '') this.#assistant().push({ type: 'reasoning', text })
  }

  /** A fusion from an earlier answer; calls of other servers' tools are skipped. */
  #readServiceCall(item: JsonObject): void {
    if (!isFusionEcho(item)) return
    this.fusionEchoes = true
    const text = summarizeFusionItem(item)
    if (text !== undefined) this.#assistant().push({ type: 'text', text })
  }

  #readCall(item: JsonObject, itemPath: string, kind: 'function' | 'custom'): void {
    const id = requiredString(item, 'call_id', itemPath)
    const name = requiredString(item, 'name', itemPath)
    const namespace = stringField(item, 'namespace', itemPath)
    const text = stringField(item, kind === 'custom' ? 'input' : 'arguments', itemPath) ?? ''
    const call = { type: 'call', kind, id, name, arguments: text } as const
    this.#assistant().push(namespace === undefined ? call : { ...call, namespace })
  }

  #readOutput(item: JsonObject, path: string, kind: ToolTurn['kind']): void {
    this.#parts = undefined
    const callId = requiredString(item, 'call_id', `${path}.`)
    this.turns.push({ role: 'tool', callId, parts: readInputParts(item['output'], `${path}.output`), kind })
  }

  #assistant(): AssistantPart[] {
    if (this.#parts === undefined) {
      this.#parts = []
      this.turns.push({ role: 'assistant', parts: this.#parts })
    }
    return this.#parts
  }
}

function joinTexts(parts: Json | undefined): string {
  if (!isArray(parts)) return ''
  let joined = ''
  for (const part of parts) {
    if (!isObject(part) || typeof part['text'] !== 'string' || part['text'] === '') continue
    joined += joined === '' ? part['text'] : `\n\n${part['text']}`
  }
  return joined
}
