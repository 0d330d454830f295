import { type Json, type JsonObject, isObject, objectOf } from '../../domain/json.ts'

const maxDepth = 12
/** Maximum number of schemas visited per value: callers write schemas, and a recursive one branches endlessly. */
const maxVisits = 2_000
const maxItems = 32
const maxCharacters = 10_000

const texts: Readonly<Record<string, string>> = {
  'date-time': '2026-01-01T12:00:00Z',
  date: '2026-01-01',
  time: '12:00:00Z',
  duration: 'P1D',
  email: 'simulated@example.com',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://example.com/simulated',
  url: 'https://example.com/simulated',
  uuid: '00000000-0000-4000-8000-000000000000',
}

/**
 * Builds a small JSON value that matches a JSON Schema: every declared property, the first alternative, the lowest
 * allowed number. Ignores `pattern` and `not`. `textFor` may supply the text of a named property.
 */
export function sampleOf(
  schema: JsonObject,
  textFor: (property: string) => string | undefined = () => undefined,
): Json {
  return sample(schema, { root: schema, textFor, visitsLeft: maxVisits }, '', 0)
}

interface Context {
  readonly root: JsonObject
  readonly textFor: (property: string) => string | undefined
  visitsLeft: number
}

function sample(given: Json | undefined, context: Context, name: string, depth: number): Json {
  if (!isObject(given) || depth > maxDepth || context.visitsLeft <= 0) return null
  const schema = resolve(given, context, 0)
  if (schema.const !== undefined) return schema.const
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return schema.enum[0] ?? null
  const alternative = chooseAlternative(schema, depth)
  if (alternative !== undefined) return sample(alternative, context, name, depth + 1)
  const type = Array.isArray(schema.type) ? schema.type[0] : (schema.type ?? guessType(schema))
  if (type === 'object') return sampleObject(schema, context, depth)
  if (type === 'array') return sampleArray(schema, context, name, depth)
  if (type === 'string') return sampleText(schema, context.textFor(name))
  if (type === 'integer' || type === 'number') return sampleNumber(schema, type === 'integer')
  return type === 'boolean' ? true : null
}

/**
 * One alternative of `anyOf` or `oneOf`, merged with its siblings: the first, or deep in a recursive schema the one
 * that ends the recursion.
 */
function chooseAlternative(schema: JsonObject, depth: number): JsonObject | undefined {
  const alternatives = schema.anyOf ?? schema.oneOf
  if (!Array.isArray(alternatives) || alternatives.length === 0) return undefined
  const ending = alternatives.find((alternative) => isObject(alternative) && alternative.type === 'null')
  const chosen = depth > maxDepth / 2 && ending !== undefined ? ending : alternatives[0]
  return { ...schema, anyOf: undefined, oneOf: undefined, ...objectOf(chosen) }
}

function sampleObject(schema: JsonObject, context: Context, depth: number): Json {
  const result: Record<string, Json> = {}
  const required = Array.isArray(schema.required) ? schema.required : []
  for (const [name, property] of Object.entries(isObject(schema.properties) ? schema.properties : {})) {
    if (depth > maxDepth / 2 && !required.includes(name)) continue
    const value = sample(property, context, name, depth + 1)
    // Not by assignment: a property may be called __proto__.
    Object.defineProperty(result, name, { value, enumerable: true, configurable: true, writable: true })
  }
  return result
}

function sampleArray(schema: JsonObject, context: Context, name: string, depth: number): Json {
  const prefix = Array.isArray(schema.prefixItems) ? schema.prefixItems : []
  const least = numberOf(schema.minItems) ?? (depth > maxDepth / 2 ? 0 : 1)
  const length = Math.min(Math.max(least, prefix.length), numberOf(schema.maxItems) ?? maxItems, maxItems)
  const items = isObject(schema.items) ? schema.items : { type: 'string' }
  return Array.from({ length }, (_, index) => sample(prefix[index] ?? items, context, name, depth + 1))
}

function sampleText(schema: JsonObject, idea: string | undefined): string {
  const format = typeof schema.format === 'string' ? texts[schema.format] : undefined
  const least = Math.min(numberOf(schema.minLength) ?? 0, maxCharacters)
  const most = numberOf(schema.maxLength) ?? maxCharacters
  return (format ?? idea ?? 'simulated').padEnd(least, '.').slice(0, most)
}

function sampleNumber(schema: JsonObject, whole: boolean): number {
  const step = numberOf(schema.multipleOf) ?? (whole ? 1 : 0)
  const above = numberOf(schema.exclusiveMinimum)
  const below = numberOf(schema.exclusiveMaximum)
  const gap = step > 0 ? step : 0.5
  const least = numberOf(schema.minimum) ?? (above === undefined ? undefined : above + gap)
  const most = numberOf(schema.maximum) ?? (below === undefined ? undefined : below - gap)
  const value = least ?? Math.min(1, most ?? 1)
  if (step === 0) return value
  const fitted = Math.ceil(value / step) * step
  return most !== undefined && fitted > most ? Math.floor(most / step) * step : fitted
}

function guessType(schema: JsonObject): string | undefined {
  if (schema.properties !== undefined) return 'object'
  return schema.items === undefined ? undefined : 'array'
}

/** Follows `$ref` inside the document and merges `allOf`. */
function resolve(schema: JsonObject, context: Context, depth: number): JsonObject {
  let current = schema
  context.visitsLeft -= 1
  for (let hops = 0; typeof current.$ref === 'string' && hops < maxDepth; hops++) {
    const { $ref, ...siblings } = current
    const target = lookUp(context.root, $ref)
    current = { ...target, ...siblings }
  }
  if (!Array.isArray(current.allOf) || depth > maxDepth || context.visitsLeft <= 0) return current
  return current.allOf.filter(isObject).reduce<JsonObject>(
    (sum, part) => {
      const resolved = resolve(part, context, depth + 1)
      const required = [sum.required, resolved.required].flatMap((names) => (Array.isArray(names) ? names : []))
      return {
        ...sum,
        ...resolved,
        required,
        properties: { ...objectOf(sum.properties), ...objectOf(resolved.properties) },
      }
    },
    { ...current, allOf: undefined },
  )
}

function lookUp(root: JsonObject, reference: string): JsonObject {
  if (!reference.startsWith('#')) return {}
  let target: Json | undefined = root
  for (const step of reference.split('/').slice(1)) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
    target = isObject(target) && Object.hasOwn(target, name) ? target[name] : undefined
  }
  return objectOf(target)
}

function numberOf(value: Json | undefined): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}
