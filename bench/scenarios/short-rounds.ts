import { setTimeout as delay } from 'node:timers/promises'
import type { Bench } from '../bench.ts'
import { readCpuNs } from '../proc-stat.ts'
import type { Contender } from '../rounds.ts'
import type { Row } from '../rows.ts'
import { ratioOfSums, shuffled, type Sum } from '../statistics.ts'

/** The machine's speed changes within seconds, so contenders take turns faster than that. */
const roundMs = 150
/** So many times as often as `--rounds` says. */
const roundsFactor = 6
/** A round ends when the process has used less than this share of a core for two such windows. */
const quietShare = 0.1
const windowMs = 8
const mostWindows = 100

export interface ShortComparison {
  readonly scenario: string
  readonly figure: string
  readonly connections: number
  /** The label that the others are compared with. */
  readonly reference: string
  /** The label of a second contender that is the same as the reference: how far its ratio is from 1 is noise. */
  readonly control?: string
  /** The label that the aim is for; absent if it is for all but the control. */
  readonly aimed?: string
  readonly aimAtMost: number
  /** Begins what the process would otherwise do some time after its answers. */
  readonly settle?: (contender: Contender) => void
}

/**
 * The CPU per answer of contenders that differ only in what is turned on, in many short rounds: the ratio of all CPU per
 * answer to the reference's. Contenders with the same label are several processes of one program.
 */
export async function compareInShortRounds(
  bench: Bench,
  contenders: readonly Contender[],
  comparison: ShortComparison,
): Promise<Row[]> {
  const { scenario, connections } = comparison
  const rounds = contenders.map((): Sum[] => [])
  try {
    for (const [index, { gateway, kind }] of contenders.entries()) {
      const target = gateway.target(kind)
      await bench.runRaw({ do: 'keep', clients: String(index), target, connections })
    }
    for (let round = 0; round < bench.options.rounds * roundsFactor; round++)
      for (const index of shuffled([...contenders.keys()]))
        rounds[index]!.push(await runRound(bench, contenders[index]!, String(index), comparison))
  } catch (error) {
    bench.note(scenario, 'svc-router', error)
    return []
  } finally {
    await bench.runRaw({ do: 'drop-kept' })
  }
  return rowsOf(contenders, rounds, comparison)
}

async function runRound(
  bench: Bench,
  contender: Contender,
  clients: string,
  { settle }: ShortComparison,
): Promise<Sum> {
  const { pid } = contender.gateway
  const beforeNs = readCpuNs(pid)
  const { answers } = await bench.run({ do: 'run-kept', clients, durationMs: roundMs }, contender.leastBytes)
  settle?.(contender)
  return { amount: ((await quietCpuNs(pid)) - beforeNs) / 1000, count: answers }
}

/** The CPU so far once the process does nothing more: what it writes after its answers belongs to them. */
async function quietCpuNs(pid: number): Promise<number> {
  let nowNs = readCpuNs(pid)
  for (let windows = 0, quiet = 0; windows < mostWindows && quiet < 2; windows++) {
    const [startMs, startNs] = [performance.now(), nowNs]
    await delay(windowMs)
    nowNs = readCpuNs(pid)
    const share = (nowNs - startNs) / 1e6 / (performance.now() - startMs)
    quiet = share < quietShare ? quiet + 1 : 0
  }
  return nowNs
}

function rowsOf(
  contenders: readonly Contender[],
  rounds: readonly (readonly Sum[])[],
  comparison: ShortComparison,
): Row[] {
  const { scenario, figure, reference, control, aimed, aimAtMost } = comparison
  const processesOf = (label: string): (readonly Sum[])[] =>
    rounds.filter((_, index) => contenders[index]!.label === label)
  return [...new Set(contenders.map(({ label }) => label))].map((gateway) => {
    const processes = processesOf(gateway)
    const values = processes.flat().map(({ amount, count }) => amount / count)
    const row = { scenario, figure, gateway, values }
    if (gateway === reference) return row
    const { ratio, from, to } = ratioOfSums(processes, processesOf(reference))
    const aim = { text: `≤ ${aimAtMost.toFixed(2)} × ${reference}`, isMet: ratio <= aimAtMost }
    return {
      ...row,
      ratioTo: reference,
      ratios: [ratio],
      ...(gateway === control || (aimed ?? gateway) !== gateway ? {} : { aim }),
      remark: `95% of bootstrap ratios ${from.toFixed(3)}–${to.toFixed(3)}`,
    }
  })
}
