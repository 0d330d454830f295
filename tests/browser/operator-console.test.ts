import { describe, expect, test } from 'vitest'
import { createSignInLink } from '../../src/accounts/identity/proofs.ts'
import { createOperator } from '../../src/accounts/operators/operators.ts'
import { hasChromium } from '../web/chromium.ts'
import { operatorsDeps } from '../web/operator.ts'
import { WatchedPages } from './watched-pages.ts'

const suite = hasChromium('The operator’s console') ? describe : describe.skip
const pages = new WatchedPages()

suite('the console in a browser', () => {
  pages.watch()

  test.each([
    ['with script', true],
    ['without script', false],
  ])(
    'an account requests another plan; an operator confirms their identity and approves it: %s',
    async (_, javaScriptEnabled) => {
      const { service, clock } = pages
      const { appUrl } = service.config
      const { account } = await service.addAccount('hopeful', 'free')
      await createOperator(operatorsDeps(service), 'ada@example.com', 'support')

      const owner = await pages.open({ javaScriptEnabled })
      const accountsDeps = { ...service.accountsDeps, store: service.store }
      await owner.goto((await createSignInLink(accountsDeps, account.id, appUrl)).reveal())
      await owner.getByRole('button', { name: 'Sign in' }).click()
      await owner.goto(`${appUrl}/billing/upgrade`)
      await owner.getByRole('button', { name: 'Request Pro' }).click()
      await owner.getByText('Your request was sent to the operator').waitFor()

      const operator = await pages.open({ javaScriptEnabled })
      await operator.goto(`${appUrl}/operator`)
      await operator.getByLabel('Email address').fill('ada@example.com')
      await pages.proveByCode(operator, 'Continue')
      await operator.getByText('1 waiting').waitFor()
      await clock.skip(11 * 60_000)
      await operator.getByRole('link', { name: 'Review upgrade requests' }).click()
      await operator.getByRole('button', { name: 'Approve for hopeful' }).click()
      await operator.getByRole('heading', { name: 'Confirm your identity' }).waitFor()
      expect((await service.store.findAccount(account.id))?.planId).toBe('free')
      await pages.proveByCode(operator, 'Confirm')
      await operator.getByText('We will not ask again for ten minutes').waitFor()
      expect(new URL(operator.url()).pathname).toBe('/operator/requests')
      await operator.getByRole('button', { name: 'Approve for hopeful' }).click()
      await operator.getByText('Approved. The new plan applies').waitFor()

      await owner.goto(`${appUrl}/billing`)
      await owner.getByText('You are on the Pro plan').waitFor()
      await operator.getByRole('button', { name: 'Sign out' }).click()
      await operator.getByText('You are signed out of the console').waitFor()
      await owner.reload()
      await owner.getByText('You are on the Pro plan').waitFor()
    },
  )

  test('the page Traffic renews its figures without being loaded again', async () => {
    const { service } = pages
    const { appUrl } = service.config
    await createOperator(operatorsDeps(service), 'grace@example.com', 'viewer')
    const operator = await pages.open({})
    await operator.goto(`${appUrl}/operator`)
    await operator.getByLabel('Email address').fill('grace@example.com')
    await pages.proveByCode(operator, 'Continue')
    await operator.getByRole('link', { name: 'Traffic' }).click()
    const failed = operator.locator('[data-figure="of-alpha-failed"]')
    expect(await failed.textContent()).toBe('–')
    expect((await service.chat()).status).toBe(200)
    await expect.poll(() => failed.textContent(), { timeout: 10_000 }).toBe('0%')
  })
})
