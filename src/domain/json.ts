/** Whether a value is a JSON object, as opposed to an array or null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value if it is an object; otherwise an empty object. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

/** Parses a JSON object; undefined if the text is anything else. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Any value that `JSON.parse` returns. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject

export interface JsonObject {
  readonly [key: string]: Json | undefined
}

/** The value if it is a text; otherwise an empty one. */
export function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

/** Whether a member says something: it is there, and neither null nor an empty list. */
export function isGiven(value: Json | undefined): boolean {
  return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== null
}

/** Whether a value is a whole number from 0 that is represented exactly. */
export function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
