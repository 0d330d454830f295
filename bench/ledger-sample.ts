import type { RequestOutcome } from '../src/domain/requests.ts'
import { systemClock } from '../src/runtime/clock.ts'
import { idMinter } from '../src/runtime/ids.ts'
import { systemRandom } from '../src/runtime/random.ts'

/** What the benchmarks of ledgers give every request. */
export const clock = systemClock()
export const mintId = idMinter('req_', () => clock.nowMs(), systemRandom())
export const outcome: RequestOutcome = {
  charged: 1,
  attempts: [
    { backend: 'simulated-a/model', outcome: 'answered', status: 200, ms: 412, upstreamRequestId: 'chatcmpl-1' },
  ],
  usage: { inputTokens: 100, outputTokens: 200, cachedTokens: 0, reasoningTokens: 0, source: 'counted' },
  firstContentMs: 350,
  totalMs: 412,
}
