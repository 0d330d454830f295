import { expect, test } from 'vitest'
import { isLongRun } from '../long-run.ts'
import { Outage, type Failure } from './outages.ts'

/** The longest interval between two probes of a backend (contract 8.5). */
const probeIntervalMs = 30_000
/**
 * How the backends fail, for how many seconds, and requests per second. With little traffic, half-open circuit breakers
 * are a large share of the choices. A backend that hangs is noticed after 10 s, so requests of the first 30 s wait for
 * several of them.
 */
const outages: readonly (readonly [Failure, number, number])[] = [
  ['refuses', 60, 8],
  ['errs', 60, 8],
  ['limits', 60, 8],
  ['refuses', 300, 1],
  ['errs', 300, 1],
  ['limits', 300, 1],
  ...(isLongRun ? ([['hangs', 300, 8]] as const) : []),
]

test.each(outages)(
  'while each of three backends %s for %i s, with %i requests per second, one causes at most 1.2 calls and gets one clear error, and recovery is noticed',
  async (failure, seconds, perSecond) => {
    const outageMs = seconds * 1_000
    const outage = new Outage(1, outageMs, { failures: [failure], backends: 3, fusions: 0 })
    await outage.run([
      { fromMs: 0, toMs: outageMs, count: seconds * perSecond },
      { fromMs: outageMs, toMs: outageMs + probeIntervalMs, count: 60 },
    ])
    const during = outage.seen.filter(({ beganMs }) => beganMs < outage.recoveryMs)
    const callsPerRequest = outage.calls / during.length
    process.stdout.write(`${failure}, ${perSecond} per second: ${callsPerRequest.toFixed(3)} calls per request\n`)
    expect(callsPerRequest).toBeLessThanOrEqual(1.2)
    const after = outage.seen.filter(({ beganMs, ok }) => beganMs >= outage.recoveryMs && ok)
    expect(Math.min(...after.map(({ beganMs }) => beganMs)) - outage.recoveryMs).toBeLessThan(probeIntervalMs)
    if (failure === 'hangs') return
    for (const { error, beganMs, endedMs } of during) {
      // A request that was sent just before the recovery can still be answered.
      if (error === undefined) expect(beganMs).toBeGreaterThan(outage.recoveryMs - 3_000)
      else expect([error.code, error.facts.retryAfterSeconds! >= 1]).toEqual(['server_is_overloaded', true])
      expect(endedMs - beganMs).toBeLessThan(5_000)
    }
  },
  120_000,
)
