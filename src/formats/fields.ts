import { invalidRequest, type ServiceError } from '../domain/errors.ts'
import { type Json, type JsonObject, isObject } from '../domain/json.ts'

/** A readonly shape under construction, field by field, so that fields the caller did not send stay absent. */
export type Draft<Shape> = { -readonly [Name in keyof Shape]: Shape[Name] }

/** A field's name on the wire and its name in a conversation. */
export type FieldNames<Name extends string> = readonly (readonly [wire: string, ours: Name])[]

export function isArray(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value)
}

/** The error for a field of the wrong type; `param` is a path such as `messages[2].role`. */
export function wrongType(param: string, expected: string): ServiceError {
  return invalidRequest(param, `${param} must be ${expected}.`)
}

/**
 * A string, or undefined if absent or null. `path` is the prefix of the name: `messages[2].`. @throws ServiceError
 * `invalid_request`
 */
export function stringField(body: JsonObject, name: string, path = ''): string | undefined {
  const value = body[name]
  if (typeof value === 'string') return value
  if (value === undefined || value === null) return undefined
  throw wrongType(path + name, 'a string')
}

/** As `stringField`, for a required field. @throws ServiceError `invalid_request` */
export function requiredString(body: JsonObject, name: string, path = ''): string {
  const value = body[name]
  if (typeof value === 'string') return value
  throw wrongType(path + name, 'a string')
}

/** As `stringField`, for booleans. @throws ServiceError `invalid_request` */
export function booleanField(body: JsonObject, name: string, path = ''): boolean | undefined {
  const value = body[name]
  if (typeof value === 'boolean') return value
  if (value === undefined || value === null) return undefined
  throw wrongType(path + name, 'true or false')
}

/** As `stringField`, for numbers. @throws ServiceError `invalid_request` */
export function numberField(body: JsonObject, name: string, path = ''): number | undefined {
  const value = body[name]
  if (typeof value === 'number') return value
  if (value === undefined || value === null) return undefined
  throw wrongType(path + name, 'a number')
}

/** More than any API accepts, and small enough for every provider to read. */
const largestCount = 2_147_483_647

/** As `numberField`, for limits and counts: integers from `least` (contract 2.46). @throws ServiceError `invalid_request` */
export function countField(body: JsonObject, name: string, least = 1, path = ''): number | undefined {
  const value = numberField(body, name, path)
  if (value === undefined || (Number.isInteger(value) && value >= least && value <= largestCount)) return value
  throw wrongType(path + name, `an integer from ${least} to ${largestCount}`)
}

/** As `stringField`, for objects. @throws ServiceError `invalid_request` */
export function objectField(body: JsonObject, name: string, path = ''): JsonObject | undefined {
  const value = body[name]
  if (value === undefined || value === null) return undefined
  if (isObject(value)) return value
  throw wrongType(path + name, 'an object')
}

/** As `stringField`, for arrays. @throws ServiceError `invalid_request` */
export function arrayField(body: JsonObject, name: string, path = ''): readonly Json[] | undefined {
  const value = body[name]
  if (value === undefined || value === null) return undefined
  if (isArray(value)) return value
  throw wrongType(path + name, 'an array')
}

/** Reads these string fields under their conversation names. @throws ServiceError `invalid_request` */
export function stringFields<Name extends string>(body: JsonObject, names: FieldNames<Name>): { [N in Name]?: string } {
  const found: { [N in Name]?: string } = {}
  for (const [wire, ours] of names) {
    const value = stringField(body, wire)
    if (value !== undefined) found[ours] = value
  }
  return found
}

/** Reads these number fields under their conversation names. @throws ServiceError `invalid_request` */
export function numberFields<Name extends string>(body: JsonObject, names: FieldNames<Name>): { [N in Name]?: number } {
  const found: { [N in Name]?: number } = {}
  for (const [wire, ours] of names) {
    const value = numberField(body, wire)
    if (value !== undefined) found[ours] = value
  }
  return found
}

/** Writes the fields that are present under their wire names. */
export function writeFields<Name extends string>(
  body: Draft<JsonObject>,
  names: FieldNames<Name>,
  values: { readonly [N in Name]?: Json },
): void {
  for (const [wire, ours] of names) {
    const value = values[ours]
    if (value !== undefined) body[wire] = value
  }
}
