import { beforeEach, describe, expect, test } from 'vitest'
import type { Amounts } from '../../../src/domain/budgets.ts'
import type { Usage } from '../../../src/domain/conversation.ts'
import type { TokenPrice } from '../../../src/domain/token-price.ts'
import { UpstreamError } from '../../../src/domain/upstream.ts'
import type { CallBill } from '../../../src/gateway/budgets/call-bill.ts'
import { RequestSpending } from '../../../src/gateway/budgets/request-spending.ts'
import type { Backend } from '../../../src/gateway/ports.ts'

/** Picodollars per token. */
const rates = { input: 1_000_000, output: 10_000_000 }
const price: TokenPrice = { rates }
const backend = { id: 'c1', model: 'm', price: { version: 'v', at: () => price } } as unknown as Backend
/** One call with 100 tokens of input and 1,000 of output, in nanodollars and tokens. */
const worst: Amounts = { nanoUsd: 100 * 1_000 + 1_000 * 10_000, tokens: 1_100 }

interface FakeBill extends CallBill {
  isStream: boolean
  isFree: boolean
  isAccepted: boolean
  hasContent: boolean
  hasTier: boolean
  cut: CallBill['cut']
  usage: Usage | undefined
}

let nowMs: number
let rest: number
/** What the budgets answer. */
let more: (missing: Amounts) => Promise<boolean>
let spending: RequestSpending

beforeEach(() => {
  nowMs = 0
  rest = 0
  more = async ({ nanoUsd }) => {
    if (nanoUsd > rest) return false
    rest -= nanoUsd
    return true
  }
  spending = new RequestSpending(
    {
      outputTokens: 1_000,
      more: (missing) => more(missing),
    },
    {
      amounts: worst,
      inUsd: true,
      input: { tokens: 100, images: 0, media: 0, usualMedia: 0, isOpen: false },
      outputTokens: 1_000,
      limitOfBudgets: undefined,
      answers: 1,
      tier: undefined,
      searches: 0,
      isAudioFree: () => false,
      nowMs: () => nowMs,
      monotonicMs: () => nowMs,
    },
  )
})

function billOf(changes: Partial<FakeBill> = {}): FakeBill {
  return {
    isStream: false,
    isFree: false,
    isAccepted: false,
    hasContent: false,
    hasTier: true,
    usage: undefined,
    cut: undefined,
    price,
    ...changes,
  }
}

async function begin(bill: CallBill): Promise<void> {
  await spending.grant(() => {})(backend, undefined, bill)
}

function usage(inputTokens: number, outputTokens: number, source: Usage['source'] = 'counted'): Usage {
  return { inputTokens, outputTokens, cachedTokens: 0, reasoningTokens: 0, source }
}

test.each([401, 408, 429, 500, 502, 503, 529])(
  'a call rejected with %s costs nothing, and its hold pays for the next one',
  async (status) => {
    for (let count = 0; count < 3; count += 1) {
      const bill = billOf()
      await begin(bill)
      spending.ended(bill, new UpstreamError('server_error', { status }))
    }
    expect(spending.spent()).toEqual({ nanoUsd: 0, tokens: 0 })
  },
)

test.each(['timeout', 'cancelled'] as const)(
  'a call that its provider did not get, or had rejected, costs nothing after %s',
  async (outcome) => {
    for (let count = 0; count < 3; count += 1) {
      const bill = billOf()
      await begin(bill)
      bill.isFree = true
      spending.ended(bill, new UpstreamError(outcome))
    }
    expect(spending.spent()).toEqual({ nanoUsd: 0, tokens: 0 })
    const running = billOf({ isFree: true })
    await begin(running)
    expect(spending.spent()).toEqual({ nanoUsd: 0, tokens: 0 })
  },
)

test('a call that was lost stays spent if a second one to the same backend cannot be paid for', async () => {
  const lost = billOf()
  await begin(lost)
  spending.ended(lost, new UpstreamError('reset'))
  const second = billOf()
  await expect(begin(second)).rejects.toMatchObject({ outcome: 'not_sent' })
  spending.ended(second, new UpstreamError('not_sent'))
  expect(spending.spent()).toEqual(worst)
})

test('a call whose grant is checked again takes nothing more', async () => {
  const bill = billOf()
  await begin(bill)
  await begin(bill)
  expect(spending.spent()).toEqual(worst)
  spending.ended(bill, new UpstreamError('not_sent'))
  expect(spending.spent()).toEqual({ nanoUsd: 0, tokens: 0 })
})

test('of two calls to one backend at once, the rejected one is released, and the other one counts', async () => {
  rest = 1e12
  const [lost, rejected] = [billOf(), billOf()]
  await begin(lost)
  await begin(rejected)
  spending.ended(rejected, new UpstreamError('server_error', { status: 500 }))
  expect(spending.spent()).toEqual(worst)
})

test('calls of a fusion are added exactly, with the most that an abandoned one can cost', async () => {
  rest = 1e12
  for (const used of [usage(33, 0), usage(1, 7)])
    await begin(billOf({ isAccepted: true, hasContent: true, usage: used }))
  expect(spending.spent()).toEqual({ nanoUsd: 34_000 + 70_000, tokens: 41 })
  const abandoned = billOf()
  await begin(abandoned)
  spending.ended(abandoned, new UpstreamError('cancelled'))
  expect(spending.spent()).toEqual({ nanoUsd: 104_000 + worst.nanoUsd, tokens: 41 + worst.tokens })
})

describe('a call of a fusion that ends while the budgets are asked for its worst case', () => {
  /** Two calls beyond what is held; the budgets answer the second one with `answer`, after it was canceled. */
  async function endWhileAsked(answer: Promise<boolean>): Promise<void> {
    rest = 1e12
    const running = billOf()
    await begin(running)
    const canceled = billOf({ isFree: true })
    const held = Promise.withResolvers<boolean>()
    more = () => held.promise
    const began = begin(canceled).catch((error: unknown) => error)
    spending.ended(canceled, new UpstreamError('cancelled'))
    held.resolve(answer)
    await began
    more = () => Promise.resolve(false)
  }

  test.each([
    ['with yes', () => Promise.resolve(true), 1],
    ['with no', () => Promise.resolve(false), 0],
    ['with an error', () => Promise.reject(new Error('database')), 0],
  ])('never affects another call, and releases exactly what was taken: answered %s', async (_, answer, free) => {
    await endWhileAsked(answer())
    expect(spending.spent()).toEqual(worst)
    const next = billOf()
    if (free === 0) await expect(begin(next)).rejects.toMatchObject({ outcome: 'not_sent' })
    else await begin(next)
    expect(spending.spent().tokens).toBe((1 + free) * worst.tokens)
    await expect(begin(billOf())).rejects.toMatchObject({ outcome: 'not_sent' })
  })

  test('takes nothing if it is granted only after its end', async () => {
    const canceled = billOf({ isFree: true })
    const given = Promise.withResolvers<void>()
    const granted = spending.grant(() => given.promise)(backend, undefined, canceled)
    spending.ended(canceled, new UpstreamError('cancelled'))
    given.resolve()
    await expect(granted).rejects.toMatchObject({ outcome: 'not_sent' })
    await begin(billOf())
    expect(spending.spent()).toEqual(worst)
  })
})

test('an answer that broke off costs what its record says', async () => {
  const bill = billOf({ isStream: true, isAccepted: true, hasContent: true, usage: usage(20, 5, 'estimated') })
  await begin(bill)
  expect(spending.spent()).toEqual({ nanoUsd: 20_000 + 50_000, tokens: 25 })
})

test('an answer that broke off before its tier was known costs what the most expensive tier costs that may be billed', async () => {
  const cut = { isStream: true, isAccepted: true, hasContent: true }
  const tiers = { flex: 500, priority: 2_000, fast: 6_000 }
  await begin(billOf({ ...cut, hasTier: false, price: { rates, tiers }, usage: usage(20, 5, 'estimated') }))
  expect(spending.spent()).toEqual({ nanoUsd: 2 * (20_000 + 50_000), tokens: 25 })
})

test('a stream that is canceled before content costs its input, and what can be written until 2 s later', async () => {
  spending = new RequestSpending(
    { outputTokens: 100_000, more: () => Promise.resolve(true) },
    {
      amounts: worst,
      inUsd: true,
      input: { tokens: 100, images: 0, media: 0, usualMedia: 0, isOpen: false },
      outputTokens: 100_000,
      limitOfBudgets: 100_000,
      answers: 1,
      tier: undefined,
      searches: 0,
      isAudioFree: () => false,
      nowMs: () => nowMs,
      monotonicMs: () => nowMs,
    },
  )
  const bill = billOf({ isStream: true })
  await begin(bill)
  nowMs += 1_000
  spending.ended(bill, new UpstreamError('cancelled'))
  nowMs += 60_000
  expect(spending.spent()).toEqual({ nanoUsd: 100_000 + 9_000 * 10_000, tokens: 100 + 9_000 })
})

describe('an answer that broke off before its provider counted', () => {
  /** What is spent for a call with this input whose content began after 3 s. */
  async function tokensOf(
    { media = 0, images = 0, ...facts }: Partial<Backend> & { media?: number; images?: number },
    cut: NonNullable<CallBill['cut']>,
    usage_ = usage(20, 5, 'estimated'),
    hasContent = true,
  ): Promise<number> {
    rest = 1e12
    const bill = billOf({ isStream: true, isAccepted: true, hasContent, usage: usage_, cut })
    const input = { tokens: 100 + media, images, media, usualMedia: images * 1_600, isOpen: false }
    await spending.grant(() => {})({ ...backend, ...facts }, input, bill)
    nowMs += 3_000
    spending.ended(bill, undefined)
    nowMs += 60_000
    return spending.spent().tokens
  }
  const cut = { hasInput: false, effort: undefined, countsReasoning: false }
  const reasoning = { capabilities: { reasoning: true } } as const

  test('counts images and files as admission does in addition to text, unless the provider counted the input', async () => {
    const estimated = usage(20 + 3_200, 5, 'estimated')
    expect(await tokensOf({ images: 2 }, cut, estimated)).toBe(20 + 12_000 + 5)
    expect(await tokensOf({ media: 300_000, contextWindow: 128_000 }, cut)).toBe(12_025 + 128_000 + 5)
    expect(await tokensOf({ images: 2 }, { ...cut, hasInput: true })).toBe(140_030 + 25)
  })

  test.each([
    ['by default', reasoning, undefined, 625],
    ['as asked', { ...reasoning, format: 'anthropic-messages' as const }, 'high', 625],
    ['not, because the request turns it off', reasoning, 'none', 25],
    [
      'not, because the request does not ask for it',
      { ...reasoning, format: 'anthropic-messages' as const },
      undefined,
      25,
    ],
    ['never', {}, 'high', 25],
  ])(
    'counts 200 tokens a second until its content began, if the model reasons: %s',
    async (_, facts, effort, tokens) => {
      expect(await tokensOf(facts, { ...cut, effort })).toBe(tokens)
    },
  )

  test('counts the reasoning that its provider counted, and no other, even before content', async () => {
    const counting = { ...cut, countsReasoning: true }
    expect(await tokensOf(reasoning, counting)).toBe(25)
    expect(await tokensOf(reasoning, counting, usage(20, 5, 'estimated'), false)).toBe(50)
  })

  test('counts no more output than the call may have, or was delivered', async () => {
    expect(await tokensOf(reasoning, cut, usage(20, 900, 'estimated'))).toBe(20 + 1_000)
    expect(await tokensOf(reasoning, cut, usage(20, 1_500, 'estimated'))).toBe(1_020 + 20 + 1_500)
  })
})
