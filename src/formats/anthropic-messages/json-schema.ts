import type { Json, JsonObject } from '../../domain/conversation.ts'
import { isObject } from '../../domain/json.ts'
import { isArray } from '../fields.ts'

/** Limits that an answer's schema may not have here: the model is told of them in words instead. */
const limits = new Set([
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'pattern',
  'minItems',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
])
const formats = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'])
/** Keywords that hold schemas by name, and those that hold a list of them. */
const named = new Set(['properties', '$defs', 'definitions'])
const listed = new Set(['anyOf', 'allOf', 'prefixItems'])
const combining = new Set(['anyOf', 'oneOf', 'allOf'])

/**
 * The schema of an answer in the part of JSON Schema that an answer can be held to: objects are closed, limits are said
 * in descriptions.
 */
export function closedSchema(schema: JsonObject): JsonObject {
  const closed: [string, Json][] = []
  const said: string[] = []
  for (const [key, value] of Object.entries(schema)) {
    if (value === undefined) continue
    if (limits.has(key)) said.push(`${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    else if (key === 'format' && typeof value === 'string' && !formats.has(value)) said.push(`format: ${value}`)
    else if (named.has(key) && isObject(value)) closed.push([key, mapValues(value)])
    else if (key === 'oneOf' && isArray(value)) closed.push(['anyOf', value.map(closeInner)])
    else if (listed.has(key) && isArray(value)) closed.push([key, value.map(closeInner)])
    else closed.push([key, key === 'items' ? closeInner(value) : value])
  }
  if (schema['type'] === 'object' || isObject(schema['properties'])) closed.push(['additionalProperties', false])
  if (said.length > 0) {
    const description = typeof schema['description'] === 'string' ? `${schema['description']}\n` : ''
    closed.push(['description', `${description}${said.join('; ')}`])
  }
  // Not by assignment, for a property may be called `__proto__`.
  return Object.fromEntries(closed)
}

function closeInner(value: Json): Json {
  return isObject(value) ? closedSchema(value) : value
}

function mapValues(schemas: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(schemas).map(([name, value]) => [name, closeInner(value ?? null)]))
}

/** The arguments of a tool: an object, which here may not be a choice between several at its top. */
export function inputSchema(parameters: JsonObject | undefined): JsonObject {
  if (parameters === undefined) return { type: 'object', properties: {} }
  const plain = Object.entries(parameters).filter(([key]) => !combining.has(key))
  return { ...Object.fromEntries(plain), type: 'object' }
}

/** What of a tool's arguments cannot stand in `inputSchema` and is said in its description instead. */
export function unsaidChoices(parameters: JsonObject | undefined): string | undefined {
  const choices = Object.entries(parameters ?? {}).filter(([key]) => combining.has(key))
  if (choices.length === 0) return undefined
  return `The input must also match this JSON schema: ${JSON.stringify(Object.fromEntries(choices))}`
}
