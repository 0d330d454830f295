import type { Locator, Page } from 'playwright-core'
import type { Service } from '../service.ts'
import { type ContextOptions, lendPage, returnPage } from '../web/chromium.ts'
import { lastLetter, placeSession } from '../web/every-page.ts'

/** A user with a browser and a goal. Counts clicks, but not typing and reading. */
export class Journey {
  readonly page: Page
  readonly #service: Service
  /** Every origin that received a request. */
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

  /** Signs in to an account before the journey, without counting clicks. */
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

  /** Types an address, waits for the email, and types the code: two clicks. */
  async proveAddress(address: string, button = 'Continue'): Promise<void> {
    await this.page.getByLabel('Email address').fill(address)
    await this.pressButton('Send the code')
    const code = this.page.getByLabel('Code')
    await code.waitFor()
    await code.fill((await lastLetter(this.page, this.#service.config.appUrl)).code)
    await this.pressButton(button)
  }

  /** The key, which the page shows only once. */
  async shownKey(): Promise<string> {
    return ((await this.page.locator('#new-key').textContent()) ?? '').trim()
  }

  end(): Promise<void> {
    return returnPage(this.page)
  }
}
