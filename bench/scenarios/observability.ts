import type { Bench } from '../bench.ts'
import type { Gateway } from '../gateways.ts'
import { readCpuNs } from '../proc-stat.ts'
import { type Contender, enterOne, maxRequestsPerRun, measure } from '../rounds.ts'
import { compare } from '../rows.ts'
import type { Row } from '../rows.ts'

const names = ['svc-router', 'svc-router +metrics', 'svc-router +metrics +traces'] as const
const aimAtMost = 1.03
/** Short rounds, and twice as many: the machine's speed changes within seconds. */
const roundsFactor = 2
const runShare = 1 / 3
/** Processes of each: two processes of the same program differ by up to 25 %, for as long as they run. */
const processesEach = 4
const burstEvents = 200
const loads = [
  { kind: 'chat', mode: { name: 'whole', bodyBytes: 1024 }, figure: 'CPU µs/request', connections: 128 },
  {
    kind: 'chat-stream',
    mode: { name: 'burst', events: burstEvents },
    figure: 'CPU µs/stream of 200',
    connections: 16,
  },
] as const

/** What metrics and traces cost, compared with the same program without them in the same rounds. */
export async function measureObservability(bench: Bench): Promise<Row[]> {
  await using started = new AsyncDisposableStack()
  const gateways: Gateway[] = []
  try {
    for (const name of Array.from({ length: processesEach }, () => names).flat()) {
      const gateway = await bench.startFresh(name)
      started.defer(() => gateway.stop())
      gateways.push(gateway)
    }
  } catch (error) {
    bench.note('observability', 'svc-router', error)
    return []
  }
  const rows: Row[] = []
  for (const { kind, mode, figure, connections } of loads) {
    const contenders: Contender[] = []
    for (const gateway of gateways) {
      const contender = await enterOne(bench, 'observability', { label: gateway.name, gateway, kind, mode, warm: true })
      if (contender !== undefined) contenders.push(contender)
    }
    const { rounds, runMs } = bench.options
    const comparison = await measure(bench, contenders, {
      scenario: 'observability',
      rounds: rounds * roundsFactor,
      connections,
      maxRequests: maxRequestsPerRun,
      durationMs: runMs * runShare,
      readCpuUs: (pid) => readCpuNs(pid) / 1_000,
    })
    const remarks = minima(comparison.values)
    rows.push(...compare({ ...comparison, figure, reference: names[0], aimOthersAtMost: aimAtMost, remarks }))
  }
  return rows
}

/** The least of all rounds, in which other programs disturbed least, relative to the first contender's. */
function minima(values: ReadonlyMap<string, readonly number[]>): ReadonlyMap<string, string> {
  const [reference] = [...values.values()].map((own) => Math.min(...own))
  return new Map(
    [...values].map(([label, own]) => {
      const least = Math.min(...own)
      return [label, `minimum ${least.toFixed(1)}, ${(least / reference!).toFixed(3)} ×`]
    }),
  )
}
