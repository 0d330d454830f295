import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import { Service } from '../service.ts'
import { hasChromium } from '../web/chromium.ts'
import { Journey } from './journey.ts'

const suite = hasChromium('The ways between plans') ? describe : describe.skip
/** Webhooks arrive and servers notice a plan within a second or two. */
const noticedWithin = { timeout: 5000 }

suite('changes of plan through the simulated Stripe', () => {
  const clock = new SkippingClock()
  let service: Service
  let journey: Journey
  let key: string
  beforeAll(async () => {
    service = await Service.start({ settings: { billing: { simulated: true } }, clock })
    const { account, key: made } = await service.addAccount('buyer', 'free')
    key = made
    journey = await (await Journey.begin(service)).signedInTo(account.id)
  })
  afterAll(async () => {
    await journey.end()
    await service.stop()
  })
  afterEach(() => {
    const [started] = service.events.filter(({ event }) => event === 'billing_simulated')
    const cashier = started?.event === 'billing_simulated' ? started.origin : ''
    for (const origin of journey.asked) expect([service.config.appUrl, cashier]).toContain(origin)
  })

  const limits = async (): Promise<(string | null)[]> => {
    const { headers } = await service.chat({}, { authorization: `Bearer ${key}` })
    return ['x-quota-limit', 'x-ratelimit-limit'].map((name) => headers.get(name))
  }
  const planIs = async (name: string): Promise<void> => {
    await journey.page.goto(`${service.config.appUrl}/billing`)
    await journey.page.getByText(`You are on the ${name} plan.`).waitFor()
  }
  const toPortal = async (): Promise<void> => {
    await journey.page.goto(`${service.config.appUrl}/billing`)
    await journey.pressButton('Manage card, invoices, and cancellation')
    await journey.page.getByRole('heading', { name: 'Your subscription (simulated)' }).waitFor()
  }

  test('an abandoned checkout and a declined card change nothing, and the page says so', async () => {
    expect(await limits()).toEqual(['500', '20'])
    await journey.page.goto(`${service.config.appUrl}/billing/upgrade`)
    await journey.pressButton('Change to Pro')
    await journey.pressButton('Pay with a card that is declined')
    await journey.page.getByText('The card was declined.').waitFor()
    await journey.pressButton('Cancel')
    await journey.page.getByText('You left checkout. Nothing was purchased.').waitFor()
    expect(await limits()).toEqual(['500', '20'])
  })

  test('an upgrade to Pro takes three clicks from Billing, and the next request has its limits', async () => {
    await journey.page.goto(`${service.config.appUrl}/billing`)
    journey.clicks = 0
    await journey.pressLink('Change plan')
    await journey.pressButton('Change to Pro')
    await journey.pressButton('Pay (simulated)')
    await journey.page.getByText('You are on the Pro plan.').waitFor()
    await journey.page.getByText('Your next invoice is due on').waitFor()
    expect(journey.clicks).toBe(3)
    await expect.poll(limits, noticedWithin).toEqual(['20000', '120'])
  })

  test('another upgrade in the portal takes effect by webhook, without a return to the app', async () => {
    await toPortal()
    await journey.pressButton(/^Change to Max/)
    await expect.poll(limits, noticedWithin).toEqual(['100000', '600'])
    await planIs('Max')
  })

  test('a downgrade to Pro waits until the paid period ends, as the page says, and then lowers the limits', async () => {
    await toPortal()
    await journey.pressButton(/^Change to Pro/)
    await journey.page.getByText('It becomes Pro on').waitFor()
    await journey.page.getByRole('link', { name: 'Back to svc-router' }).click()
    await journey.page.getByText(/Your plan changes to Pro on .+\./).waitFor()
    expect(await limits()).toEqual(['100000', '600'])
    await toPortal()
    await journey.pressButton('Advance one month')
    await expect.poll(limits, noticedWithin).toEqual(['20000', '120'])
    await planIs('Pro')
  })

  test('cancelling takes two clicks from Billing, can be undone, and ends in the free plan after the month', async () => {
    await toPortal()
    await journey.pressButton('Cancel at the end of the period')
    await journey.pressButton('Keep the subscription')
    await journey.page.getByText('It renews on').waitFor()
    await journey.pressButton('Cancel at the end of the period')
    await journey.page.getByRole('link', { name: 'Back to svc-router' }).click()
    await journey.page.getByText(/Your plan changes to Free on .+\./).waitFor()
    expect(await limits()).toEqual(['20000', '120'])
    await toPortal()
    await journey.pressButton('Advance one month')
    await expect.poll(limits, noticedWithin).toEqual(['500', '20'])
    await planIs('Free')
  })
})
