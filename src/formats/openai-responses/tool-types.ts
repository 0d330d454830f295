import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { fusionToolType } from '../../domain/profiles.ts'
import { isArray } from '../fields.ts'
import type { Dialect } from '../format.ts'

/** Item types that every endpoint supports. An item without a type is a message or a reference. */
const plainItems = new Set<Json | undefined>([
  undefined,
  'message',
  'reasoning',
  'item_reference',
  'function_call',
  'function_call_output',
])

/**
 * Whether an endpoint accepts a request's tools and tool items unchanged. One that supports only functions would answer
 * 400 to the whole request, or silently drop them (contract 11.7).
 */
export function takesTools(body: JsonObject, { hostedTools }: Dialect): boolean {
  if (hostedTools === undefined) return true
  const { tools, input } = body
  if (isArray(tools) && !tools.every((tool) => isObject(tool) && isTaken(tool['type'], hostedTools))) return false
  return !isArray(input) || input.every((item) => isObject(item) && isPlain(item))
}

function isTaken(type: Json | undefined, hostedTools: readonly string[]): boolean {
  if (type === undefined || type === 'function' || type === fusionToolType) return true
  return typeof type === 'string' && hostedTools.includes(type)
}

function isPlain(item: JsonObject): boolean {
  if (!plainItems.has(item['type']) || (item['namespace'] !== undefined && item['namespace'] !== null)) return false
  const { output } = item
  return !isArray(output) || output.every((part) => isObject(part) && part['type'] === 'input_text')
}
