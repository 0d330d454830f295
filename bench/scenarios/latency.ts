import type { Bench } from '../bench.ts'
import type { Gateway } from '../gateways.ts'
import { readCpuUs } from '../proc-stat.ts'
import type { Target } from '../protocol.ts'
import { compare } from '../rows.ts'
import type { Row } from '../rows.ts'
import { quantile } from '../statistics.ts'

const perSecond = 300
const direct = 'direct'
const mode = { name: 'whole', bodyBytes: 1024 } as const

/**
 * The latency that a gateway adds to direct upstream requests at 300 requests per second, in microseconds, and its CPU.
 */
export async function measureLatency(bench: Bench): Promise<Row[]> {
  const gateways = await bench.shared()
  const [first] = gateways
  if (first === undefined) return []
  await bench.setMode(mode)
  const targets = await targetsOf(bench, first, gateways)
  const p50 = new Map<string, number[]>(targets.map(({ label }) => [label, []]))
  const p99 = new Map<string, number[]>(targets.map(({ label }) => [label, []]))
  const cpu = new Map<string, number[]>(targets.filter(({ pid }) => pid !== undefined).map(({ label }) => [label, []]))
  for (let round = 0; round < bench.options.longRounds; round++) {
    for (const { label, target, leastBytes, pid } of targets) {
      try {
        const durationMs = bench.options.latencyMs
        const cpuBefore = pid === undefined ? 0 : readCpuUs(pid)
        const { latenciesUs, answers } = await bench.run({ do: 'open', target, perSecond, durationMs }, leastBytes)
        p50.get(label)?.push(quantile(latenciesUs, 0.5))
        p99.get(label)?.push(quantile(latenciesUs, 0.99))
        if (pid !== undefined) cpu.get(label)?.push((readCpuUs(pid) - cpuBefore) / answers)
      } catch (error) {
        bench.note('latency', label, error)
        p50.delete(label)
        p99.delete(label)
        cpu.delete(label)
      }
    }
  }
  return [
    ...compare({ scenario: 'latency', figure: 'added p50 µs', values: added(p50), reference: 'relay' }),
    ...compare({ scenario: 'latency', figure: 'added p99 µs', values: added(p99), reference: 'relay' }),
    ...compare({ scenario: 'latency', figure: 'CPU µs/request', values: cpu, reference: 'relay' }),
  ]
}

interface Contender {
  readonly label: string
  readonly target: Target
  readonly leastBytes: number
  /** The gateway's process; undefined for the upstream itself. */
  readonly pid: number | undefined
}

async function targetsOf(bench: Bench, first: Gateway, gateways: readonly Gateway[]): Promise<Contender[]> {
  const targets: Contender[] = [
    { label: direct, target: bench.upstreamTarget(first, 'chat'), leastBytes: mode.bodyBytes, pid: undefined },
  ]
  for (const gateway of gateways) {
    try {
      const leastBytes = await bench.check(gateway, 'chat', mode)
      targets.push({ label: gateway.name, target: gateway.target('chat'), leastBytes, pid: gateway.pid })
    } catch (error) {
      bench.note('latency', gateway.name, error)
    }
  }
  return targets
}

/** Each round's figure minus the figure of the direct requests in the same round. */
function added(figures: ReadonlyMap<string, readonly number[]>): Map<string, number[]> {
  const base = figures.get(direct) ?? []
  const gateways = [...figures].filter(([label]) => label !== direct)
  return new Map(gateways.map(([label, values]) => [label, values.map((value, round) => value - (base[round] ?? 0))]))
}
