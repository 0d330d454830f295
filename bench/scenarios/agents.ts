import type { Bench } from '../bench.ts'
import type { AgentFormat, AgentSize } from '../bodies.ts'
import type { Gateway } from '../gateways.ts'
import type { UpstreamMode } from '../protocol.ts'
import { type Contender, enterOne } from '../rounds.ts'
import type { Row } from '../rows.ts'
import { compareInShortRounds } from './short-rounds.ts'

const scenario = 'agents'
const aimAtMost = 1.05
/** The engine optimizes code for large bodies only after more than ten seconds. All loads use the same process. */
const firstWarmUps = 4
const connections = 32
const plain = 'without sessions and marks'
const control = 'without (control)'
/** What the aim is for: sessions are looked up, and prompts are marked. */
const looked = 'with lookup and marks'
/** The default: sessions are also stored for other processes, and the record has the session and why the cache was read. */
const recorded = 'with all records'
/** The profiles' names in the kinds of requests. */
const profiles = { [plain]: ' plain', [control]: ' plain', [looked]: ' unrecorded', [recorded]: '' } as const

/** The signal on which the process writes its sessions, as it does every 250 ms: see `without-sessions.ts`. */
const writeSessions = 'SIGUSR2'

/** How the provider answers: with all events of a stream at once, with one every 20 ms, or in one piece. */
const answers = {
  burst: { name: 'burst', events: 200 },
  paced: { name: 'paced', events: 25, everyMs: 20 },
  whole: { name: 'whole', bodyBytes: 1024 },
} as const satisfies Record<string, UpstreamMode>

interface AgentLoad {
  readonly format: AgentFormat
  readonly size: AgentSize
  readonly answer: keyof typeof answers
}

/**
 * Agents send streams. Real ones are paced, and cost most for their events; one whose events arrive at once is the least that
 * a streamed turn can cost, and an answer of 1 kB in one piece the least that another one can.
 */
const loads: readonly AgentLoad[] = [
  { format: 'messages', size: 'small', answer: 'burst' },
  { format: 'messages', size: 'Codex', answer: 'burst' },
  { format: 'messages', size: 'Claude Code', answer: 'burst' },
  { format: 'responses', size: 'small', answer: 'burst' },
  { format: 'responses', size: 'Codex', answer: 'burst' },
  { format: 'responses', size: 'Claude Code', answer: 'burst' },
  { format: 'messages', size: 'small', answer: 'whole' },
  { format: 'messages', size: 'Codex', answer: 'whole' },
  { format: 'messages', size: 'Claude Code', answer: 'whole' },
  { format: 'responses', size: 'small', answer: 'whole' },
  { format: 'responses', size: 'Codex', answer: 'whole' },
  { format: 'responses', size: 'Claude Code', answer: 'whole' },
  { format: 'messages', size: 'small', answer: 'paced' },
  { format: 'messages', size: 'Codex', answer: 'paced' },
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
  for (const [index, load] of loads.entries())
    rows.push(...(await measureLoad(bench, gateway, load, index === 0 ? firstWarmUps : 1)))
  return rows
}

/** Both kinds of turns go to one process in the same rounds: two processes of one program differ by up to 25 %. */
async function measureLoad(
  bench: Bench,
  gateway: Gateway,
  { format, size, answer }: AgentLoad,
  warmUps: number,
): Promise<Row[]> {
  const mode = answers[answer]
  const contenders: Contender[] = []
  for (const label of [plain, control, looked, recorded] as const) {
    const kind = `agent ${format} ${size}${answer === 'whole' ? '' : ' streamed'}${profiles[label]}` as const
    const contender = await enterOne(bench, scenario, { label, gateway, kind, mode, warm: label !== control, warmUps })
    if (contender !== undefined) contenders.push(contender)
  }
  const how = format === 'messages' ? 'relayed' : 'translated'
  const figure = `CPU µs/${how} turn, ${size}, ${answer}`
  const settle = ({ gateway: { pid } }: Contender): void => void process.kill(pid, writeSessions)
  const comparison = { scenario, figure, connections, reference: plain, control, aimed: looked, aimAtMost, settle }
  return await compareInShortRounds(bench, contenders, comparison)
}
