/** The part of JSON Schema 2020-12 that the OpenAPI document uses. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly pattern?: string
  readonly additionalProperties?: false
}

const known = new Set(
  '$ref type enum const anyOf required properties items minimum maximum minLength maxLength minItems pattern additionalProperties description default'.split(
    ' ',
  ),
)

/**
 * The violations of a value, each as a path and a reason; empty if it is valid. @throws Error for an unsupported
 * keyword
 */
export function misfits(schema: Schema, value: unknown, find: (ref: string) => Schema, at = '$'): string[] {
  const strange = Object.keys(schema).filter((keyword) => !known.has(keyword))
  if (strange.length > 0) throw new Error(`unknown keywords: ${strange.join(', ')}`)
  if (schema.$ref !== undefined) return misfits(find(schema.$ref), value, find, at)
  const types = schema.type === undefined ? undefined : [schema.type].flat()
  if (types !== undefined && !types.some((type) => isOf(type, value))) return [`${at} is not ${types.join(' or ')}`]
  const within = (one: Schema, inner: unknown, name: string): string[] => misfits(one, inner, find, `${at}${name}`)
  const found: string[] = []
  found.push(...choiceMisfits(schema, value, at))
  if (schema.anyOf !== undefined && !schema.anyOf.some((one) => within(one, value, '').length === 0))
    found.push(`${at} is none of its kinds`)
  if (typeof value === 'number') found.push(...sizeMisfits(value, schema.minimum, schema.maximum, at))
  if (typeof value === 'string') found.push(...textMisfits(schema, value, at))
  if (Array.isArray(value)) {
    found.push(...sizeMisfits(value.length, schema.minItems, undefined, at))
    const { items } = schema
    if (items !== undefined) found.push(...value.flatMap((item, index) => within(items, item, `[${index}]`)))
  } else if (isOf('object', value)) {
    const object = value as Record<string, unknown>
    const { required = [], properties = {} } = schema
    found.push(...required.flatMap((name) => (Object.hasOwn(object, name) ? [] : [`${at}.${name} is missing`])))
    if (schema.additionalProperties === false)
      found.push(...Object.keys(object).flatMap((name) => (name in properties ? [] : [`${at}.${name} is unknown`])))
    for (const name of Object.keys(properties))
      if (Object.hasOwn(object, name)) found.push(...within(properties[name]!, object[name], `.${name}`))
  }
  return found
}

function choiceMisfits(schema: Schema, value: unknown, at: string): string[] {
  const isOther = !(schema.enum?.includes(value) ?? true) || ('const' in schema && schema.const !== value)
  return isOther ? [`${at} is ${JSON.stringify(value)}`] : []
}

function textMisfits({ minLength, maxLength, pattern }: Schema, value: string, at: string): string[] {
  const found = sizeMisfits(value.length, minLength, maxLength, at)
  return pattern !== undefined && !new RegExp(pattern).test(value) ? [...found, `${at} has another form`] : found
}

function sizeMisfits(size: number, least: number | undefined, most: number | undefined, at: string): string[] {
  return size < (least ?? -Infinity) || size > (most ?? Infinity) ? [`${at}: ${size} is not within its bounds`] : []
}

function isOf(type: string, value: unknown): boolean {
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value)
  if (type === 'integer') return Number.isInteger(value)
  return typeof value === type
}
