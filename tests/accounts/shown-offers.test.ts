import { expect, test } from 'vitest'
import { OfferCache } from '../../src/accounts/billing/offer-cache.ts'
import { BillingFailure } from '../../src/accounts/billing/ports.ts'
import type { Offer } from '../../src/domain/billing.ts'
import { ManualClock } from '../gateway/manual-clock.ts'

const offers: readonly Offer[] = [{ planId: 'pro', price: null }]

test('a slow payment provider delays callers by at most a second, and is called once', async () => {
  const clock = new ManualClock()
  const asked: PromiseWithResolvers<readonly Offer[]>[] = []
  const billing = {
    offers() {
      asked.push(Promise.withResolvers())
      return asked.at(-1)!.promise
    },
  }
  const shown = new OfferCache({ billing, clock, log: () => {} })
  const first = shown.read()
  await clock.advance(1_000)
  expect(await first).toEqual([])
  expect(await shown.read(), 'later callers do not wait').toEqual([])
  expect(asked.length).toBe(1)
  asked[0]!.resolve(offers)
  await new Promise(setImmediate)
  const later = shown.read()
  asked[1]!.resolve(offers)
  expect(await later).toEqual(offers)
})

test('a failed payment provider is not called for 30 seconds, and the last prices are shown', async () => {
  const clock = new ManualClock()
  let asked = 0
  const events: string[] = []
  const billing = {
    async offers() {
      asked += 1
      if (asked > 1) throw new BillingFailure('unreachable')
      return offers
    },
  }
  const shown = new OfferCache({ billing, clock, log: ({ event }) => events.push(event) })
  for (let read = 0; read < 5; read++) expect(await shown.read()).toEqual(offers)
  expect([asked, events]).toEqual([2, ['billing_failing']])
  await clock.advance(30_000)
  await shown.read()
  expect(asked).toBe(3)
})
