import { readDollars, writeUsd } from './money.ts'

/** Begins the ID of a session in records; a keyed digest of what identifies it follows (contract 42.13). */
export const sessionIdPrefix = 'ses_'
const sessionIdShape = /^ses_[\w-]{1,64}$/

/** What the requests of one session cost, as exact decimal US dollars. Times are epoch milliseconds. */
export interface SessionCost {
  readonly session: string
  readonly requests: number
  /** Requests with a known cost: the others are not in the sums. */
  readonly priced: number
  readonly usd: string
  /** What caching saved; negative if writes cost more than reads saved. */
  readonly savedUsd: string
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly outputTokens: number
  readonly firstMs: number
  readonly lastMs: number
}

/** Sessions of days that begin in `[fromMs, untilMs)`. */
export interface SessionSelection {
  readonly fromMs: number
  readonly untilMs: number
  readonly limit: number
  /** Only requests with this key. */
  readonly keyId?: string | undefined
}

export function isSessionId(text: string): boolean {
  return sessionIdShape.test(text)
}

/** A sum of dollars of a session, or that it is unknown. */
export function writeSessionSum({ priced }: Pick<SessionCost, 'priced'>, usd: string): string {
  return priced === 0 ? 'unknown' : writeUsd(readDollars(usd) ?? 0n)
}

/** What a session cost, in words: unknown costs never look like 0 (contract 42.5). */
export function describeSessionCost(session: SessionCost): string {
  const { requests, priced, usd } = session
  const count = `${requests.toLocaleString('en')} ${requests === 1 ? 'request' : 'requests'}`
  if (priced === 0) return `${count}, cost unknown`
  const unknown = requests === priced ? '' : `; the cost of ${(requests - priced).toLocaleString('en')} is unknown`
  return `${count}, ${writeSessionSum(session, usd)}${unknown}`
}
