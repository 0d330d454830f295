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
  },
)
