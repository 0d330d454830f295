import type { Bench } from '../bench.ts'
import type { Row } from '../rows.ts'
import { compareSettings } from './settings.ts'

const names = ['svc-router', 'svc-router +metrics', 'svc-router +metrics +traces'] as const
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
  return await compareSettings(bench, { scenario: 'observability', names, loads, aimAtMost, processes: 4 })
}
