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
/** The engine optimizes code for large bodies only after more than ten seconds. All loads use the same process. */
const firstWarmUps = 4
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

/** Agents send streams. An answer of 1 kB in one piece is the least that a request can cost otherwise. */
const loads: readonly AgentLoad[] = [
  { format: 'messages', size: 'small', isStreamed: true },
  { format: 'messages', size: 'Codex', isStreamed: true },
  { format: 'messages', size: 'Claude Code', isStreamed: true },
  { format: 'responses', size: 'small', isStreamed: true },
  { format: 'responses', size: 'Codex', isStreamed: true },
  { format: 'responses', size: 'Claude Code', isStreamed: true },
  { format: 'messages', size: 'Codex', isStreamed: false },
  { format: 'responses', size: 'Codex', isStreamed: false },
]

/** What sessions and cache marks cost in the turns of an agent, compared with the same process without them. */
export async function measureAgents(bench: Bench): Promise<Row[]> {
  let gateway: Gateway
  try {
    gateway = await bench.startFresh('svc-router, Claude')
  } catch (error) {
    bench.note(scenario, 'svc-router', error)
    return []
  }
  await using started = new AsyncDisposableStack()
  started.defer(() => gateway.stop())
  const rows: Row[] = []
  for (const [index, load] of loads.entries()) {
    const values = await measureLoad(bench, gateway, load, index === 0 ? firstWarmUps : 1)
    const how = load.format === 'messages' ? 'relayed' : 'translated'
    const figure = `CPU µs/${how} turn, ${load.size}, ${load.isStreamed ? 'streamed' : 'whole'}`
    const comparison = { scenario, figure, values, reference: plain, remarks: minima(values) }
    rows.push(...compare({ ...comparison, aimOthersAtMost: aimAtMost }))
  }
  return rows
}

/** Both kinds of turns go to one process in the same rounds: two processes of one program differ by up to 25 %. */
async function measureLoad(bench: Bench, gateway: Gateway, { format, size, isStreamed }: AgentLoad, warmUps: number) {
  const mode: UpstreamMode = isStreamed ? { name: 'burst', events: 200 } : { name: 'whole', bodyBytes: 1024 }
  const contenders: Contender[] = []
  for (const label of [plain, 'with both']) {
    const kind = `agent ${format} ${size}${isStreamed ? ' streamed' : ''}${label === plain ? ' plain' : ''}` as const
    const contender = await enterOne(bench, scenario, { label, gateway, kind, mode, warm: true, warmUps })
    if (contender !== undefined) contenders.push(contender)
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
