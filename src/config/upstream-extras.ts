import type { Upstream } from '../domain/accounts.ts'
import { holdsSecret } from '../domain/secret-shapes.ts'
import { canCarryCredential } from '../providers/cloud-location.ts'
import { dayMs } from '../runtime/durations.ts'
import { readDurationMs } from './measures.ts'

/** The timeouts of an upstream: the option and field that sets each, and what it limits (contract 9.7). */
export const timeoutSettings = [
  { name: 'connect', key: 'connectMs', label: 'Connect timeout', limits: 'Time limit for opening the connection.' },
  {
    name: 'first_content',
    key: 'firstContentMs',
    label: 'First content timeout',
    limits: 'Time limit for the first content of a stream.',
  },
  {
    name: 'whole_answer',
    key: 'wholeAnswerMs',
    label: 'Whole answer timeout',
    limits: 'Time limit for a whole answer that is not streamed.',
  },
  { name: 'idle', key: 'idleMs', label: 'Idle timeout', limits: 'Time limit between two events of a stream.' },
  {
    name: 'total',
    key: 'totalMs',
    label: 'Total timeout',
    limits:
      'Time limit for the whole request, including all attempts. The longest value among the backends that may serve it applies, unless the client sends its own timeout.',
  },
] as const
type TimeoutName = (typeof timeoutSettings)[number]['name']
/** The given timeouts by setting name; undefined if none were given. */
export type GivenTimeouts = Partial<Readonly<Record<TimeoutName, string | undefined>>>

const longestTimeoutMs = dayMs
export const maxHeaders = 16
const maxHeaderCharacters = 1_000
/** Headers that carry credentials, or that only the service may set. */
const reserved =
  /^(?:authorization|proxy-authorization|cookie|(?:.*-)?(?:api-key|apikey|token|secret|password))$|^x-svc-router-/

/** The timeouts in the form that is stored, or the name of the first that is not a duration from 1ms to 24h. */
export function readTimeouts(given: GivenTimeouts): NonNullable<Upstream['timeouts']> | TimeoutName {
  const timeouts: Partial<Record<(typeof timeoutSettings)[number]['key'], number>> = {}
  for (const { name, key } of timeoutSettings) {
    const text = given[name]
    if (text === undefined) continue
    const ms = readDurationMs(text)
    if (ms === undefined || ms < 1 || ms > longestTimeoutMs) return name
    timeouts[key] = ms
  }
  return timeouts
}

/**
 * Extra headers in the form that is stored, from lines `name=value` or `name: value`; or the problem of one of them, in
 * a sentence that does not repeat its value (contract 21.8).
 */
export function readHeaders(lines: readonly string[]): Readonly<Record<string, string>> | string {
  if (lines.length > maxHeaders) return `there are more than ${maxHeaders} headers`
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const [, given = '', value = ''] = /^([^=:]{1,64})[=:](.*)$/s.exec(line) ?? []
    const name = given.trim().toLowerCase()
    if (!canCarryCredential(name)) return 'a header has no name, or a name that must not be set'
    if (reserved.test(name))
      return `${name} cannot be an extra header, because it can carry a credential or is set by the service`
    if (!/^[\x20-\x7e]+$/.test(value.trim()) || value.length > maxHeaderCharacters)
      return `the value of ${name} is empty, longer than ${maxHeaderCharacters} characters, or not plain ASCII`
    if (holdsSecret(value))
      return `the value of ${name} looks like a credential, and extra headers are stored and shown unencrypted`
    headers[name] = value.trim()
  }
  return headers
}
