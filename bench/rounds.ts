import type { Bench } from './bench.ts'
import type { RequestKind } from './bodies.ts'
import type { Gateway } from './gateways.ts'
import { readCpuUs } from './proc-stat.ts'
import type { UpstreamMode } from './protocol.ts'
import type { Comparison } from './rows.ts'
import { median } from './statistics.ts'

export const maxRequestsPerRun = 100_000
const warmUpConnections = 16

/** One participant of a round: a gateway with one kind of request. `label` is its name in the report. */
export interface Contender {
  readonly label: string
  readonly gateway: Gateway
  readonly kind: RequestKind
  readonly leastBytes: number
  /** Other gateways of the same kind that each get as many of the connections, and whose CPU counts, too. */
  readonly besides?: readonly Gateway[]
  /** Instead of the load's. */
  readonly connections?: number
  /** How much longer than the load says its rounds last. */
  readonly times?: number
  /** The process of a database that works for the gateway, whose CPU is counted separately. */
  readonly databasePid?: number
}

export interface Load {
  readonly scenario: string
  readonly rounds: number
  readonly connections: number
  readonly maxRequests: number
  readonly durationMs: number
  /** Instead of the CPU in steps of 10 ms. */
  readonly readCpuUs?: (pid: number) => number
}

type Entry = Omit<Contender, 'leastBytes'> & {
  readonly mode: UpstreamMode
  readonly warm: boolean
  /** How many times the usual warm-up: every worker must see as many requests as one alone, and large bodies are slower. */
  readonly warmUps?: number
}

/** Checks one answer and warms the gateway up. If that fails, reports it and returns undefined. */
export async function enterOne(bench: Bench, scenario: string, entry: Entry): Promise<Contender | undefined> {
  const { mode, warm, warmUps = 1, ...contender } = entry
  const { label, gateway, kind, besides = [] } = contender
  try {
    await bench.setMode(mode)
    const leastBytes = await bench.check(gateway, kind, mode)
    for (const other of besides) await bench.check(other, kind, mode)
    const durationMs = bench.options.warmUpMs * warmUps
    const connections = contender.connections ?? warmUpConnections
    const load = { connections, maxRequests: maxRequestsPerRun, durationMs }
    if (warm) await bench.run({ do: 'closed', ...targetsOf(contender), ...load }, leastBytes)
    return { ...contender, leastBytes }
  } catch (error) {
    bench.note(scenario, label, error)
    return undefined
  }
}

/** The results of all rounds. `databaseValues`: the CPU of the databases, for contenders that have one. */
type Measured = Omit<Comparison, 'figure'> & { readonly databaseValues: ReadonlyMap<string, readonly number[]> }

/**
 * Microseconds of CPU per answer in each round. Every round measures each contender once; contenders with the same label are
 * several processes of one program.
 */
export async function measure(bench: Bench, entered: readonly Contender[], load: Load): Promise<Measured> {
  const values = new Map<string, number[]>()
  const databaseValues = new Map<string, number[]>()
  const loads = new Map<string, number[]>()
  let contenders = [...entered]
  for (let round = 0; round < load.rounds; round++) {
    // In turns forwards and backwards, so that none always runs after the same one.
    for (const contender of round % 2 === 0 ? contenders : contenders.toReversed()) {
      try {
        const { cpuUs, databaseUs, elapsedMs, answers } = await runOnce(bench, contender, load)
        append(values, contender.label, cpuUs / answers)
        if (contender.databasePid !== undefined) append(databaseValues, contender.label, databaseUs / answers)
        append(loads, contender.label, cpuUs / 1000 / elapsedMs)
      } catch (error) {
        bench.note(load.scenario, contender.label, error)
        values.delete(contender.label)
        contenders = contenders.filter(({ label }) => label !== contender.label)
      }
    }
  }
  const remarks = new Map(
    [...loads].map(([label, shares]) => [label, `core ${Math.round(median(shares) * 100)}% busy`]),
  )
  return { scenario: load.scenario, values, databaseValues, reference: 'relay', remarks }
}

async function runOnce(bench: Bench, contender: Contender, load: Load) {
  const { maxRequests, readCpuUs: readUs = readCpuUs } = load
  const durationMs = load.durationMs * (contender.times ?? 1)
  const connections = contender.connections ?? load.connections
  const { gateway, besides = [], databasePid } = contender
  const readGateways = (): number => [gateway, ...besides].reduce((sum, { pid }) => sum + readUs(pid), 0)
  const readDatabase = (): number => (databasePid === undefined ? 0 : readUs(databasePid))
  const [before, databaseBefore] = [readGateways(), readDatabase()]
  const command = { do: 'closed', ...targetsOf(contender), connections, maxRequests, durationMs } as const
  const { answers, elapsedMs } = await bench.run(command, contender.leastBytes)
  const cpuUs = readGateways() - before
  return { cpuUs, databaseUs: readDatabase() - databaseBefore, elapsedMs, answers }
}

function targetsOf({ gateway, besides = [], kind }: Pick<Contender, 'gateway' | 'besides' | 'kind'>) {
  return { target: gateway.target(kind), besides: besides.map((other) => other.target(kind)) }
}

function append(lists: Map<string, number[]>, label: string, value: number): void {
  const list = lists.get(label) ?? []
  list.push(value)
  lists.set(label, list)
}
