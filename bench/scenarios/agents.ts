import type { Bench } from '../bench.ts'
import type { Row } from '../rows.ts'
import { compareSettings } from './settings.ts'

const names = ['svc-router, Claude, cache off', 'svc-router, Claude'] as const
const aimAtMost = 1.05
/** The engine optimizes code for large bodies only after more than ten seconds. The second load uses the same processes. */
const warmUps = 3
const mode = { name: 'whole', bodyBytes: 1024 } as const
const loads = [
  { kind: 'agent-messages', mode, figure: 'CPU µs/relayed turn of 20 kB', connections: 32, warmUps },
  { kind: 'agent-responses', mode, figure: 'CPU µs/translated turn of 20 kB', connections: 32 },
] as const

/** What sessions and cache marks cost in the turns of an agent, compared with the same program without them. */
export async function measureAgents(bench: Bench): Promise<Row[]> {
  return await compareSettings(bench, { scenario: 'agents', names, loads, aimAtMost, processes: 3 })
}
