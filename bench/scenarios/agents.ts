import type { Bench } from '../bench.ts'
import type { AgentFormat, AgentSize } from '../bodies.ts'
import type { Gateway } from '../gateways.ts'
import { readCpuNs } from '../proc-stat.ts'
import type { UpstreamMode } from '../protocol.ts'
import { type Contender, enterOne, maxRequestsPerRun, measure } from '../rounds.ts'
import { compare, type Row } from '../rows.ts'
import { minima } from './settings.ts'

const scenario = 'agents'
const aimAtMost = 1.05
/** Each answers both kinds of turns in the same rounds: two processes of one program differ by up to 25 %. */
const processes = 2
const connections = 32
/** Short rounds, and twice as many: the machine's speed changes within seconds. */
const roundsFactor = 2
const runShare = 1 / 3
const plain = 'without sessions and marks'

interface AgentLoad {
  readonly format: AgentFormat
  readonly size: AgentSize
  readonly isStreamed: boolean
}

/** The first ones are what agents send. An answer of 1 kB in one piece is the least that a request can cost otherwise. */
const loads: readonly AgentLoad[] = [
  { format: 'messages', size: '25 kB', isStreamed: true },
  { format: 'responses', size: '25 kB', isStreamed: true },
  { format: 'messages', size: '200 kB', isStreamed: true },
  { format: 'messages', size: '3 kB', isStreamed: true },
  { format: 'messages', size: '25 kB', isStreamed: false },
  { format: 'responses', size: '25 kB', isStreamed: false },
]

/** What sessions and cache marks cost in the turns of an agent, compared with the same process without them. */
export async function measureAgents(bench: Bench): Promise<Row[]> {
  await using started = new AsyncDisposableStack()
  const gateways: Gateway[] = []
  try {
    for (let process = 0; process < processes; process++) {
      const gateway = await bench.startFresh('svc-router, Claude')
      started.defer(() => gateway.stop())
      gateways.push(gateway)
    }
  } catch (error) {
    bench.note(scenario, 'svc-router', error)
    return []
  }
  const rows: Row[] = []
  for (const load of loads) {
    const values = await measureLoad(bench, gateways, load)
    const how = load.format === 'messages' ? 'relayed' : 'translated'
    const figure = `CPU µs/${how} turn of ${load.size}, ${load.isStreamed ? 'streamed' : 'whole'}`
    const comparison = { scenario, figure, values, reference: plain, remarks: minima(values) }
    rows.push(...compare({ ...comparison, aimOthersAtMost: aimAtMost }))
  }
  return rows
}

async function measureLoad(bench: Bench, gateways: readonly Gateway[], { format, size, isStreamed }: AgentLoad) {
  const mode: UpstreamMode = isStreamed ? { name: 'burst', events: 200 } : { name: 'whole', bodyBytes: 1024 }
  const contenders: Contender[] = []
  for (const gateway of gateways) {
    for (const label of [plain, 'with both']) {
      const kind = `agent ${format} ${size}${isStreamed ? ' streamed' : ''}${label === plain ? ' plain' : ''}` as const
      const contender = await enterOne(bench, scenario, { label, gateway, kind, mode, warm: true })
      if (contender !== undefined) contenders.push(contender)
    }
  }
  const { rounds, runMs } = bench.options
  const { values } = await measure(bench, contenders, {
    scenario,
    rounds: rounds * roundsFactor,
    connections,
    maxRequests: maxRequestsPerRun,
    durationMs: runMs * runShare,
    readCpuUs: (pid) => readCpuNs(pid) / 1_000,
  })
  return values
}
