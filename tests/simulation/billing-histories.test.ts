import { expect, test } from 'vitest'
import type { BillingDeps } from '../../src/accounts/billing/billing-deps.ts'
import { checkDue } from '../../src/accounts/billing/checks.ts'
import type { WebhookAnswer, HandleWebhook } from '../../src/accounts/billing/ports.ts'
import { checkEveryMs } from '../../src/accounts/billing/refresh.ts'
import { createWebhookHandler } from '../../src/accounts/billing/webhook.ts'
import { defaultPlans } from '../../src/domain/plans.ts'
import { advance } from '../../src/simulation/stripe/cycle.ts'
import { createFakeStripe, type FakeEvent } from '../../src/simulation/stripe/fake-stripe.ts'
import { MemoryStore } from '../accounts/memory-store.ts'
import { someRecord } from '../audit-record.ts'
import { Chance } from '../billing/chance.ts'
import { DoubleBilling, doublePrices } from '../billing/fake-stripe-billing.ts'
import { actAtRandom, rightPlan } from '../billing/histories.ts'
import { MemoryBillingStore } from '../billing/memory-billing-store.ts'
import { casesOf } from '../long-run.ts'

const histories = casesOf({ sample: 3_000, all: 10_000 })
const lossless = casesOf({ sample: 500, all: 2_000 })
const graceMs = 7 * 86_400_000
const startMs = Date.UTC(2026, 10, 20)
const customerId = (world: World): string => world.customer.id

/** One history: the fake Stripe, its events, the service, and a scheduler that delays reads. */
class World {
  readonly chance: Chance
  readonly sent: FakeEvent[] = []
  readonly double
  readonly customer
  readonly accounts = new MemoryStore()
  readonly store = new MemoryBillingStore(this.accounts)
  readonly accountsDeps: BillingDeps
  readonly handle: HandleWebhook
  /** Waiting reads, in no particular order. */
  readonly #waiting: (() => void)[] = []
  /** Whether reads wait until they are released. */
  delays = true

  constructor(seed: number) {
    const chance = new Chance(seed)
    this.chance = chance
    this.double = createFakeStripe({
      prices: doublePrices,
      random: (count) => chance.bytes(count),
      whenUnpaid: chance.pick(['canceled', 'unpaid', 'past_due'] as const),
      onEvent: (event) => void this.sent.push(event),
      nowMs: startMs,
    })
    this.customer = this.double.createCustomer('Ada', {})
    const waits = (): Promise<void> =>
      this.delays ? new Promise((resolve) => void this.#waiting.push(resolve)) : Promise.resolve()
    this.accountsDeps = {
      accounts: this.accounts,
      store: this.store,
      billing: new DoubleBilling(this.double, waits),
      clock: {
        nowMs: () => this.double.state.nowMs,
        monotonicMs: () => this.double.state.nowMs,
        after: () => ({ cancel: () => {} }),
      },
      random: (count) => chance.bytes(count),
      plans: defaultPlans,
      defaultPlan: 'free',
      graceMs,
      log: () => {},
    }
    this.handle = createWebhookHandler(this.accountsDeps)
  }

  async begin(): Promise<void> {
    await this.accounts.addAccount(
      {
        id: 'acc_1',
        name: 'Ada',
        planId: 'free',
        suspended: false,
        createdAtMs: startMs,
      },
      someRecord(),
    )
    await this.store.linkCustomer('acc_1', this.customer.id, startMs)
  }

  deliver(event: FakeEvent): Promise<WebhookAnswer> {
    return this.handle(Buffer.from(JSON.stringify(event)), { get: () => 'signed' })
  }

  /** Releases a random waiting read. */
  async release(): Promise<void> {
    const [next] = this.#waiting.splice(this.chance.below(this.#waiting.length), 1)
    next?.()
    await settled()
  }

  get isWaiting(): boolean {
    return this.#waiting.length > 0
  }

  get plan(): string | undefined {
    return this.accounts.accounts[0]?.planId
  }
}

/** Runs a history in which events arrive shuffled, duplicated, or not at all, while the customer continues to act. */
async function live(world: World, { dropped }: { dropped: number }): Promise<void> {
  const { chance, double } = world
  const underWay: Promise<WebhookAnswer>[] = []
  let pending: FakeEvent[] = []
  let seen = 0
  const steps = 4 + chance.below(10)
  for (let step = 0; step < steps; step++) {
    actAtRandom(double, world.customer, chance)
    for (const event of world.sent.slice(seen)) {
      if (chance.isBelow(dropped)) continue
      pending.push(event)
      if (chance.isBelow(0.3)) pending.push(event)
    }
    seen = world.sent.length
    pending = chance.shuffled(pending)
    for (const event of pending.splice(0, chance.below(pending.length + 1))) underWay.push(world.deliver(event))
    await settled()
    while (world.isWaiting && chance.isBelow(0.6)) await world.release()
    if (chance.isBelow(0.2)) void checkDue(world.accountsDeps)
    await settled()
  }
  for (const event of pending) underWay.push(world.deliver(event))
  await settled()
  while (world.isWaiting) await world.release()
  for (const { status } of await Promise.all(underWay)) expect([200, 503]).toContain(status)
}

test(`${histories} histories of shuffled, duplicated, and dropped events end with the plan that was paid for`, async () => {
  const ends = new Map<string, number>()
  const missed = { before: 0 }
  for (let seed = 1; seed <= histories; seed++) {
    const world = new World(seed)
    await world.begin()
    await live(world, { dropped: world.chance.pick([0, 0.3, 0.7, 1]) })
    if (world.plan !== rightPlan(world.double, customerId(world), graceMs)) missed.before += 1
    // An hour without events: the check that is due in it repairs what lost events left wrong.
    advance(world.double, world.double.state.nowMs + checkEveryMs * 6 + 60_000)
    world.delays = false
    await checkDue(world.accountsDeps)
    const right = rightPlan(world.double, customerId(world), graceMs)
    expect(world.plan, `seed ${seed}`).toBe(right)
    ends.set(right, (ends.get(right) ?? 0) + 1)
  }
  // The histories are meaningful only if they end on every plan, and if events alone were not enough.
  for (const plan of ['free', 'pro', 'max']) expect(ends.get(plan) ?? 0, plan).toBeGreaterThan(histories / 20)
  expect(missed.before).toBeGreaterThan(histories / 50)
})

test(`${lossless} histories without lost events end with the right plan without any check`, async () => {
  for (let seed = 20_001; seed <= 20_000 + lossless; seed++) {
    const world = new World(seed)
    await world.begin()
    await live(world, { dropped: 0 })
    const record = await world.store.findBilling('acc_1')
    // No event reports the end of the grace period: the checks handle it.
    if (record?.subscription?.status === 'past_due') continue
    expect(world.plan, `seed ${seed}`).toBe(rightPlan(world.double, customerId(world), graceMs))
  }
})

/** Resolves when everything that waits only for promises has run. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
