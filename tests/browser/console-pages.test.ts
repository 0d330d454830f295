import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { hasChromium } from '../web/chromium.ts'
import { enterConsole } from '../web/every-console-page.ts'
import { signIn } from '../web/every-page.ts'
import { WatchedPages } from './watched-pages.ts'

const confirmedMs = 11 * 60_000
const suite = hasChromium('The console’s pages') ? describe : describe.skip
const pages = new WatchedPages()

/** Confirms the identity of the operator, as the console requires. */
async function confirm(page: Page): Promise<void> {
  await pages.proveByCode(page, 'Confirm')
  await page.getByText('Nothing has changed yet').waitFor()
}

suite('in a browser', () => {
  pages.watch()

  test('an account requests managed access, an operator confirms their identity and approves it, and the account sees it', async () => {
    const { service, clock } = pages
    const { appUrl } = service.config
    const [theirs, ours] = [await pages.open(), await pages.open()]
    await signIn(theirs, service)
    await theirs.goto(`${appUrl}/account/managed-access`)
    await theirs.getByRole('button', { name: 'Request a review' }).click()
    await theirs.getByText('waiting for review').waitFor()

    await enterConsole(ours, service)
    await clock.skip(confirmedMs)
    await ours.reload()
    await ours.getByRole('link', { name: 'Review managed access' }).click()
    await ours.getByRole('button', { name: `Approve for ${service.account.id}` }).click()
    await ours.getByRole('heading', { name: 'Confirm your identity' }).waitFor()
    expect(await service.store.hasManagedAccess(service.account.id)).toBe(false)
    await confirm(ours)
    await ours.getByRole('button', { name: `Approve for ${service.account.id}` }).click()
    await ours.getByText('The request was approved.').waitFor()

    await theirs.reload()
    await theirs.getByText('approved', { exact: true }).waitFor()
    expect(await service.store.hasManagedAccess(service.account.id)).toBe(true)
    const [latest] = await service.store.listAudit({ limit: 1 })
    expect(latest).toMatchObject({
      actor: { kind: 'operator' },
      event: { type: 'managed.approved', accountId: service.account.id },
    })
  })

  test('a backend is drained with a reason, the next request goes elsewhere, and the dry run says so', async () => {
    const { service } = pages
    const page = await pages.open()
    await enterConsole(page, service)
    await page.getByRole('link', { name: 'Backends' }).click()
    await page.getByRole('link', { name: 'alpha' }).click()
    await page.locator('summary', { hasText: 'Drain' }).click()
    await page.getByLabel('Reason').first().selectOption('maintenance')
    await page.getByRole('button', { name: 'Drain it' }).click()
    await page.getByText('The backend is drained').waitFor()
    await expect
      .poll(async () => (await service.chat()).headers.get('x-svc-router-upstream'), { timeout: 1_000 })
      .toBe('beta')
    await page.getByRole('link', { name: 'Profiles' }).click()
    await page.getByRole('link', { name: 'Where would a request go?' }).first().click()
    await page.getByRole('button', { name: 'Where would it go?' }).click()
    await page.getByRole('heading', { name: 'It would go to beta' }).waitFor()
    await page.getByText('drained by an operator').waitFor()
  })
})
