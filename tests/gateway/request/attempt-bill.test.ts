import { expect, test } from 'vitest'
import type { CallTarget } from '../../../src/gateway/ports.ts'
import { AttemptBill } from '../../../src/gateway/request/attempt-bill.ts'
import { ManualClock } from '../manual-clock.ts'

test.each(['timeout', 'reset', 'cancelled'] as const)(
  'after %s, the cost is only uncertain if the provider had not rejected the call (contract 42.8)',
  (outcome) => {
    const bill = new AttemptBill({} as CallTarget, new ManualClock(), { stream: false, conversation: undefined })
    expect(bill.costFor({ outcome })).toMatchObject({ amount: 0n, isEstimated: false })
    bill.sent(100)
    expect(bill.costFor({ outcome })).toMatchObject({ amount: 0n, isEstimated: true })
    expect(bill.costFor({ outcome, status: 408 })).toMatchObject({ amount: 0n, isEstimated: false })
    bill.rejected()
    expect([bill.isFree, bill.costFor({ outcome }).isEstimated]).toEqual([true, false])
  },
)

test.each([
  [false, true],
  [true, false],
  [undefined, false],
])('a call of which it is known that it was sent: %s, costs nothing: %s', (isSent, isFree) => {
  const bill = new AttemptBill({} as CallTarget, new ManualClock(), { stream: false, conversation: undefined })
  expect(bill.isFree).toBe(true)
  bill.sent(100)
  expect(bill.isFree).toBe(false)
  bill.close(isSent)
  expect([bill.isFree, bill.costFor({ outcome: 'cancelled' }).isEstimated]).toEqual([isFree, !isFree])
})
