import type { AssistantPart, InputPart, Turn } from '../../domain/conversation.ts'
import { invalidRequest } from '../../domain/errors.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { lifetimeOf } from '../cache/placed-blocks.ts'
import { isArray, requiredString, wrongType } from '../fields.ts'
import { isBillingText } from './billing-report.ts'
import { encryptedFromRedacted, encryptedFromThinking } from './encrypted-reasoning.ts'
import { readPart, readParts } from './read-parts.ts'

/** Replaces a tool result that only says it failed: other formats have no flag for that. */
const failed = 'The tool failed.'

/** The turns of `system` and `messages`. @throws ServiceError `invalid_request` */
export function readMessages(system: Json | undefined, messages: readonly Json[]): Turn[] {
  const turns: Turn[] = []
  const instructions = readParts(system, 'system').filter((part) => part.type === 'text' && !isBillingText(part.text))
  if (instructions.length > 0) turns.push({ role: 'system', parts: instructions })
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]
    const path = `messages[${index}]`
    if (!isObject(message)) throw wrongType(path, 'an object')
    const role = requiredString(message, 'role', `${path}.`)
    const { content } = message
    if (role === 'assistant') turns.push({ role, parts: readAssistant(content, `${path}.content`) })
    else if (role === 'user') readUser(content, `${path}.content`, turns)
    else if (role === 'system') turns.push({ role, parts: readParts(content, `${path}.content`) })
    else throw invalidRequest(`${path}.role`, `${path}.role must be user, assistant, or system.`)
  }
  return turns
}

/** A user message may contain the results of several tools, followed by text. */
function readUser(content: Json | undefined, path: string, turns: Turn[]): void {
  if (!isArray(content)) {
    turns.push({ role: 'user', parts: readParts(content, path) })
    return
  }
  const parts: InputPart[] = []
  let results = 0
  for (let index = 0; index < content.length; index++) {
    const block = content[index]
    const itemPath = `${path}[${index}]`
    if (!isObject(block)) throw wrongType(itemPath, 'an object')
    if (block['type'] === 'tool_result') {
      results += 1
      turns.push(readResult(block, itemPath))
    } else readPart(block, itemPath, parts)
  }
  if (parts.length > 0 || results === 0) turns.push({ role: 'user', parts })
}

function readResult(block: JsonObject, path: string): Turn {
  const callId = requiredString(block, 'tool_use_id', `${path}.`)
  const parts = readParts(block['content'], `${path}.content`)
  if (parts.length === 0 && block['is_error'] === true) parts.push({ type: 'text', text: failed })
  const mark = lifetimeOf(block['cache_control'])
  return mark === undefined
    ? { role: 'tool', callId, parts, kind: 'function' }
    : { role: 'tool', callId, parts, mark, kind: 'function' }
}

function readAssistant(content: Json | undefined, path: string): AssistantPart[] {
  const parts: AssistantPart[] = []
  if (content === undefined || content === null || content === '') return parts
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  if (!isArray(content)) throw wrongType(path, 'a string or an array of blocks')
  for (let index = 0; index < content.length; index++) {
    const block = content[index]
    const itemPath = `${path}[${index}]`
    if (!isObject(block)) throw wrongType(itemPath, 'an object')
    const part = readAssistantBlock(block, itemPath)
    if (part !== undefined) parts.push(part)
  }
  return parts
}

function readAssistantBlock(block: JsonObject, path: string): AssistantPart | undefined {
  switch (block['type']) {
    case 'text': {
      const text = requiredString(block, 'text', `${path}.`)
      return text === '' ? undefined : marked({ type: 'text', text }, block)
    }
    case 'thinking': {
      const { thinking, signature } = block
      const text = typeof thinking === 'string' ? thinking : ''
      const sealed = typeof signature === 'string' ? encryptedFromThinking(signature) : undefined
      if (sealed !== undefined) return { type: 'reasoning', text, sealed }
      return text === '' ? undefined : { type: 'reasoning', text }
    }
    case 'redacted_thinking':
      return { type: 'reasoning', text: '', sealed: encryptedFromRedacted(requiredString(block, 'data', `${path}.`)) }
    case 'tool_use':
      return marked(
        {
          type: 'call',
          kind: 'function',
          id: requiredString(block, 'id', `${path}.`),
          name: requiredString(block, 'name', `${path}.`),
          arguments: JSON.stringify(block['input'] ?? {}),
        },
        block,
      )
    default:
      // Results of tools that Anthropic ran are reflected in the text that follows.
      return undefined
  }
}

/** The part with the caller's cache mark, if the block has one. */
function marked(part: Extract<AssistantPart, { type: 'text' | 'call' }>, block: JsonObject): AssistantPart {
  const mark = lifetimeOf(block['cache_control'])
  return mark === undefined ? part : { ...part, mark }
}
