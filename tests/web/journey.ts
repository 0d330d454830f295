import type { Browser, BrowserContext, Locator, Page } from 'playwright-core'
import { openSession } from '../../src/accounts/identity/sessions.ts'
import type { Service } from '../service.ts'
import { lastLetter } from './every-page.ts'

const stepMs = 10_000

/** Somebody at a browser, on the way to something: presses are counted, what is typed or only looked at is not. */
export class Journey {
  readonly context: BrowserContext
  readonly page: Page
  readonly #service: Service
  /** Every origin that was asked for anything. */
  readonly asked = new Set<string>()
  clicks = 0

  private constructor(service: Service, context: BrowserContext, page: Page) {
    this.#service = service
    this.context = context
    this.page = page
    page.on('request', (request) => void this.asked.add(new URL(request.url()).origin))
  }

  static async begin(
    browser: Browser,
    service: Service,
    options: Parameters<Browser['newContext']>[0] = {},
  ): Promise<Journey> {
    const context = await browser.newContext(options)
    context.setDefaultTimeout(stepMs)
    return new Journey(service, context, await context.newPage())
  }

  /** Has been signed in to the account before. */
  async signedInTo(accountId: string): Promise<this> {
    const { store, plane, config } = this.#service
    const { token } = await openSession({ ...plane, store }, accountId, { method: 'link', agent: 'Tests' })
    await this.context.addCookies([{ name: 'svc_session', value: token.reveal(), url: config.appUrl }])
    return this
  }

  async press(where: Locator): Promise<void> {
    this.clicks++
    await where.click()
  }

  pressButton(name: string | RegExp): Promise<void> {
    return this.press(this.page.getByRole('button', { name, exact: typeof name === 'string' }))
  }

  pressLink(name: string | RegExp): Promise<void> {
    return this.press(this.page.getByRole('main').getByRole('link', { name, exact: typeof name === 'string' }))
  }

  /** Types an address, waits for its letter and types the code: two presses. */
  async proveAddress(address: string, button = 'Continue'): Promise<void> {
    await this.page.getByLabel('Email address').fill(address)
    await this.pressButton('Send the code')
    const code = this.page.getByLabel('Code')
    await code.waitFor()
    await code.fill((await lastLetter(this.page, this.#service.config.appUrl)).code)
    await this.pressButton(button)
  }

  /** The key that the page shows this once. */
  async shownKey(): Promise<string> {
    return ((await this.page.locator('#new-key').textContent()) ?? '').trim()
  }

  end(): Promise<void> {
    return this.context.close()
  }
}
