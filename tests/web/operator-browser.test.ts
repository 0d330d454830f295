import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createOperator } from '../../src/accounts/operators.ts'
import { createSignInLink } from '../../src/accounts/proofs.ts'
import { Service } from '../service.ts'
import { SkippingClock } from '../skipping-clock.ts'
import { hasChromium, startChromium } from './chromium.ts'
import { lastLetter } from './every-page.ts'
import { operatorsPlane } from './operator.ts'

const stepMs = 10_000
const suite = hasChromium('The operator’s console') ? describe : describe.skip

let clock: SkippingClock
let browser: Browser
let service: Service
let contexts: BrowserContext[]
let faults: string[]

/** A person at a browser of their own. */
async function person(options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> {
  const context = await browser.newContext(options)
  contexts.push(context)
  context.setDefaultTimeout(stepMs)
  const page = await context.newPage()
  page.on('console', (message) => void (message.type() === 'error' && faults.push(message.text())))
  page.on('pageerror', (error) => void faults.push(error.message))
  return page
}

async function typeCode(page: Page, button: string): Promise<void> {
  await page.getByRole('button', { name: 'Send the code' }).click()
  await page.getByLabel('Code').fill((await lastLetter(page, service.config.appUrl)).code)
  await page.getByRole('button', { name: button }).click()
}

suite('the console in a browser', () => {
  beforeAll(async () => {
    browser = await startChromium()
  })
  afterAll(() => browser.close())
  beforeEach(async () => {
    clock = new SkippingClock()
    service = await Service.start({ clock })
    contexts = []
    faults = []
  })
  afterEach(async () => {
    await Promise.all(contexts.map((context) => context.close()))
    await service.stop()
    expect(faults).toEqual([])
  })

  test.each([
    ['with script', true],
    ['without script', false],
  ])(
    'an account asks for another plan; an operator confirms who it is and approves: %s',
    async (_, javaScriptEnabled) => {
      const { appUrl } = service.config
      const { account } = await service.addAccount('hopeful', 'free')
      await createOperator(operatorsPlane(service), 'ada@example.com', 'support')

      const owner = await person({ javaScriptEnabled })
      const plane = { ...service.plane, store: service.store }
      await owner.goto((await createSignInLink(plane, account.id, appUrl)).reveal())
      await owner.getByRole('button', { name: 'Sign in' }).click()
      await owner.goto(`${appUrl}/billing/upgrade`)
      await owner.getByRole('button', { name: 'Ask for Pro' }).click()
      await owner.getByText('Your request is with the operator').waitFor()

      const operator = await person({ javaScriptEnabled })
      await operator.goto(`${appUrl}/operator`)
      await operator.getByLabel('Email address').fill('ada@example.com')
      await typeCode(operator, 'Go on')
      await operator.getByText('1 waiting').waitFor()
      await clock.skip(11 * 60_000)
      await operator.getByRole('link', { name: 'Look at upgrade requests' }).click()
      await operator.getByRole('button', { name: 'Approve for hopeful' }).click()
      await operator.getByRole('heading', { name: 'Confirm that it is you' }).waitFor()
      expect((await service.store.findAccount(account.id))?.planId).toBe('free')
      await typeCode(operator, 'Confirm')
      await operator.getByText('For ten minutes you are not asked again').waitFor()
      expect(new URL(operator.url()).pathname).toBe('/operator/requests')
      await operator.getByRole('button', { name: 'Approve for hopeful' }).click()
      await operator.getByText('Approved. The account is on the plan').waitFor()

      await owner.goto(`${appUrl}/billing`)
      await owner.getByText('You are on the plan Pro').waitFor()
      await operator.getByRole('button', { name: 'Sign out' }).click()
      await operator.getByText('You are signed out of the console').waitFor()
      await owner.reload()
      await owner.getByText('You are on the plan Pro').waitFor()
    },
  )
})
