import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Service } from '../service.ts'
import { hasChromium } from '../web/chromium.ts'
import { Journey } from './journey.ts'
import { tabTo } from './keyboard.ts'

const suite = hasChromium('The journeys with the keyboard alone') ? describe : describe.skip
const noticedWithin = { timeout: 5000 }

suite('with the keyboard alone', () => {
  let service: Service
  let journey: Journey
  let page: Page
  let accounts = 0
  beforeAll(async () => {
    service = await Service.start({ settings: { billing: { simulated: true } } })
  })
  afterAll(() => service.stop())
  afterEach(() => journey.end())

  /** Opens a page of a new account, signed in. */
  async function open(path: string): Promise<{ readonly id: string; readonly name: string; readonly key: string }> {
    accounts++
    const { account, key } = await service.addAccount(`typist ${accounts}`, 'free')
    journey = await (await Journey.begin(service)).signedInTo(account.id)
    ;({ page } = journey)
    await page.goto(`${service.config.appUrl}${path}`)
    return { ...account, key }
  }
  async function enter(wanted: string, tag?: string): Promise<void> {
    await tabTo(page, wanted, tag)
    await page.keyboard.press('Enter')
  }
  async function type(field: string, text: string): Promise<void> {
    await tabTo(page, field)
    await page.keyboard.type(text)
  }

  test('the keyboard alone buys and cancels a plan', async () => {
    const { key } = await open('/billing')
    const limit = async (): Promise<string | null> =>
      (await service.chat({}, { authorization: `Bearer ${key}` })).headers.get('x-quota-limit')
    await enter('Change plan')
    await page.getByRole('heading', { name: 'Plans' }).waitFor()
    await enter('Change to Pro', 'BUTTON')
    await page.getByRole('heading', { name: 'Checkout' }).waitFor()
    await enter('Pay (simulated)')
    await page.getByText('You are on the Pro plan.').waitFor()
    await expect.poll(limit, noticedWithin).toBe('20000')
    await enter('Manage card, invoices, and cancellation')
    await page.getByRole('heading', { name: 'Your subscription' }).waitFor()
    await enter('Cancel at the end of the period')
    await page.getByText('It ends on').waitFor()
  })

  test('the keyboard alone connects, tests, and removes a provider', async () => {
    await open('/account/upstreams')
    await tabTo(page, 'provider')
    await page.keyboard.type('Custom')
    await type('model', 'own')
    await type('credential', 'sk-made-up-credential-of-a-test')
    await enter('Base URL, region, format, timeouts')
    await type('base_url', service.providers[0]!.baseUrl)
    await enter('Test and connect')
    await page.getByText('The provider is connected').waitFor()
    await enter('Test Custom endpoint own')
    await page.getByRole('status').waitFor()
    await enter('Remove Custom endpoint own')
    await enter('Remove Custom endpoint own', 'BUTTON')
    await page.getByText('The provider and its credential were deleted').waitFor()
  })

  test('the keyboard alone requests and withdraws managed access', async () => {
    await open('/account/managed-access')
    await enter('Request a review')
    await page.getByText('waiting for review').waitFor()
    await enter('Withdraw')
    await page.getByText('Your request was withdrawn').waitFor()
  })

  test('the keyboard alone sends a support message, which is rejected if it contains a secret', async () => {
    await open('/support')
    await type('email', 'typist@example.com')
    await type('text', 'It fails with sk-canary-0000111122223333.')
    await enter('Send')
    await page.getByText('This appears to contain a provider key').waitFor()
    await tabTo(page, 'text')
    await page.keyboard.press('Control+A')
    await page.keyboard.type('It fails since noon.')
    await enter('Send')
    await page.getByRole('heading', { name: 'We have your message' }).waitFor()
  })

  test('the keyboard alone filters requests and opens one', async () => {
    const { key } = await open('/account')
    await service.chat({}, { authorization: `Bearer ${key}` })
    await enter('Activity')
    await page.getByRole('heading', { name: 'Activity' }).waitFor()
    await tabTo(page, 'outcome')
    await page.keyboard.type('Answered')
    await enter('Show')
    await page.waitForURL(/outcome=/)
    for (let presses = 0; presses < 40; presses++) {
      await page.keyboard.press('Tab')
      if (await page.evaluate(`document.activeElement.matches('a[href^="/activity/req_"]')`)) break
    }
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Attempts' }).waitFor()
  })

  test('the keyboard alone deletes the account', async () => {
    const { name } = await open('/account/data')
    await type('name', name)
    await page.keyboard.press('Enter')
    await page.getByText('Your account and all of its data were deleted').waitFor()
  })
})
