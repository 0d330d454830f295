import type { Bench } from '../bench.ts'
import type { RequestKind } from '../bodies.ts'
import type { UpstreamMode } from '../protocol.ts'
import { type Contender, enterOne, type Load, maxRequestsPerRun, measure } from '../rounds.ts'
import { compare } from '../rows.ts'
import type { Row } from '../rows.ts'

const saturatedConnections = 128
const burstConnections = 16
const burstEvents = 200
const pacedStreams = 50
const pacedEveryMs = 20
const requestAimAtMost = 1.5
const eventAimAtMost = 2
const peerAimAtLeast = 8

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

function divide(lists: ReadonlyMap<string, readonly number[]>, by: number): Map<string, number[]> {
  return new Map([...lists].map(([label, values]) => [label, values.map((value) => value / by)]))
}
