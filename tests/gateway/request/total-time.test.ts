import { expect, test } from 'vitest'
import type { ModelRequest } from '../../../src/gateway/ports.ts'
import { shownSeconds, totalMsOf } from '../../../src/gateway/request/total-time.ts'

test.each([
  [0.01, 0.1],
  [0.5, 0.5],
  [0.9, 0.8],
  [1, 0.9],
  [2, 2],
  [600, 599],
])('a client that states a limit of %s s reads that the answer was not complete within %s s', (stated, shown) => {
  expect(shownSeconds(totalMsOf({ timeoutMs: stated * 1000 } as ModelRequest, []))).toBe(shown)
})
