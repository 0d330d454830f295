import { type CacheReason, cacheReasons, describeReason } from './cache-verdict.ts'

/** What providers read from their caches for the turns of one key and client, by reason (contract 45.13). */
export interface CacheGroup {
  readonly keyId: string
  readonly client: string
  readonly reason: CacheReason
  readonly turns: number
  readonly inputTokens: number
  readonly readTokens: number
}

/** The same for all reasons together. */
export interface CacheUse {
  readonly keyId: string
  readonly client: string
  readonly turns: number
  readonly inputTokens: number
  readonly readTokens: number
  /** Turns that read less than they could have, the most frequent reason first. */
  readonly misses: readonly { readonly reason: CacheReason; readonly turns: number }[]
}

/** Reasons that are no miss. */
const fine: ReadonlySet<CacheReason> = new Set(['hit', 'first', 'uncounted'])

/** Turns that read less than they could have, by reason, the most frequent first. */
export function missesIn(groups: readonly CacheGroup[]): CacheUse['misses'] {
  const misses = cacheReasons.flatMap((reason) => {
    const turns = groups.reduce((total, group) => total + (group.reason === reason ? group.turns : 0), 0)
    return fine.has(reason) || turns === 0 ? [] : [{ reason, turns }]
  })
  return misses.toSorted((one, other) => other.turns - one.turns)
}

/** One entry for each key and client, those with the most turns first. */
export function cacheUses(groups: readonly CacheGroup[]): readonly CacheUse[] {
  const byName = new Map<string, CacheGroup[]>()
  for (const group of groups) {
    const name = `${group.keyId} ${group.client}`
    const known = byName.get(name)
    if (known === undefined) byName.set(name, [group])
    else known.push(group)
  }
  const sum = (all: readonly CacheGroup[], of: (group: CacheGroup) => number): number =>
    all.reduce((total, group) => total + of(group), 0)
  return Array.from(byName.values(), (all): CacheUse => {
    const { keyId, client } = all[0]!
    return {
      keyId,
      client,
      turns: sum(all, ({ turns }) => turns),
      inputTokens: sum(all, ({ inputTokens }) => inputTokens),
      readTokens: sum(all, ({ readTokens }) => readTokens),
      misses: missesIn(all),
    }
  }).toSorted((one, other) => other.turns - one.turns)
}

/** The share of the input that was read from caches, such as `91%`. */
export function writeReadShare({ inputTokens, readTokens }: Pick<CacheUse, 'inputTokens' | 'readTokens'>): string {
  return inputTokens === 0 ? 'none' : `${Math.floor((readTokens / inputTokens) * 100)}%`
}

/** The reasons in one line, such as `12 × the tools changed, 3 × the provider no longer stored the prompt`. */
export function writeMisses({ misses }: Pick<CacheUse, 'misses'>): string {
  if (misses.length === 0) return 'none'
  return misses.map(({ reason, turns }) => `${turns} × ${describeReason({ reason })}`).join(', ')
}
