import type { Locator, Page } from 'playwright-core'
import type { Service } from '../service.ts'
import { type ContextOptions, lendPage, returnPage } from './chromium.ts'
import { lastLetter, placeSession } from './every-page.ts'

/** Somebody at a browser, on the way to something: presses are counted, what is typed or only looked at is not. */
export class Journey {
  readonly page: Page
  readonly #service: Service
  /** Every origin that was asked for anything. */
  readonly asked = new Set<string>()
  clicks = 0

  private constructor(service: Service, page: Page) {
    this.#service = service
    this.page = page
    page.on('request', (request) => void this.asked.add(new URL(request.url()).origin))
  }

  static async begin(service: Service, options?: ContextOptions): Promise<Journey> {
    return new Journey(service, await lendPage(options))
  }

  /** Has been signed in to the account before. */
  async signedInTo(accountId: string): Promise<this> {
    await placeSession(this.page, this.#service, accountId)
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
    return returnPage(this.page)
  }
}
