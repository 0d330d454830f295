import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { isArray } from '../fields.ts'

/** Bodies can nest this deep, and so can schemas: the bound keeps the recursion from overflowing the stack. */
const maxDepth = 200

/** Keywords whose values are maps of schemas: their keys are names, not keywords. */
const maps = new Set(['properties', '$defs', 'definitions', 'patternProperties'])
/** Keywords whose values are plain values. */
const values = new Set(['enum', 'const', 'default', 'examples', 'example', 'required'])

/**
 * Converts a JSON Schema for Google: without document metadata (`$schema`, `$comment`), and with `const`, which it does
 * not support, as an `enum` of one value.
 */
export function writeSchema(schema: JsonObject): JsonObject {
  return clean(schema, 0)
}

function clean(schema: JsonObject, depth: number): JsonObject {
  if (depth > maxDepth) return {}
  const written: [string, Json | undefined][] = []
  for (const [name, value] of Object.entries(schema)) {
    if (name === '$schema' || name === '$comment') continue
    if (name === 'const') {
      if (schema['enum'] === undefined && value !== undefined) written.push(['enum', [value]])
    } else if (values.has(name)) written.push([name, value])
    else if (maps.has(name) && isObject(value)) written.push([name, cleanMap(value, depth + 1)])
    else written.push([name, cleanValue(value, depth + 1)])
  }
  return Object.fromEntries(written)
}

function cleanMap(schemas: JsonObject, depth: number): JsonObject {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, cleanValue(schema, depth)]))
}

function cleanValue(value: Json | undefined, depth: number): Json | undefined {
  if (isArray(value)) return value.map((entry) => cleanValue(entry, depth) ?? null)
  return isObject(value) ? clean(value, depth) : value
}
