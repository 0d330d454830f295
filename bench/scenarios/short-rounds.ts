import type { Bench } from '../bench.ts'
import { readCpuNs } from '../proc-stat.ts'
import { type Contender, maxRequestsPerRun, measure } from '../rounds.ts'
import { compare, type Row } from '../rows.ts'

/** Short rounds, and twice as many: the machine's speed changes within seconds. */
const roundsFactor = 2
const runShare = 1 / 3

export interface ShortComparison {
  readonly scenario: string
  readonly figure: string
  readonly connections: number
  /** The label that the others are compared with. */
  readonly reference: string
  readonly aimAtMost: number
}

/** The CPU per answer of contenders that differ only in what is turned on. */
export async function compareInShortRounds(
  bench: Bench,
  contenders: readonly Contender[],
  { scenario, figure, connections, reference, aimAtMost }: ShortComparison,
): Promise<Row[]> {
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
  return compare({ ...comparison, figure, reference, aimOthersAtMost: aimAtMost, remarks })
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
