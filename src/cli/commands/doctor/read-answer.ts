import { objectOf, parseObject } from '../../../domain/json.ts'
import { terminalLine } from '../../../runtime/safe-text.ts'
import type { Answer, NoAnswer } from './ask.ts'

export type Outcome = Answer | NoAnswer

/** The prefix of our request ids. */
const requestIdPrefix = 'req_'
const maxShownCharacters = 240

/** The JSON object in a response, or an empty object. */
export function jsonOf(outcome: Outcome | undefined): Readonly<Record<string, unknown>> {
  // Invalid JSON means that the response is not ours.
  return (outcome?.kind === 'answer' ? parseObject(outcome.body) : undefined) ?? {}
}

/** Whether a response comes from svc-router, not from a proxy in front of it. */
export function isOurs(outcome: Outcome | undefined): boolean {
  if (outcome?.kind !== 'answer') return false
  const body = jsonOf(outcome)
  const id = objectOf(body['error'])['request_id'] ?? outcome.headers['x-request-id']
  const isNamed = typeof id === 'string' && id.startsWith(requestIdPrefix)
  return (
    isNamed ||
    body['object'] === 'model_catalog' ||
    listOf(body['data']).some((one) => one['owned_by'] === 'svc-router')
  )
}

/** The error in one of our error responses; undefined for any other response. */
export function apiErrorOf(outcome: Outcome | undefined): { code: string; message: string; link?: string } | undefined {
  if (!isOurs(outcome)) return undefined
  const error = objectOf(jsonOf(outcome)['error'])
  const { code, message } = error
  if (typeof code !== 'string') return undefined
  const link = error['primaryActionUrl'] ?? error['accountUrl']
  return {
    code,
    message: typeof message === 'string' ? shown(message) : code,
    ...(typeof link === 'string' ? { link: shown(link) } : {}),
  }
}

/** The value of a header that contains a whole number. */
export function readNumberHeader(answer: Answer, header: string): number | undefined {
  const value = answer.headers[header]
  return typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : undefined
}

/** Makes text from a server safe to print: no control characters, limited length. */
export function shown(text: string): string {
  return terminalLine(text.slice(0, maxShownCharacters))
}

export function listOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.map(objectOf) : []
}

/** The state of a profile's backends, from `X-Svc-Router-Backends`. */
export interface ProfileStanding {
  readonly connected: number
  readonly usable: number
  readonly rejected: number
  readonly simulated: number
  /** Usable backends whose last request failed; 0 if an older service does not report it. */
  readonly failing: number
}

/** The state of one profile's backends; undefined if the service does not report it. */
export function standingOf(answer: Answer, profile: string): ProfileStanding | undefined {
  const header = answer.headers['x-svc-router-backends']
  const items = typeof header === 'string' ? header.split(', ') : []
  const item = items.find((one) => one.startsWith(`"${profile}";`))
  if (item === undefined) return undefined
  const count = (name: string, unsaid = NaN): number =>
    Number(new RegExp(`;${name}=(\\d{1,9})(?:;|$)`).exec(item)?.[1] ?? unsaid)
  const standing = {
    connected: count('connected'),
    usable: count('usable'),
    rejected: count('rejected'),
    simulated: count('simulated'),
    failing: count('failing', 0),
  }
  return Object.values(standing).some(Number.isNaN) ? undefined : standing
}
