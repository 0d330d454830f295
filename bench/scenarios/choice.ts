import type { RequestRouting } from '../../src/domain/routing-policy.ts'
import { seededRandom } from '../../src/gateway/fusion/engine/seeded-random.ts'
import { BackendStatistics } from '../../src/gateway/routing/backend-statistics.ts'
import { Candidates } from '../../src/gateway/routing/candidates.ts'
import { CircuitBreakers } from '../../src/gateway/routing/circuit-breakers.ts'
import { candidatesOptions } from '../../src/gateway/routing/open-candidates.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { someBackend } from '../../tests/gateway/routing/some-backend.ts'
import type { Bench } from '../bench.ts'
import type { Row } from '../rows.ts'

const warmUpChoices = 20_000
const choices = 50_000
/** The choice among 50 backends may take this long, microseconds. */
const longestChoice = 30
/** Each backend was called by this many accounts. */
const accounts = 20

/** The CPU time of choosing the first backend of one request, in this process. */
export async function measureChoice(bench: Bench): Promise<Row[]> {
  const sorts = ['order', 'balanced', 'latency', 'price'] as const
  const contenders = sorts.flatMap((sort) => [2, 50].map((count) => ({ sort, count, values: [] as number[] })))
  for (let round = 0; round < bench.options.rounds; round++)
    for (const { sort, count, values } of contenders) values.push(microseconds(chooser({ sort }, count)))
  return contenders.map(({ sort, count, values }): Row => {
    const row = { scenario: `choice, ${count} backends`, figure: 'CPU µs/choice', gateway: sort, values }
    if (count !== 50) return row
    return { ...row, aim: { text: `≤ ${longestChoice} µs`, isMet: Math.max(...values) <= longestChoice } }
  })
}

function microseconds(choose: () => void): number {
  for (let done = 0; done < warmUpChoices; done++) choose()
  const before = process.cpuUsage()
  for (let done = 0; done < choices; done++) choose()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / choices
}

/** Chooses among measured backends as a request does. */
function chooser(routing: RequestRouting, count: number): () => void {
  const clock = systemClock()
  const random = seededRandom(1)
  const statistics = new BackendStatistics(clock)
  const breakers = new CircuitBreakers({ clock, random, log: () => {} })
  const breakerKey = { accountId: 'acc_1', contentKind: () => 'plain' as const }
  const backends = Array.from({ length: count }, (_, index) =>
    someBackend(`b${index}`, { usdPerMillion: { input: 1 + (index % 7), output: 4 } }),
  )
  for (const backend of backends) {
    for (let account = 0; account < accounts; account++) {
      const call = { backend, accountId: `acc_${account}`, kind: 0 }
      const attempt = statistics.begin(call, breakers.begin(backend, breakerKey))
      attempt.sawContent()
      attempt.ended()
    }
  }
  const request = { bytes: Buffer.alloc(1024) }
  const conversation = { profile: 'p', stream: true, turns: [], tools: [], sampling: {}, streamUsage: false, hints: {} }
  const deps = { clock, breakers, statistics, random }
  return () =>
    void new Candidates(candidatesOptions(deps, { request, conversation, backends, routing }, breakerKey)).next()
}
