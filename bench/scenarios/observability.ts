import type { Bench } from '../bench.ts'
import type { Gateway } from '../gateways.ts'
import { type Contender, enterOne } from '../rounds.ts'
import type { Row } from '../rows.ts'
import { compareInShortRounds } from './short-rounds.ts'

const scenario = 'observability'
/** What is turned on in a process. */
const observed = ['svc-router +metrics', 'svc-router +metrics +traces'] as const
/** Of each: in a process that is slow for as long as it runs, everything is. */
const processes = 3
const aimAtMost = 1.03
const burstEvents = 200
const plain = 'without them'
const control = 'without (control)'
/** The signal on which a process exports its spans: see `without-observers.ts`. */
const exportSpans = 'SIGUSR2'
const loads = [
  { kind: 'chat', mode: { name: 'whole', bodyBytes: 1024 }, figure: 'CPU µs/request', connections: 128 },
  {
    kind: 'chat-stream',
    mode: { name: 'burst', events: burstEvents },
    figure: 'CPU µs/stream of 200',
    connections: 16,
  },
] as const

/**
 * What metrics and traces cost: requests to a profile that they skip, and to one that they do not, go to one process in
 * the same rounds, because two processes of one program differ by up to 25 %.
 */
export async function measureObservability(bench: Bench): Promise<Row[]> {
  const rows: Row[] = []
  for (const name of observed) {
    await using started = new AsyncDisposableStack()
    const gateways: Gateway[] = []
    try {
      for (let index = 0; index < processes; index += 1) {
        const gateway = await bench.startFresh(name)
        started.defer(() => gateway.stop())
        gateways.push(gateway)
      }
    } catch (error) {
      bench.note(scenario, name, error)
      continue
    }
    for (const load of loads) rows.push(...(await measureLoad(bench, gateways, name, load)))
  }
  return rows
}

async function measureLoad(
  bench: Bench,
  gateways: readonly Gateway[],
  name: (typeof observed)[number],
  { kind, mode, figure, connections }: (typeof loads)[number],
): Promise<Row[]> {
  const contenders: Contender[] = []
  for (const gateway of gateways) {
    for (const label of [plain, control, name]) {
      const sent = label === name ? kind : (`${kind} plain` as const)
      const contender = await enterOne(bench, scenario, { label, gateway, kind: sent, mode, warm: label !== control })
      if (contender !== undefined) contenders.push(contender)
    }
  }
  const settle = ({ gateway: { pid } }: Contender): void => void process.kill(pid, exportSpans)
  const comparison = { scenario, figure, connections, reference: plain, control, aimAtMost, settle }
  return await compareInShortRounds(bench, contenders, comparison)
}
