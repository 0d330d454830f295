import type { Bench } from '../bench.ts'
import type { Row } from '../rows.ts'
import { compareSettings } from './settings.ts'

const names = ['svc-router, Claude, cache off', 'svc-router, Claude'] as const
const aimAtMost = 1.05
const mode = { name: 'whole', bodyBytes: 1024 } as const
const loads = [
  { kind: 'agent-messages', mode, figure: 'CPU µs/relayed turn of 20 kB', connections: 32 },
  { kind: 'agent-responses', mode, figure: 'CPU µs/translated turn of 20 kB', connections: 32 },
] as const

/** What sessions and cache marks cost in the turns of an agent, compared with the same program without them. */
export async function measureAgents(bench: Bench): Promise<Row[]> {
  return await compareSettings(bench, { scenario: 'agents', names, loads, aimAtMost })
}
