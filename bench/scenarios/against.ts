import type { Bench } from '../bench.ts'
import type { RequestKind } from '../bodies.ts'
import type { Gateway } from '../gateways.ts'
import type { ScenarioName } from '../options.ts'
import { readThreadCpuNs, type ThreadCpu } from '../proc-stat.ts'
import { programFolder, repository } from '../programs.ts'
import type { UpstreamMode } from '../protocol.ts'
import { enterOne, maxRequestsPerRun } from '../rounds.ts'
import type { Row } from '../rows.ts'
import { bootstrapRange, mean, shuffled } from '../statistics.ts'

/** Processes of each program: two processes of the same program differ by up to 25 %, for as long as they run. */
const processesEach = 4
/** The share of a process's rounds that count: the ones that other activity on the machine disturbed least. */
const leastShare = 1 / 4
const roundsFactor = 3
const current = 'current'
const whole = { name: 'whole', bodyBytes: 1024 } as const
const loads: readonly AnyLoad[] = [
  { scenario: 'whole-1k', kind: 'chat', mode: whole, connections: 128, runMs: 600 },
  { scenario: 'whole-8k', kind: 'chat', mode: { name: 'whole', bodyBytes: 8192 }, connections: 128, runMs: 600 },
  { scenario: 'in-flight-32', kind: 'chat', mode: whole, connections: 32, runMs: 600 },
  { scenario: 'burst', kind: 'chat-stream', mode: { name: 'burst', events: 200 }, connections: 16, runMs: 600 },
  {
    scenario: 'paced',
    kind: 'chat-stream',
    mode: { name: 'paced', events: 50, everyMs: 20 },
    connections: 50,
    runMs: 1500,
  },
  { scenario: 'latency', kind: 'chat', mode: whole, perSecond: 300, runMs: 1000 },
]

type AnyLoad = {
  readonly scenario: ScenarioName
  readonly kind: RequestKind
  readonly mode: UpstreamMode
  readonly runMs: number
} & ({ readonly connections: number } | { readonly perSecond: number })

interface Process {
  readonly label: string
  readonly gateway: Gateway
  leastBytes: number
  /** Per answer, in each round. */
  readonly rounds: ThreadCpu[]
}

/** The CPU per answer of this program and of others, which are other commits of it, in turns and in random order. */
export async function measureAgainst(bench: Bench): Promise<Row[]> {
  await using started = new AsyncDisposableStack()
  const programs = new Map([[current, programFolder(repository)]])
  for (const place of bench.options.against) programs.set(place, programFolder(place))
  const processes: Process[] = []
  // The first start after the sources change fills the cache of compiled sources, which takes CPU long after it.
  for (const program of programs.values()) await (await bench.startFresh('svc-router', { program })).stop()
  for (let number = 0; number < processesEach; number++) {
    for (const [label, program] of programs) {
      const gateway = await bench.startFresh('svc-router', { program })
      started.defer(() => gateway.stop())
      processes.push({ label, gateway, leastBytes: 0, rounds: [] })
    }
  }
  const rows: Row[] = []
  for (const load of loads.filter(({ scenario }) => bench.options.scenarios.includes(scenario)))
    rows.push(...(await measureLoad(bench, processes, load)))
  return rows
}

async function measureLoad(bench: Bench, processes: readonly Process[], load: AnyLoad): Promise<Row[]> {
  for (const entry of processes) {
    const { label, gateway } = entry
    const contender = { label, gateway, kind: load.kind, mode: load.mode, warm: true }
    const entered = await enterOne(bench, load.scenario, contender)
    if (entered === undefined) return []
    entry.leastBytes = entered.leastBytes
    entry.rounds.length = 0
  }
  for (let round = 0; round < bench.options.rounds * roundsFactor; round++) {
    for (const entry of shuffled(processes)) {
      try {
        entry.rounds.push(await runOnce(bench, entry, load))
      } catch (error) {
        bench.note(load.scenario, entry.label, error)
      }
    }
  }
  return compareThreads(load.scenario, processes)
}

async function runOnce(bench: Bench, { gateway, leastBytes }: Process, load: AnyLoad): Promise<ThreadCpu> {
  const target = gateway.target(load.kind)
  const durationMs = load.runMs
  const before = readThreadCpuNs(gateway.pid)
  const { answers } = await bench.run(
    'perSecond' in load
      ? { do: 'open', target, durationMs, perSecond: load.perSecond }
      : { do: 'closed', target, durationMs, connections: load.connections, maxRequests: maxRequestsPerRun },
    leastBytes,
  )
  const after = readThreadCpuNs(gateway.pid)
  const us = (part: keyof ThreadCpu): number => (after[part] - before[part]) / 1000 / answers
  return { all: us('all'), main: us('main') }
}

function compareThreads(scenario: ScenarioName, processes: readonly Process[]): Row[] {
  const labels = [...new Set(processes.map(({ label }) => label))]
  const own = (label: string, part: keyof ThreadCpu): number[] =>
    processes
      .filter((entry) => entry.label === label)
      .map(({ rounds }) => leastMean(rounds.map((round) => round[part])))
  const reference = own(current, 'all')
  return labels.map((label) => {
    const values = own(label, 'all')
    const mainThread = `mean ${mean(values).toFixed(1)}, main thread ${mean(own(label, 'main')).toFixed(1)}`
    const row = { scenario, figure: 'CPU µs/answer', gateway: label, values }
    if (label === current) return { ...row, remark: mainThread }
    const [from, to] = bootstrapRange(reference, values)
    const ratio = mean(reference) / mean(values)
    const remark = `${current} / ${label} ${ratio.toFixed(2)} (${from.toFixed(2)}–${to.toFixed(2)}); ${mainThread}`
    return { ...row, remark }
  })
}

/** The mean of the least values. */
function leastMean(values: readonly number[]): number {
  const counted = Math.max(1, Math.round(values.length * leastShare))
  return mean(values.toSorted((a, b) => a - b).slice(0, counted))
}
