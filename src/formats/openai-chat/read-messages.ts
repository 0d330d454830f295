import type { AssistantPart, InputTurn, Turn } from '../../domain/conversation.ts'
import { invalidRequest } from '../../domain/errors.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { arrayField, requiredString, stringField, wrongType } from '../fields.ts'
import { readMark } from '../openai/cache-marks.ts'
import { readAssistantParts, readInputParts, withMark } from '../openai/read-parts.ts'

/** Reads chat messages, one turn each. @throws ServiceError `invalid_request` */
export function readMessages(messages: readonly Json[]): Turn[] {
  const turns: Turn[] = []
  const customCallIds = new Set<string>()
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]
    const path = `messages[${index}]`
    if (!isObject(message)) throw wrongType(path, 'an object')
    const role = requiredString(message, 'role', `${path}.`)
    switch (role) {
      case 'system':
      case 'developer':
      case 'user':
        turns.push(readInput(message, role, path))
        break
      case 'assistant':
        turns.push({ role, parts: readAssistant(message, path, customCallIds) })
        break
      case 'tool':
      case 'function': {
        // The older `function` role names its call by the function's name.
        const callId = requiredString(message, role === 'tool' ? 'tool_call_id' : 'name', `${path}.`)
        const kind = customCallIds.has(callId) ? 'custom' : 'function'
        const parts = readInputParts(message['content'], `${path}.content`)
        const mark = readMark(message)
        turns.push(
          mark === undefined ? { role: 'tool', callId, parts, kind } : { role: 'tool', callId, parts, mark, kind },
        )
        break
      }
      default:
        throw invalidRequest(`${path}.role`, `${path}.role must be system, developer, user, assistant, or tool.`)
    }
  }
  return turns
}

function readInput(message: JsonObject, role: InputTurn['role'], path: string): InputTurn {
  const parts = readInputParts(message['content'], `${path}.content`)
  // Some clients mark the message instead of its last part.
  const last = parts.pop()
  if (last !== undefined)
    parts.push(withMark(last, readMark(message) ?? (last.type === 'audio' ? undefined : last.mark)))
  const name = stringField(message, 'name', `${path}.`)
  return name === undefined ? { role, parts } : { role, parts, name }
}

function readAssistant(message: JsonObject, path: string, customCallIds: Set<string>): AssistantPart[] {
  const parts: AssistantPart[] = []
  const reasoning = message['reasoning_content'] ?? message['reasoning']
  if (typeof reasoning === 'string' && reasoning !== '') parts.push({ type: 'reasoning', text: reasoning })
  readAssistantParts(message['content'], `${path}.content`, parts)
  const refusal = stringField(message, 'refusal', `${path}.`)
  if (refusal !== undefined && refusal !== '') parts.push({ type: 'refusal', text: refusal })
  const calls = arrayField(message, 'tool_calls', `${path}.`) ?? []
  for (let index = 0; index < calls.length; index++) {
    parts.push(readCall(calls[index], `${path}.tool_calls[${index}]`, customCallIds))
  }
  const legacy = message['function_call']
  if (isObject(legacy)) {
    const name = requiredString(legacy, 'name', `${path}.function_call.`)
    parts.push({ type: 'call', kind: 'function', id: name, name, arguments: readArguments(legacy['arguments']) })
  }
  return parts
}

function readCall(call: Json | undefined, path: string, customCallIds: Set<string>): AssistantPart {
  if (!isObject(call)) throw wrongType(path, 'an object')
  const id = stringField(call, 'id', `${path}.`) ?? ''
  const custom = call['custom']
  if (isObject(custom)) {
    customCallIds.add(id)
    const name = requiredString(custom, 'name', `${path}.custom.`)
    return { type: 'call', kind: 'custom', id, name, arguments: stringField(custom, 'input', `${path}.custom.`) ?? '' }
  }
  const called = call['function']
  if (!isObject(called)) throw wrongType(`${path}.function`, 'an object')
  const name = requiredString(called, 'name', `${path}.function.`)
  return { type: 'call', kind: 'function', id, name, arguments: readArguments(called['arguments']) }
}

/** The arguments as text; some clients send the object instead of its JSON text. */
function readArguments(value: Json | undefined): string {
  if (typeof value === 'string') return value
  return value === undefined || value === null ? '' : JSON.stringify(value)
}
