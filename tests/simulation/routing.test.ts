import { expect, test } from 'vitest'
import { ServiceError } from '../../src/domain/errors.ts'
import { routingFor, type RequestRouting, type RoutingPreferences } from '../../src/domain/routing-policy.ts'
import { UpstreamError } from '../../src/domain/upstream.ts'
import { seededRandom } from '../../src/gateway/fusion/engine/seeded-random.ts'
import type { Backend } from '../../src/gateway/ports.ts'
import { BackendStatistics } from '../../src/gateway/routing/backend-statistics.ts'
import { Candidates } from '../../src/gateway/routing/candidates.ts'
import { CircuitBreakers } from '../../src/gateway/routing/circuit-breakers.ts'
import { candidatesOptions } from '../../src/gateway/routing/open-candidates.ts'
import { matchingBackends } from '../../src/gateway/routing/routing-filters.ts'
import { someBackend } from '../gateway/routing/some-backend.ts'
import { casesOf, isLongRun } from '../long-run.ts'
import { deathOf, surgeOf, waitsOf } from './routing-experiments.ts'
import { SimulatedTime } from './simulated-time.ts'

const limitMs = 600_000
const seeds = casesOf({ sample: 1, all: 10 })
const seconds = casesOf({ sample: 300, all: 1_200 })

test(
  'hedging halves the 99th percentile of power of two choices with breakers, with at most 6% more calls',
  async () => {
    const [usual, ours] = [
      await waitsOf('two choices by load', seeds, seconds),
      await waitsOf('balanced, hedge', seeds, seconds),
    ]
    process.stdout.write(
      `simulated p99: ${usual.p99.toFixed(0)} and ${ours.p99.toFixed(0)} ms, ${(ours.extraCalls * 100).toFixed(2)}% more calls\n`,
    )
    expect(ours.p99).toBeLessThanOrEqual(usual.p99 / 2)
    expect(ours.extraCalls).toBeLessThanOrEqual(0.06)
    expect(ours.answered).toBe(ours.requests)
  },
  limitMs,
)

test(
  'a backend that refuses calls gets at most three before it is avoided, and its share back within 30 s',
  async () => {
    let back = 0
    for (let seed = 1; seed <= seeds; seed++) {
      const { failedAtFirst, unanswered, shareBack } = await deathOf('refuses', seed)
      expect(failedAtFirst, `seed ${seed}`).toBeLessThanOrEqual(3)
      expect(unanswered).toBe(0)
      back += shareBack / seeds
    }
    expect(back).toBeGreaterThan(0.8)
  },
  limitMs,
)

test(
  'after a surge, every request is answered again, about as fast as before',
  async () => {
    for (let seed = 1; seed <= seeds; seed++) {
      const { answeredDuring, answeredAfter, slowerAfter, callsPerRequest } = await surgeOf(seed)
      expect(answeredDuring, 'the surge is one').toBeLessThan(0.9)
      expect(answeredAfter, `seed ${seed}`).toBe(1)
      expect(slowerAfter).toBeLessThan(1.6)
      expect(callsPerRequest).toBeLessThan(1.2)
    }
  },
  limitMs,
)

const requests = casesOf({ sample: 20_000, all: 1_000_000 })

test(
  `no backend that fails a requirement is asked, in ${requests} requests whose backends fail`,
  () => {
    const random = seededRandom(isLongRun ? 2 : 1)
    const one = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)]!
    const maybe = <Item>(items: readonly Item[]): Item | undefined => (random() < 0.5 ? undefined : one(items))
    const clock = new SimulatedTime()
    const statistics = new BackendStatistics(clock)
    const breakers = new CircuitBreakers({ clock, random, log: () => {} })
    const breakerKey = { accountId: 'acc', contentKind: () => 'plain' as const }
    const conversation = {
      profile: 'p',
      stream: true,
      turns: [],
      tools: [],
      sampling: {},
      streamUsage: false,
      hints: {},
    }
    const given = Array.from({ length: 12 }, (_, index) => {
      const [region, isPriced] = [maybe(['eu', 'us']), random() < 0.8]
      return someBackend(`b${index}`, {
        failureDomain: one(['d', 'e', 'f']),
        zeroRetention: random() < 0.5,
        ...(region === undefined ? {} : { region }),
        ...(isPriced ? { usdPerMillion: { input: one([1, 3, 9]), output: one([2, 8]) } } : {}),
      })
    })
    const asked = { calls: 0, refused: 0 }
    for (let count = 0; count < requests; count++) {
      const routing = routingFor(preferences(one, maybe), preferences(one, maybe))
      try {
        const backends = matchingBackends(given, routing, 'p')
        const routed = { request: { bytes: Buffer.alloc(0) }, conversation, backends, routing }
        const candidates = new Candidates(
          candidatesOptions({ clock, breakers, statistics, random }, routed, breakerKey),
        )
        for (let found = candidates.next(); found !== undefined; found = candidates.next()) {
          asked.calls += 1
          if (violates(found, routing)) throw new Error(`request ${count}: ${found.id} for ${JSON.stringify(routing)}`)
          const attempt = statistics.begin(
            { backendId: found.id, accountId: 'acc', kind: 0 },
            breakers.begin(found.id, breakerKey),
          )
          attempt.ended(random() < 0.5 ? new UpstreamError('timeout') : undefined)
          candidates.failed(found)
        }
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        asked.refused += 1
      }
    }
    expect(asked.calls).toBeGreaterThan(requests / 2)
    expect(asked.refused).toBeGreaterThan(requests / 20)
  },
  limitMs,
)

/** Random requirements; `sort` and `order` must not matter. */
function preferences(
  one: <Item>(items: readonly Item[]) => Item,
  maybe: <Item>(items: readonly Item[]) => Item | undefined,
): RoutingPreferences {
  const lists = [['b0', 'b1', 'b2', 'b3', 'b4', 'b5'], ['model-b6', 'b7', 'b8'], ['b9']]
  const all = {
    sort: one(['order', 'balanced', 'latency', 'price'] as const),
    order: maybe(lists),
    only: maybe([undefined, undefined, ...lists]),
    ignore: maybe(lists),
    regions: maybe([['eu'], ['us', 'asia']]),
    zeroRetention: maybe([true, false]),
    maxPrice: maybe([{ input: 3 }, { output: 2 }, { input: 9, output: 8 }]),
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

/** Written without the code that is tested. */
function violates(
  { id, model, region, zeroRetention, usdPerMillion: price }: Backend,
  routing: RequestRouting & RoutingPreferences,
): boolean {
  const names = [id, model]
  if (routing.only?.some((name) => names.includes(name)) === false) return true
  if (routing.ignore?.some((name) => names.includes(name)) === true) return true
  if (routing.regions !== undefined && !routing.regions.some((name) => name === region)) return true
  if (routing.zeroRetention === true && zeroRetention !== true) return true
  if (routing.maxPrice === undefined) return false
  const { input = 1e9, output = 1e9 } = routing.maxPrice
  return price === undefined || price.input > input || price.output > output
}
