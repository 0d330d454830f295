import { expect, test } from 'vitest'
import { headersObject, usageHeaders } from '../../src/http/usage-headers.ts'

const month = { quotaLimit: 10, quotaUsed: 1, quotaRemaining: 9, quotaReset: 1_800_000_000 }

test.each([
  [1_000_000_000_001, 60],
  [1_000_000_000_999, 60],
  [1_000_000_059_500, 2],
  [1_000_000_061_000, 0],
])(
  'at %i, a minute that ends at 1000000061 resets in %i seconds, and never in more than a minute',
  (nowMs, seconds) => {
    const signals = { rateLimit: 5, rateRemaining: 4, rateReset: 1_000_000_061, ...month }
    expect(headersObject(usageHeaders(signals, nowMs))['ratelimit']).toContain(`"minute";r=4;t=${seconds},`)
  },
)
