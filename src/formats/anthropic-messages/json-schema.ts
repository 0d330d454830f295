import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { isArray } from '../fields.ts'

/** Keywords that this format rejects in an answer's schema: descriptions state them instead. */
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
/** Keywords whose values are maps of schemas, and those whose values are lists of schemas. */
const named = new Set(['properties', '$defs', 'definitions'])
const listed = new Set(['anyOf', 'allOf', 'prefixItems'])
const combining = new Set(['anyOf', 'oneOf', 'allOf'])

/**
 * An answer's schema, reduced to the part of JSON Schema that the provider can enforce: objects are closed, and limits
 * move into descriptions.
 */
export function closedSchema(schema: JsonObject): JsonObject {
  const closed: [string, Json][] = []
  const notes: string[] = []
  for (const [key, value] of Object.entries(schema)) {
    if (value === undefined) continue
    if (limits.has(key)) notes.push(`${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    else if (key === 'format' && typeof value === 'string' && !formats.has(value)) notes.push(`format: ${value}`)
    else if (named.has(key) && isObject(value)) closed.push([key, mapValues(value)])
    else if (key === 'oneOf' && isArray(value)) closed.push(['anyOf', value.map(closeInner)])
    else if (listed.has(key) && isArray(value)) closed.push([key, value.map(closeInner)])
    else closed.push([key, key === 'items' ? closeInner(value) : value])
  }
  if (schema['type'] === 'object' || isObject(schema['properties'])) closed.push(['additionalProperties', false])
  if (notes.length > 0) {
    const description = typeof schema['description'] === 'string' ? `${schema['description']}\n` : ''
    closed.push(['description', `${description}${notes.join('; ')}`])
  }
  // Not by assignment: a property may be called `__proto__`.
  return Object.fromEntries(closed)
}

function closeInner(value: Json): Json {
  return isObject(value) ? closedSchema(value) : value
}

function mapValues(schemas: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(schemas).map(([name, value]) => [name, closeInner(value ?? null)]))
}

/** The schema of a tool's arguments: an object, whose top level may not be a union here. */
export function inputSchema(parameters: JsonObject | undefined): JsonObject {
  if (parameters === undefined) return { type: 'object', properties: {} }
  const plain = Object.entries(parameters).filter(([key]) => !combining.has(key))
  return { ...Object.fromEntries(plain), type: 'object' }
}

/** The part of a tool's schema that `inputSchema` cannot express, as a sentence for the tool's description. */
export function unlistedChoices(parameters: JsonObject | undefined): string | undefined {
  const choices = Object.entries(parameters ?? {}).filter(([key]) => combining.has(key))
  if (choices.length === 0) return undefined
  return `The input must also match this JSON schema: ${JSON.stringify(Object.fromEntries(choices))}`
}
