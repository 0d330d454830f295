import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import { Service } from '../service.ts'
import { type ContextOptions, lendPage, returnPage } from '../web/chromium.ts'
import { lastLetter } from '../web/every-page.ts'

/** A page from `lendPage` that records faults: violations of its own policy, and script errors. */
export async function openWatched(faults: string[], options?: ContextOptions): Promise<Page> {
  const page = await lendPage(options)
  page.on('console', (message) => void (message.type() === 'error' && faults.push(message.text())))
  page.on('pageerror', (error) => void faults.push(error.message))
  return page
}

/** The pages of a suite. Each test has its own service, unless the suite shares one, and fails if a page has a fault. */
export class WatchedPages {
  clock!: SkippingClock
  service!: Service
  #pages: Page[] = []
  #faults: string[] = []

  /** Called at the top of the suite. Faults that its tests provoke are ignored. */
  watch(ignored?: RegExp, { isShared = false }: { readonly isShared?: boolean } = {}): void {
    const [before, after] = isShared ? [beforeAll, afterAll] : [beforeEach, afterEach]
    before(async () => {
      this.clock = new SkippingClock()
      this.service = await Service.start({ clock: this.clock })
    })
    after(() => this.service.stop())
    beforeEach(() => {
      this.#pages = []
      this.#faults = []
    })
    afterEach(async () => {
      await Promise.all(this.#pages.map(returnPage))
      expect(this.#faults.filter((fault) => ignored?.test(fault) !== true)).toEqual([])
    })
  }

  async open(options?: ContextOptions): Promise<Page> {
    const page = await openWatched(this.#faults, options)
    this.#pages.push(page)
    return page
  }

  /** Opens a page on which requests to other origins are faults, too. */
  async openAlone(options?: ContextOptions): Promise<Page> {
    const page = await this.open(options)
    const { port } = new URL(this.service.config.appUrl)
    page.on('request', (request) => {
      if (new URL(request.url()).port !== port) this.#faults.push(`asked elsewhere: ${request.url()}`)
    })
    return page
  }

  /** Requests a code for the address in the form, types it, and clicks the given button. */
  async proveByCode(page: Page, button: string): Promise<void> {
    await page.getByRole('button', { name: 'Send the code' }).click()
    await page.getByLabel('Code').fill((await lastLetter(page, this.service.config.appUrl)).code)
    await page.getByRole('button', { name: button }).click()
  }
}
