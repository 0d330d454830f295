import type { Bench } from '../bench.ts'
import type { RequestKind } from '../bodies.ts'
import type { Gateway } from '../gateways.ts'
import { readCpuUs } from '../proc-stat.ts'
import type { UpstreamMode } from '../protocol.ts'
import { compare } from '../rows.ts'
import type { Comparison, Row } from '../rows.ts'
import { median } from '../statistics.ts'

const saturatedConnections = 128
const burstConnections = 16
const burstEvents = 200
const pacedStreams = 50
const pacedEveryMs = 20
const maxRequestsPerRun = 100_000
const requestAimAtMost = 1.5
const eventAimAtMost = 2
const peerAimAtLeast = 8
const observedAimAtMost = 1.03

/** One participant of a round: a gateway with one kind of request. `label` is its name in the report. */
interface Contender {
  readonly label: string
  readonly gateway: Gateway
  readonly kind: RequestKind
  readonly leastBytes: number
}

interface Load {
  readonly scenario: string
  readonly rounds: number
  readonly connections: number
  readonly maxRequests: number
  readonly durationMs: number
}

/** CPU per request for whole answers of `bodyBytes` bytes. Each connection sends its next request after an answer. */
export async function measureWhole(
  bench: Bench,
  scenario: string,
  bodyBytes: number,
  connections = saturatedConnections,
): Promise<Row[]> {
  const mode = { name: 'whole', bodyBytes } as const
  const contenders = await enter(bench, scenario, 'chat', mode)
  const load = saturating(bench, scenario, connections)
  const comparison = await measure(bench, contenders, load)
  const aims = { aimAtMost: requestAimAtMost, aimPeerAtLeast: peerAimAtLeast }
  return compare({ ...comparison, figure: 'CPU µs/request', ...aims })
}

/** CPU per stream and per event if all events of a stream arrive at once. */
export async function measureBurst(bench: Bench): Promise<Row[]> {
  const mode = { name: 'burst', events: burstEvents } as const
  const contenders = await enter(bench, 'burst', 'chat-stream', mode)
  const comparison = await measure(bench, contenders, saturating(bench, 'burst', burstConnections))
  const perEvent = divide(comparison.values, burstEvents)
  const aims = { aimAtMost: eventAimAtMost, aimPeerAtLeast: peerAimAtLeast }
  return [
    ...compare({ ...comparison, figure: 'CPU µs/stream of 200' }),
    ...compare({ ...comparison, figure: 'CPU µs/event', values: perEvent, ...aims, remarks: new Map() }),
  ]
}

/** CPU per event if events arrive one by one. */
export async function measurePaced(bench: Bench): Promise<Row[]> {
  const events = bench.options.pacedEvents
  const mode = { name: 'paced', events, everyMs: pacedEveryMs } as const
  // Paced streams are too slow for a warm-up, so use bursts.
  await enter(bench, 'paced', 'chat-stream', { name: 'burst', events: burstEvents })
  const contenders = await enter(bench, 'paced', 'chat-stream', mode, { warm: false })
  const durationMs = events * pacedEveryMs + 1000
  const rounds = bench.options.longRounds
  const load = { scenario: 'paced', rounds, connections: pacedStreams, maxRequests: pacedStreams, durationMs }
  const comparison = await measure(bench, contenders, load)
  const values = divide(comparison.values, events)
  return compare({ ...comparison, figure: 'CPU µs/event', values, aimAtMost: eventAimAtMost })
}

/**
 * The cost of translation: a Responses client with a chat provider, compared with svc-router's relay of the same
 * stream.
 */
export async function measureTranslate(bench: Bench): Promise<Row[]> {
  const gateway = (await bench.shared()).find(({ name }) => name === 'svc-router')
  if (gateway === undefined) return []
  const mode = { name: 'burst', events: burstEvents } as const
  const lanes = [
    ['svc-router relay', 'chat-stream'],
    ['svc-router translate', 'responses-stream'],
  ] as const
  const contenders: Contender[] = []
  for (const [label, kind] of lanes) {
    const contender = await enterOne(bench, 'translate', { label, gateway, kind, mode, warm: true })
    if (contender !== undefined) contenders.push(contender)
  }
  const comparison = await measure(bench, contenders, saturating(bench, 'translate', burstConnections))
  const values = divide(comparison.values, burstEvents)
  return compare({ ...comparison, figure: 'CPU µs/event', values, reference: 'svc-router relay' })
}

/** What metrics and traces cost, compared with the same program without them in the same rounds. */
export async function measureObserved(bench: Bench): Promise<Row[]> {
  const names = ['svc-router', 'svc-router +metrics', 'svc-router +metrics +traces'] as const
  const loads = [
    {
      kind: 'chat',
      mode: { name: 'whole', bodyBytes: 1024 },
      figure: 'CPU µs/request',
      connections: saturatedConnections,
    },
    {
      kind: 'chat-stream',
      mode: { name: 'burst', events: burstEvents },
      figure: 'CPU µs/stream of 200',
      connections: burstConnections,
    },
  ] as const
  const rows: Row[] = []
  for (const { kind, mode, figure, connections } of loads) {
    const contenders: Contender[] = []
    for (const gateway of await bench.only(names)) {
      const contender = await enterOne(bench, 'observed', { label: gateway.name, gateway, kind, mode, warm: true })
      if (contender !== undefined) contenders.push(contender)
    }
    const comparison = await measure(bench, contenders, saturating(bench, 'observed', connections))
    rows.push(...compare({ ...comparison, figure, reference: 'svc-router', aimObservedAtMost: observedAimAtMost }))
  }
  return rows
}

function saturating(bench: Bench, scenario: string, connections: number): Load {
  const { rounds, runMs } = bench.options
  return { scenario, rounds, connections, maxRequests: maxRequestsPerRun, durationMs: runMs }
}

async function enter(
  bench: Bench,
  scenario: string,
  kind: RequestKind,
  mode: UpstreamMode,
  options: { readonly warm: boolean } = { warm: true },
): Promise<Contender[]> {
  const contenders: Contender[] = []
  for (const gateway of await bench.shared(kind === 'chat' && bench.options.floor ? ['floor'] : [])) {
    const entry = { label: gateway.name, gateway, kind, mode, warm: options.warm }
    const contender = await enterOne(bench, scenario, entry)
    if (contender !== undefined) contenders.push(contender)
  }
  return contenders
}

type Entry = Omit<Contender, 'leastBytes'> & { readonly mode: UpstreamMode; readonly warm: boolean }

/** Checks one answer and warms the gateway up. If that fails, reports it and returns undefined. */
async function enterOne(bench: Bench, scenario: string, entry: Entry): Promise<Contender | undefined> {
  const { label, gateway, kind, mode, warm } = entry
  try {
    await bench.setMode(mode)
    const leastBytes = await bench.check(gateway, kind, mode)
    const durationMs = bench.options.warmUpMs
    const target = gateway.target(kind)
    const load = { connections: burstConnections, maxRequests: maxRequestsPerRun, durationMs }
    if (warm) await bench.run({ do: 'closed', target, ...load }, leastBytes)
    return { label, gateway, kind, leastBytes }
  } catch (error) {
    bench.note(scenario, label, error)
    return undefined
  }
}

/** Microseconds of CPU per answer in each round. Every round measures each contender once. */
async function measure(bench: Bench, entered: readonly Contender[], load: Load): Promise<Omit<Comparison, 'figure'>> {
  const values = new Map<string, number[]>()
  const loads = new Map<string, number[]>()
  let contenders = [...entered]
  for (let round = 0; round < load.rounds; round++) {
    for (const contender of contenders) {
      try {
        const { cpuUs, elapsedMs, answers } = await runOnce(bench, contender, load)
        append(values, contender.label, cpuUs / answers)
        append(loads, contender.label, cpuUs / 1000 / elapsedMs)
      } catch (error) {
        bench.note(load.scenario, contender.label, error)
        values.delete(contender.label)
        contenders = contenders.filter((other) => other !== contender)
      }
    }
  }
  const remarks = new Map(
    [...loads].map(([label, shares]) => [label, `core ${Math.round(median(shares) * 100)}% busy`]),
  )
  return { scenario: load.scenario, values, reference: 'relay', remarks }
}

async function runOnce(bench: Bench, contender: Contender, load: Load) {
  const { connections, maxRequests, durationMs } = load
  const target = contender.gateway.target(contender.kind)
  const before = readCpuUs(contender.gateway.pid)
  const command = { do: 'closed', target, connections, maxRequests, durationMs } as const
  const { answers, elapsedMs } = await bench.run(command, contender.leastBytes)
  return { cpuUs: readCpuUs(contender.gateway.pid) - before, elapsedMs, answers }
}

function append(lists: Map<string, number[]>, label: string, value: number): void {
  const list = lists.get(label) ?? []
  list.push(value)
  lists.set(label, list)
}

function divide(lists: ReadonlyMap<string, readonly number[]>, by: number): Map<string, number[]> {
  return new Map([...lists].map(([label, values]) => [label, values.map((value) => value / by)]))
}
