import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openCheckout } from '../../src/accounts/billing/checkout.ts'
import { checkDue } from '../../src/accounts/billing/checks.ts'
import { checkIdleEveryMs } from '../../src/accounts/billing/refresh.ts'
import type { FakeCustomer } from '../../src/simulation/stripe/state.ts'
import type { OutgoingEvent } from '../../src/simulation/stripe/webhook-outbox.ts'
import { createStore, type Store } from '../../src/storage/store.ts'
import { enginesFor } from '../contract/engines.ts'
import { casesOf } from '../long-run.ts'
import { Chance } from './chance.ts'
import { actAtRandom, rightPlan } from './histories.ts'
import { graceMs, StripeWorld } from './stripe-world.ts'

const histories = casesOf({ sample: 24, all: 60 })
const pages = { returnUrl: 'http://127.0.0.1/billing', cancelUrl: 'http://127.0.0.1/billing/upgrade' }

describe.each(enginesFor('billing over HTTP'))(
  "Stripe's library against the fake Stripe, stored in %s",
  (_, engine) => {
    let store: Store
    let world: StripeWorld

    beforeAll(() => engine.start())
    afterAll(() => engine.stop())
    beforeEach(async () => {
      store = createStore(await (await engine.fresh())())
      world = await StripeWorld.start(store, 'hold')
    })
    afterEach(async () => {
      await world.stop()
      await store.close()
    })

    test(`${histories} customers whose webhooks are shuffled, duplicated, and dropped end on the plan that they pay for`, async () => {
      const chance = new Chance(7)
      const customers: { readonly accountId: string; readonly customer: FakeCustomer }[] = []
      for (let index = 0; index < histories; index++) {
        const { id: accountId } = await world.addAccount(`customer ${index}`)
        expect(await openCheckout(world.accountsDeps, accountId, 'pro', pages)).toMatchObject({ kind: 'checkout' })
        const record = await store.billing.findBilling(accountId)
        customers.push({ accountId, customer: world.double.customer(record?.customerId ?? '')! })
      }
      const statuses = new Set<number>()
      let held: OutgoingEvent[] = []
      for (let round = 0; round < 6; round++) {
        // All customers share one clock, so advance it in small steps.
        for (const { customer } of customers) actAtRandom(world.double, customer, chance, (ms) => world.pass(ms / 10))
        for (const event of world.server.outbox.take()) {
          if (chance.isBelow(0.4)) continue
          held.push(event)
          if (chance.isBelow(0.2)) held.push(event)
        }
        held = chance.shuffled(held)
        const sent = held.splice(0, chance.below(held.length + 1))
        for (const status of await Promise.all(sent.map((event) => world.server.outbox.send(event))))
          statuses.add(status)
      }
      for (const status of statuses) expect([200, 503]).toContain(status)
      expect(statuses.has(200)).toBe(true)
      world.pass(checkIdleEveryMs + 60_000)
      while ((await checkDue(world.accountsDeps)) > 0);
      const ends = new Set<string>()
      for (const { accountId, customer } of customers) {
        const right = rightPlan(world.double, customer.id, graceMs)
        ends.add(right)
        expect(await world.planOf(accountId), accountId).toBe(right)
      }
      expect([...ends].toSorted()).toEqual(['free', 'max', 'pro'])
      expect(world.events.filter(({ event }) => event === 'store_failing')).toEqual([])
    })
  },
)
