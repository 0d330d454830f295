import { type Json, type JsonObject, isObject } from '../../../../domain/json.ts'
import { isArray } from '../../../../formats/fields.ts'

/** Deeper values are not checked: providers allow schemas of at most 10 levels. */
const maxDepth = 32

/**
 * Whether a value matches a JSON schema, checking only `type`, `enum`, `const`, `properties`, `required`,
 * `additionalProperties: false`, and `items`. Other keywords count as satisfied.
 */
export function fitsSchema(value: Json, schema: JsonObject, depth = 0): boolean {
  if (depth > maxDepth) return true
  const { type, enum: allowed, properties, required, items } = schema
  const types = isArray(type) ? type : type === undefined ? [] : [type]
  if (types.length > 0 && !types.some((name) => isOfType(value, name))) return false
  if (isArray(allowed) && !allowed.some((one) => isSame(one, value))) return false
  if (schema['const'] !== undefined && !isSame(schema['const'], value)) return false
  if (isArray(value)) return !isObject(items) || value.every((item) => fitsSchema(item, items, depth + 1))
  if (!isObject(value)) return true
  const known = isObject(properties) ? properties : {}
  if (isArray(required) && required.some((name) => typeof name === 'string' && !Object.hasOwn(value, name)))
    return false
  return Object.entries(value).every(([name, field]) => {
    const inner = Object.hasOwn(known, name) ? known[name] : undefined
    if (inner === undefined) return schema['additionalProperties'] !== false
    return field === undefined || !isObject(inner) || fitsSchema(field, inner, depth + 1)
  })
}

function isOfType(value: Json, type: Json): boolean {
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'null') return value === null
  if (type === 'array') return isArray(value)
  if (type === 'object') return isObject(value)
  // Not one of JSON's types: nothing is known about it.
  return type === 'string' || type === 'number' || type === 'boolean' ? typeof value === type : true
}

function isSame(a: Json, b: Json): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
