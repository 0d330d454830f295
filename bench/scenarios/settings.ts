import type { Bench } from '../bench.ts'
import type { RequestKind } from '../bodies.ts'
import type { Gateway, GatewayName } from '../gateways.ts'
import { readCpuNs } from '../proc-stat.ts'
import type { UpstreamMode } from '../protocol.ts'
import { type Contender, enterOne, maxRequestsPerRun, measure } from '../rounds.ts'
import { compare } from '../rows.ts'
import type { Row } from '../rows.ts'

/** Short rounds, and twice as many: the machine's speed changes within seconds. */
const roundsFactor = 2
const runShare = 1 / 3

/** The same program with other settings. */
export interface SettingsComparison {
  readonly scenario: string
  /** The reference first. */
  readonly names: readonly [GatewayName, ...GatewayName[]]
  readonly loads: readonly SettingsLoad[]
  readonly aimAtMost: number
  /** Of each: two processes of the same program differ by up to 25 %, for as long as they run. */
  readonly processes: number
}

interface SettingsLoad {
  readonly kind: RequestKind
  readonly mode: UpstreamMode
  readonly figure: string
  readonly connections: number
  readonly warmUps?: number
}

/** The CPU per answer of a program with several settings, in the same rounds. */
export async function compareSettings(
  bench: Bench,
  { scenario, names, loads, aimAtMost, processes }: SettingsComparison,
) {
  await using started = new AsyncDisposableStack()
  const gateways: Gateway[] = []
  try {
    for (const name of Array.from({ length: processes }, () => names).flat()) {
      const gateway = await bench.startFresh(name)
      started.defer(() => gateway.stop())
      gateways.push(gateway)
    }
  } catch (error) {
    bench.note(scenario, 'svc-router', error)
    return []
  }
  const rows: Row[] = []
  for (const { kind, mode, figure, connections, warmUps = 1 } of loads) {
    const contenders: Contender[] = []
    for (const gateway of gateways) {
      const contender = await enterOne(bench, scenario, {
        label: gateway.name,
        gateway,
        kind,
        mode,
        warm: true,
        warmUps,
      })
      if (contender !== undefined) contenders.push(contender)
    }
    const { rounds, runMs } = bench.options
    const comparison = await measure(bench, contenders, {
      scenario,
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
export function minima(values: ReadonlyMap<string, readonly number[]>): ReadonlyMap<string, string> {
  const [reference] = [...values.values()].map((own) => Math.min(...own))
  return new Map(
    [...values].map(([label, own]) => {
      const least = Math.min(...own)
      return [label, `minimum ${least.toFixed(1)}, ${(least / reference!).toFixed(3)} ×`]
    }),
  )
}
