import type { ClientFamily } from './client-family.ts'

/**
 * Why a provider read a prompt from its cache, or did not (contract 45.12). `first`: no earlier turn has this
 * beginning. `tools`, `system`, `settings`, `item`: this part differs from the previous turn. `backend`: another
 * backend answered. `expired`: the provider no longer stores it. `short`: the prompt is too short for providers to cache.
 * `unmarked`: the provider caches only what is marked, and nothing was. `unread`: the provider had it, as far as is
 * known, and read less. `uncounted`: the provider reported no usage.
 */
export const cacheReasons = [
  'hit',
  'first',
  'backend',
  'expired',
  'tools',
  'system',
  'settings',
  'item',
  'short',
  'unmarked',
  'unread',
  'uncounted',
] as const
export type CacheReason = (typeof cacheReasons)[number]

/** What is recorded of the provider's cache for one answered attempt. No text. */
export interface CacheVerdict {
  readonly reason: CacheReason
  /** Tokens of the previous turn's prompt: what a perfect cache would have read. */
  readonly before: number
  /** Tokens of it that this backend was expected to read. */
  readonly expected: number
  /** Tokens that it reported as read; absent if it reported nothing. */
  readonly read?: number
  /** For `item`: which item of the conversation differs, from 1, without the system prompt. */
  readonly item?: number
  readonly client: ClientFamily
}

const texts: Readonly<Record<CacheReason, string>> = {
  hit: 'read from the cache',
  first: 'no earlier request began like this one',
  backend: 'a different backend answered',
  expired: 'the provider no longer stored the prompt',
  tools: 'the tools changed',
  system: 'the system prompt changed',
  settings: 'a setting that the cache depends on changed, such as reasoning or tool choice',
  item: 'an earlier item changed',
  short: 'the prompt is too short for providers to cache',
  unmarked: 'nothing was marked for caching',
  unread: 'the provider did not read its cache, although it should have the prompt',
  uncounted: 'the provider reported no usage',
}

/** The verdict in words, without the figures. */
export function describeReason({ reason, item }: Pick<CacheVerdict, 'reason' | 'item'>): string {
  return reason === 'item' && item !== undefined ? `item ${item} changed` : texts[reason]
}

/** The verdict in one line, with its figures. */
export function describeVerdict(verdict: CacheVerdict): string {
  const { before, expected, read } = verdict
  const words = describeReason(verdict)
  if (before === 0 || read === undefined) return words
  const write = (tokens: number): string => tokens.toLocaleString('en')
  const missed = expected < before ? `, of which this backend was expected to read ${write(expected)}` : ''
  return `${words}: ${write(read)} tokens read, ${write(before)} in the previous prompt${missed}`
}

/** The verdict on the attempt that answered; undefined if none was recorded, or only one of a later version. */
export function verdictIn(attempts: readonly { readonly cache?: CacheVerdict }[]): CacheVerdict | undefined {
  const verdict = attempts.at(-1)?.cache
  return verdict !== undefined && cacheReasons.includes(verdict.reason) ? verdict : undefined
}
