import type { CacheReason } from '../../src/domain/cache-verdict.ts'
import type { RoutingPolicy } from '../../src/domain/routing-policy.ts'
import { hashText, seededRandom } from '../../src/gateway/fusion/engine/seeded-random.ts'
import { AgentSession, CacheWorld, type CacheCondition, type CachingBackend } from './cache-world.ts'

const backendIds = ['b0', 'b1', 'b2', 'b3', 'b4'] as const
const accounts = 20
/** Sessions begin within this time, and pause this long between turns on average; a few pauses outlast the cache. */
const startMs = 60_000
const pauseMs = 25_000
const longPauseShare = 0.01
const longPauseMs = 400_000
/** Each backend is down for 20 s every 15 minutes, and rejects calls with 429 for a few seconds every 2 minutes. */
const outages = { everyMs: 900_000, lastingMs: 20_000 }
const limits = { everyMs: 120_000, lastingMs: 2_000 }

export interface SessionsResult {
  readonly requests: number
  readonly answered: number
  readonly costUsd: number
  /** Tokens read from caches, as a share of all input. */
  readonly readShare: number
  /** Turns that were answered by another backend than the turn before. */
  readonly moved: number
  /** Median and 95th percentile of the time of a request, milliseconds. */
  readonly p50Ms: number
  readonly p95Ms: number
  readonly reasons: ReadonlyMap<CacheReason | undefined, number>
}

export interface SessionsOptions {
  readonly routing: RoutingPolicy
  readonly seed: number
  readonly sessions: number
  readonly turns: number
  /** Whether backends fail. */
  readonly isFailing?: boolean
}

/** Agents' sessions, all at once, over five backends with caches of their own. The same seed gives the same faults. */
export async function runSessions(options: SessionsOptions): Promise<SessionsResult> {
  const { routing, seed, sessions, turns, isFailing = true } = options
  const untilMs = startMs + turns * 4 * pauseMs
  const backends = backendIds.map((id): CachingBackend => {
    const conditionAt = isFailing ? conditionsOf(hashText(`${seed} ${id}`), untilMs) : (): CacheCondition => 'answers'
    return { id, domain: id, medianMs: 600, conditionAt }
  })
  const world = new CacheWorld({ backends, routing, seed })
  const waits: number[] = []
  const reasons = new Map<CacheReason | undefined, number>()
  let answered = 0
  let moved = 0
  let input = 0
  let read = 0
  const runOne = async (index: number): Promise<void> => {
    const random = seededRandom(hashText(`${seed} session ${index}`))
    const session = new AgentSession(`session ${index}`)
    let before: string | undefined
    await world.pause(random() * startMs)
    for (let turn = 0; turn < turns; turn++) {
      const sent = { ...session.next(), accountId: `acc_${index % accounts}` }
      let result = await world.send(sent)
      waits.push(result.waitedMs)
      answered += Number(result.backend !== undefined)
      // An agent sends a request that was not answered again.
      for (let again = 0; result.backend === undefined && again < 5; again++) {
        await world.pause(5_000)
        result = await world.send(sent)
      }
      input += result.inputTokens
      read += result.cachedTokens
      if (turn > 0 && result.backend !== before) moved += 1
      before = result.backend
      const reason = result.outcome?.attempts.at(-1)?.cache?.reason
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
      await world.pause(random() < longPauseShare ? longPauseMs : -Math.log(1 - random()) * pauseMs)
    }
  }
  await world.clock.until(Promise.all(Array.from({ length: sessions }, (_, index) => runOne(index))))
  waits.sort((one, other) => one - other)
  return {
    requests: waits.length,
    answered,
    costUsd: world.costUsd,
    readShare: read / input,
    moved,
    p50Ms: waits[Math.floor(waits.length * 0.5)]!,
    p95Ms: waits[Math.floor(waits.length * 0.95)]!,
    reasons,
  }
}

/** All sessions at the backend that makes this cheapest; the others are asked only while it fails. */
export async function bestPinned(options: Omit<SessionsOptions, 'routing'>): Promise<SessionsResult> {
  let best: SessionsResult | undefined
  for (const id of backendIds) {
    const result = await runSessions({ ...options, routing: { sort: 'order', order: [id], sticky: false } })
    if (best === undefined || result.costUsd < best.costUsd) best = result
  }
  return best!
}

function conditionsOf(seed: number, untilMs: number): (ms: number) => CacheCondition {
  const random = seededRandom(seed)
  const down = episodes(random, untilMs, outages)
  const limited = episodes(random, untilMs, limits)
  return (ms) => {
    if (down.some(([from, to]) => ms >= from && ms < to)) return 'refuses'
    const limit = limited.find(([from, to]) => ms >= from && ms < to)
    return limit === undefined ? 'answers' : { retryAfterMs: Math.ceil((limit[1] - ms) / 1000) * 1000 }
  }
}

function episodes(
  random: () => number,
  untilMs: number,
  { everyMs, lastingMs }: { everyMs: number; lastingMs: number },
): (readonly [number, number])[] {
  const found: (readonly [number, number])[] = []
  for (let ms = 0; ms < untilMs;) {
    const from = ms - Math.log(1 - random()) * everyMs
    ms = from + lastingMs * (0.5 + random())
    found.push([from, ms])
  }
  return found
}
