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
import { SimulatedTime } from './simulated-time.ts'

/** What random requirements and failures lead to: calls, rejected requests, and at most ten violations. */
export interface FilteredRequests {
  readonly calls: number
  readonly refused: number
  readonly violations: readonly string[]
}

/** Sends requests with random requirements to backends that fail, with the parts that choose backends. */
export function filterViolations(requests: number, seed: number): FilteredRequests {
  const random = seededRandom(seed)
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
  const asked = { calls: 0, refused: 0, violations: [] as string[] }
  for (let count = 0; count < requests; count++) {
    const routing = routingFor(preferences(one, maybe), preferences(one, maybe))
    try {
      const backends = matchingBackends(given, routing, 'p')
      const routed = { request: { bytes: Buffer.alloc(0) }, conversation, backends, routing }
      const candidates = new Candidates(candidatesOptions({ clock, breakers, statistics, random }, routed, breakerKey))
      for (let found = candidates.next(); found !== undefined; found = candidates.next()) {
        asked.calls += 1
        if (violates(found, routing) && asked.violations.length < 10)
          asked.violations.push(`request ${count}: ${found.id} for ${JSON.stringify(routing)}`)
        const attempt = statistics.begin(
          { backend: found, accountId: 'acc', kind: 0 },
          breakers.begin(found, breakerKey),
        )
        attempt.ended(random() < 0.5 ? new UpstreamError('timeout') : undefined)
        candidates.failed(found)
      }
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      asked.refused += 1
    }
  }
  return asked
}

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
