import { expect, test } from 'vitest'
import type { Conversation, Usage } from '../../../src/domain/conversation.ts'
import type { Lane } from '../../../src/gateway/lanes/lane.ts'
import type { CallTarget } from '../../../src/gateway/ports.ts'
import { AttemptBill } from '../../../src/gateway/request/attempt-bill.ts'
import { ManualClock } from '../manual-clock.ts'

test.each(['timeout', 'reset', 'cancelled', 'broken'] as const)(
  'after %s, the cost is only uncertain if the provider had not rejected the call (contract 42.8)',
  (outcome) => {
    const bill = new AttemptBill({} as CallTarget, new ManualClock(), { stream: false, conversation: undefined })
    expect(bill.costFor({ outcome })).toMatchObject({ amount: 0n, isEstimated: false })
    bill.sent(100)
    expect(bill.costFor({ outcome })).toMatchObject({ amount: 0n, isEstimated: true })
    expect(bill.costFor({ outcome, status: 408 })).toMatchObject({ amount: 0n, isEstimated: false })
    bill.rejected()
    expect([bill.isFree, bill.costFor({ outcome })]).toMatchObject([true, { isEstimated: false }])
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
  expect([bill.isFree, bill.costFor({ outcome: 'cancelled' })]).toMatchObject([isFree, { isEstimated: !isFree }])
})

test.each<[Partial<Lane>, unknown]>([
  [{}, { hasInput: false, effort: 'high', countsReasoning: false }],
  [{ usage: usageFrom('estimated') }, { hasInput: true, effort: 'high', countsReasoning: false }],
  [{ usage: usageFrom('estimated', 7) }, { hasInput: true, effort: 'high', countsReasoning: true }],
  [{ usage: usageFrom('counted') }, undefined],
  [{ finished: true }, undefined],
])('an estimate is that of an answer that broke off, unless it is complete: %j', (members, cut) => {
  const conversation = { turns: [], tools: [], sampling: {}, hints: {}, reasoning: { effort: 'high' } }
  const options = { stream: true, conversation: conversation as unknown as Conversation }
  const bill = new AttemptBill({} as CallTarget, new ManualClock(), options)
  expect(bill.cut).toBeUndefined()
  bill.sent(100)
  bill.accepted({ estimatedTokens: 3, hasContent: true, finished: false, usage: undefined, ...members } as Lane)
  expect(bill.cut).toEqual(cut)
  bill.close()
  expect(bill.cut).toEqual(cut)
})

function usageFrom(source: Usage['source'], reasoningTokens = 0): Usage {
  return { inputTokens: 10, outputTokens: reasoningTokens, cachedTokens: 0, reasoningTokens, source }
}
