import { z } from 'zod'
import { dayMs } from '../runtime/durations.ts'
import { readDurationMs, readSizeBytes, writeDuration, writeSize } from './measures.ts'

const maxEntries = 200
const maxTextCharacters = 500
const maxUrlCharacters = 2_000
const longestDurationMs = 3_650 * dayMs
const largestSizeBytes = 1024 ** 3
const envShape = /^[A-Z][A-Z0-9_]{0,127}$/

/** Each function creates a setting type whose error message says what was expected. */
export const flag = z.boolean({ error: 'expected true or false' })

export function whole(min: number, max: number) {
  const error = `expected a whole number from ${min} to ${max}`
  return z.int({ error, abort: true }).min(min, { error }).max(max, { error })
}

export function text(what: string, max = maxTextCharacters) {
  const error = `expected ${what}, at most ${max} characters (in quotes if it looks like a number)`
  return z.string({ error }).min(1, { error }).max(max, { error })
}

export function shaped(shape: RegExp, what: string) {
  const error = `expected ${what}`
  return z.string({ error }).max(maxTextCharacters, { error, abort: true }).regex(shape, { error })
}

export function duration(minMs: number) {
  const error = `expected a duration such as 500ms, 2s, 5m, 24h or 90d, at least ${writeDuration(minMs)}`
  return z
    .string({ error })
    .regex(/^\d{1,9}(ms|s|m|h|d)$/, { error, abort: true })
    .refine((value) => isWithin(readDurationMs(value), minMs, longestDurationMs), { error })
}

export function size(minBytes: number) {
  const error = `expected a size such as 64KiB or 16MiB, from ${writeSize(minBytes)} to ${writeSize(largestSizeBytes)}`
  return z
    .string({ error })
    .regex(/^\d{1,9}(B|KiB|MiB|GiB)$/, { error, abort: true })
    .refine((value) => isWithin(readSizeBytes(value), minBytes, largestSizeBytes), { error })
}

function isWithin(value: number | undefined, min: number, max: number): boolean {
  return value !== undefined && value >= min && value <= max
}

export function url(what: string, isGood: (value: string) => boolean = isPlainUrl) {
  const error = `expected ${what}: an http or https URL without a user name${isGood === isPlainUrl ? ', query,' : ''} or fragment`
  return z
    .string({ error })
    .max(maxUrlCharacters, { error, abort: true })
    .regex(/^https?:\/\//, { error, abort: true })
    .refine(isGood, { error })
}

function isPlainUrl(value: string): boolean {
  return isProviderUrl(value) && new URL(value).search === ''
}

/**
 * Whether a URL can be a provider's base URL: http or https without user and fragment. A query, such as an api-version,
 * is allowed.
 */
export function isProviderUrl(value: string): boolean {
  if (value.length > maxUrlCharacters || !URL.canParse(value)) return false
  const { protocol, username, password, hash } = new URL(value)
  return /^https?:$/.test(protocol) && username === '' && password === '' && hash === ''
}

export const env = (what: string) =>
  shaped(
    envShape,
    'the name of an environment variable in capitals, such as OPENAI_API_KEY, not the secret itself',
  ).describe(what)

export function map<Value extends z.ZodType>(shape: RegExp, what: string, value: Value, max = maxEntries) {
  const name = z.string().regex(shape, { error: `expected ${what}` })
  const error = 'expected a map of names to settings'
  return z
    .record(name, value, { error })
    .refine((entries) => Object.keys(entries).length <= max, { error: `expected at most ${max} entries` })
}

export function group<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.strictObject(shape, {
    error: (issue) => (issue.code === 'invalid_type' ? 'expected settings indented below this line' : undefined),
  })
}
