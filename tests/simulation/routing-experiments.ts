import type { RoutingPolicy } from '../../src/domain/routing-policy.ts'
import { poisson, quantile, RoutingWorld, steadyBackends, unsteadyBackends, type Condition } from './routing-world.ts'

const perSecond = 8
/** Counts as the wait of a request without an answer. */
const unansweredMs = 120_000

/** A policy, or the reference: two random backends, of which the one with fewer open calls is asked. */
export const policies = {
  order: { routing: { sort: 'order' }, isLoadOnly: false },
  'two choices by load': { routing: { sort: 'balanced' }, isLoadOnly: true },
  balanced: { routing: { sort: 'balanced' }, isLoadOnly: false },
  'balanced, hedge': { routing: { sort: 'balanced', hedge: true }, isLoadOnly: false },
} as const satisfies Readonly<Record<string, { routing: RoutingPolicy; isLoadOnly: boolean }>>
export type PolicyName = keyof typeof policies

/** Times to first content in milliseconds, over the requests of all seeds. */
export interface Waits {
  readonly requests: number
  readonly answered: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  /** Calls beyond one for each request, as a share. */
  readonly extraCalls: number
}

/** The waits under one policy with five unsteady backends, for this many seconds of each seed. */
export async function waitsOf(name: PolicyName, seeds: number, seconds: number): Promise<Waits> {
  const { routing, isLoadOnly } = policies[name]
  const waits: number[] = []
  let answered = 0
  let calls = 0
  for (let seed = 1; seed <= seeds; seed++) {
    const world = new RoutingWorld(seed, routing, unsteadyBackends(seed, seconds * 1000), isLoadOnly)
    await world.run(poisson(seed, perSecond, 0, seconds * 1000))
    for (const { firstContentMs } of world.outcomes) {
      waits.push(firstContentMs ?? unansweredMs)
      answered += Number(firstContentMs !== undefined)
    }
    calls += world.calls.length
  }
  return {
    requests: waits.length,
    answered,
    p50: quantile(waits, 0.5),
    p95: quantile(waits, 0.95),
    p99: quantile(waits, 0.99),
    extraCalls: calls / waits.length - 1,
  }
}

/** What one of five equal backends costs that is down for a minute. */
export interface Death {
  /** Its failed calls in the first ten seconds, and in the whole minute. */
  readonly failedAtFirst: number
  readonly failed: number
  readonly unanswered: number
  /** Its share of the requests 20 to 40 seconds after its recovery, relative to its share before. */
  readonly shareBack: number
}

/** One of five equal backends is down from the second to the third minute, at so many requests per second. */
export async function deathOf(how: Condition & string, seed: number, rate: number): Promise<Death> {
  const [downMs, upMs, endMs] = [120_000, 180_000, 230_000]
  const backends = steadyBackends(5, 20, (id, ms) => (id === 'b0' && ms >= downMs && ms < upMs ? how : { slower: 1 }))
  const world = new RoutingWorld(seed, { sort: 'balanced' }, backends)
  const { outcomes, calls } = await world.run(poisson(seed, rate, 0, endMs))
  const failed = calls.filter((call) => call.backend === 'b0' && call.failed)
  const share = (fromMs: number, toMs: number): number => {
    const sent = outcomes.filter(({ sentMs }) => sentMs >= fromMs && sentMs < toMs)
    return sent.filter(({ backend }) => backend === 'b0').length / sent.length
  }
  return {
    failedAtFirst: failed.filter(({ atMs }) => atMs < downMs + 10_000).length,
    failed: failed.length,
    unanswered: outcomes.filter(({ firstContentMs }) => firstContentMs === undefined).length,
    shareBack: share(upMs + 20_000, upMs + 40_000) / share(60_000, downMs),
  }
}

/** What is left of a surge after it. */
export interface Surge {
  readonly answeredDuring: number
  /** From half a minute after it: the share of answered requests, and p95 relative to before. */
  readonly answeredAfter: number
  readonly slowerAfter: number
  readonly callsPerRequest: number
}

/** Three backends get several times what they can answer for half a minute. */
export async function surgeOf(seed: number): Promise<Surge> {
  const [fromMs, toMs, endMs] = [60_000, 90_000, 180_000]
  const times = [...poisson(seed, 5, 0, endMs), ...poisson(seed + 1_000, 60, fromMs, toMs)]
  const world = new RoutingWorld(seed, { sort: 'balanced', hedge: true }, steadyBackends(3, 10))
  const { outcomes, calls } = await world.run(times)
  const between = (from: number, to: number) => {
    const sent = outcomes.filter(({ sentMs }) => sentMs >= from && sentMs < to)
    const waits = sent.map(({ firstContentMs }) => firstContentMs ?? unansweredMs)
    const answered = sent.filter(({ firstContentMs }) => firstContentMs !== undefined).length / sent.length
    return { answered, p95: quantile(waits, 0.95) }
  }
  const [before, during, after] = [between(20_000, fromMs), between(fromMs, toMs), between(toMs + 30_000, endMs)]
  return {
    answeredDuring: during.answered,
    answeredAfter: after.answered,
    slowerAfter: after.p95 / before.p95,
    callsPerRequest: calls.length / outcomes.length,
  }
}
