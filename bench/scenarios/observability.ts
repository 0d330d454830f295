import type { Bench } from '../bench.ts'
import type { Gateway } from '../gateways.ts'
import { type Contender, enterOne } from '../rounds.ts'
import type { Row } from '../rows.ts'
import { compareInShortRounds } from './short-rounds.ts'

const scenario = 'observability'
/** The reference first. */
const names = ['svc-router', 'svc-router +metrics', 'svc-router +metrics +traces'] as const
/** Of each: two processes of the same program differ by up to 25 %, for as long as they run. */
const processes = 4
const aimAtMost = 1.03
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
  for (const { kind, mode, figure, connections } of loads) {
    const contenders: Contender[] = []
    for (const gateway of gateways) {
      const contender = await enterOne(bench, scenario, { label: gateway.name, gateway, kind, mode, warm: true })
      if (contender !== undefined) contenders.push(contender)
    }
    const comparison = { scenario, figure, connections, reference: names[0], aimAtMost }
    rows.push(...(await compareInShortRounds(bench, contenders, comparison)))
  }
  return rows
}
