import { invalidRequest } from '../../domain/errors.ts'
import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { toBase62 } from '../../runtime/ids.ts'
import { isArray } from '../fields.ts'

/** Id prefixes by item type; all other types use the last. */
const prefixes: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  function_call_output: 'fco',
  custom_tool_call: 'ctc',
  custom_tool_call_output: 'ctco',
  compaction: 'cmp',
}
const otherPrefix = 'item'
const positionWidth = 3
/** An id made by `withIds`: it contains the id of its response. */
const givenId = /^[a-z]+_([0-9A-Za-z]{8,40})([0-9A-Za-z]{3})x$/

/**
 * Converts an input to a list of items, each with a type; a plain text becomes a user message. @throws ServiceError
 * `invalid_request`
 */
export function inputItems(input: Json | undefined): readonly JsonObject[] {
  if (input === undefined || input === null) return []
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }]
  if (!isArray(input)) throw invalidRequest('input', 'input must be a string or an array of items.')
  return input.map((item, index) => {
    if (!isObject(item)) throw invalidRequest(`input[${index}]`, `input[${index}] must be an object.`)
    if (item['type'] !== undefined && item['type'] !== null) return item
    return { ...item, type: item['role'] === undefined ? 'item_reference' : 'message' }
  })
}

/**
 * The items as stored and listed: complete messages, and an id derived from the response's for each item without one.
 */
export function withIds(items: readonly JsonObject[], responseId: string): readonly JsonObject[] {
  const tail = responseId.replace(/^resp_/, '')
  return items.map((item, index) => {
    const { type, id } = item
    const complete = type === 'message' ? wholeMessage(item) : item
    if (typeof id === 'string' && id !== '') return complete
    const prefix = (typeof type === 'string' ? prefixes[type] : undefined) ?? otherPrefix
    return { ...complete, id: `${prefix}_${tail}${toBase62(index, positionWidth)}x` }
  })
}

/** The response of an id made by `withIds`; undefined for any other id. */
export function responseIdOf(itemId: string): string | undefined {
  const tail = givenId.exec(itemId)?.[1]
  return tail === undefined ? undefined : `resp_${tail}`
}

function wholeMessage(item: JsonObject): JsonObject {
  const { content, role, status } = item
  const text = role === 'assistant' ? { type: 'output_text', annotations: [] } : { type: 'input_text' }
  return {
    ...item,
    status: status ?? 'completed',
    content: typeof content === 'string' ? [{ ...text, text: content }] : (content ?? []),
  }
}

/** Whether a reasoning item means nothing to a provider that stores nothing: it has only an id. */
export function isBareReasoning(item: JsonObject): boolean {
  if (item['type'] !== 'reasoning') return false
  const { encrypted_content: sealed, content } = item
  return !(typeof sealed === 'string' && sealed !== '') && !(isArray(content) && content.length > 0)
}

/** Stored items for replay: without ids that mean nothing to a provider that stores nothing. */
export function replayed(items: readonly JsonObject[]): readonly JsonObject[] {
  return items.map((item) => {
    const { id: _id, status: _status, ...rest } = item
    return typeof item['type'] === 'string' && Object.hasOwn(prefixes, item['type']) ? rest : item
  })
}
