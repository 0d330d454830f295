import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { Service } from '../service.ts'
import { Visitor } from '../web/browser-less.ts'
import { hasChromium } from '../web/chromium.ts'
import { byName, lastLetter, signIn } from '../web/every-page.ts'
import { focused, tabTo } from './keyboard.ts'
import { WatchedPages } from './watched-pages.ts'

/** The parts of an error that these journeys use. */
interface Refused {
  readonly error: { readonly accountSetupUrl: string; readonly keyRecoveryUrl: string }
}
const suite = hasChromium('The web app') ? describe : describe.skip

const pages = new WatchedPages()
let service: Service
let page: Page

async function open(options: Parameters<WatchedPages['openAlone']>[0] = {}): Promise<void> {
  page = await pages.openAlone(options)
}

const statusOf = async (key: string): Promise<number> =>
  (await service.chat({}, { authorization: `Bearer ${key}` })).status
const shownKey = async (): Promise<string> => (await page.locator('#new-key').textContent())?.trim() ?? ''

suite('in a browser', () => {
  // Chromium logs the status of rejected forms in its console.
  pages.watch(/status of 4(00|04|10|22)/)
  beforeEach(() => void ({ service } = pages))

  test('first key: the link in an error leads a visitor without an account to a working key', async () => {
    await open()
    const refused = await service.post('/chat/completions', {}, { authorization: '' })
    const { accountSetupUrl } = ((await refused.json()) as Refused).error
    await page.goto(accountSetupUrl)
    await page.getByLabel('Email address').fill('new@example.com')
    await pages.proveByCode(page, 'Continue')
    await page.getByRole('heading', { name: 'Your first key' }).waitFor()
    expect(await statusOf(await shownKey())).toBe(200)
    await page.getByRole('link', { name: 'Your account' }).click()
    await page.getByText('1 of 500 requests').waitFor()
  })

  test("recovery: a revoked key's link and an emailed code lead to a new key that works", async () => {
    await open()
    const { store, account, key } = service
    await service.addEmail('owner@example.com')
    const [stored] = await store.listKeys(account.id, 1)
    await service.revoke(stored!.id)
    await expect.poll(() => statusOf(key), { timeout: 3000 }).toBe(401)
    const refused = await service.chat()
    const { keyRecoveryUrl } = ((await refused.json()) as Refused).error
    await page.goto(keyRecoveryUrl)
    await page.getByLabel('Email address').fill('owner@example.com')
    await pages.proveByCode(page, 'Get a new key')
    await page.getByRole('heading', { name: 'Your new key' }).waitFor()
    expect(await statusOf(await shownKey())).toBe(200)
  })

  test('rotation: two clicks without an overlap end the old key immediately', async () => {
    await open()
    await signIn(page, service)
    await page.goto(`${service.config.appUrl}/account/keys`)
    await page.locator('summary', { hasText: 'Rotate' }).click()
    await page.getByLabel('Revoke immediately').check()
    await page.getByRole('button', { name: 'Create the new key' }).click()
    await page.getByRole('heading', { name: 'Your new key' }).waitFor()
    const next = await shownKey()
    expect(await statusOf(next)).toBe(200)
    await expect.poll(() => statusOf(service.key), { timeout: 3000 }).toBe(401)
  })

  test('a copy button copies the whole key and says so', async () => {
    await open({ permissions: ['clipboard-read', 'clipboard-write'] })
    await signIn(page, service)
    await page.goto(`${service.config.appUrl}/account/keys`)
    await page.getByLabel('Name').fill('copied')
    await page.getByRole('button', { name: 'Create key' }).click()
    await page.getByRole('button', { name: 'Copy', exact: true }).click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(await shownKey())
  })

  test('a passkey is added, signs in without an email, cannot be replayed, and is removed', async () => {
    await open()
    // The virtual authenticator remains with the page.
    onTestFinished(() => page.context().close())
    const origin = byName(service)
    const devtools = await page.context().newCDPSession(page)
    await devtools.send('WebAuthn.enable')
    await devtools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    })
    const answers: string[] = []
    page.on('request', (request) => {
      if (request.url().endsWith('/sign-in/passkey'))
        answers.push(new URLSearchParams(request.postData() ?? '').get('answer')!)
    })
    await signIn(page, service, origin)
    await page.goto(`${origin}/account`)
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await page.getByText('The passkey was added').waitFor()
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByText('You are signed in').waitFor()
    const sessions = await service.store.listSessions(service.account.id)
    expect(sessions.map(({ method }) => method)).toEqual(['passkey'])

    expect(answers.length).toBe(1)
    const replayed = await new Visitor(origin).post('/sign-in/passkey', { answer: answers[0]! })
    expect(replayed.status).toBe(422)
    expect((await service.store.listSessions(service.account.id)).length).toBe(1)

    await page.goto(`${origin}/account`)
    await page.getByRole('button', { name: /^Remove Chrome/ }).click()
    await page.getByText('The passkey was removed').waitFor()
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByText('This passkey does not work here').waitFor()
  })

  test('without scripts everything works except the copy buttons', async () => {
    await open({ javaScriptEnabled: false })
    await page.goto(`${service.config.appUrl}/account/setup`)
    await page.getByLabel('Email address').fill('no-script@example.com')
    await pages.proveByCode(page, 'Continue')
    expect(await statusOf(await shownKey())).toBe(200)
    expect(await page.getByRole('button', { name: 'Copy' }).count()).toBe(0)
    await page.getByRole('link', { name: 'Your account' }).click()
    await page.getByRole('link', { name: 'See your keys' }).click()
    await page.locator('summary', { hasText: /^Revoke first key/ }).click()
    await page.getByRole('button', { name: 'Revoke first key' }).click()
    await page.getByText('The key was revoked').waitFor()
  })

  test('the keyboard alone suffices for the skip link, the code, and creating, rotating, and revoking a key', async () => {
    await open()
    await page.goto(`${service.config.appUrl}/sign-in`)
    await page.keyboard.press('Tab')
    expect(await focused(page)).toBe('Skip to content')
    await page.keyboard.press('Enter')
    await tabTo(page, 'email')
    await page.keyboard.type('keys@example.com')
    await page.keyboard.press('Enter')
    await page.getByLabel('Code').waitFor()
    await tabTo(page, 'code')
    await page.keyboard.type((await lastLetter(page, service.config.appUrl)).code)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'No account has this address yet' }).waitFor()
    await tabTo(page, 'Create an account')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Your first key' }).waitFor()
    await tabTo(page, 'Your account')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Signed-in browsers' }).waitFor()
    await tabTo(page, 'See your keys')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Your keys' }).waitFor()
    await tabTo(page, 'name')
    await page.keyboard.type('typed')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Your new key' }).waitFor()
    await tabTo(page, 'I have copied it')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Your keys' }).waitFor()
    await tabTo(page, 'Rotate typed')
    await page.keyboard.press('Enter')
    await tabTo(page, 'Create the new key')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Your new key' }).waitFor()
    await tabTo(page, 'I have copied it')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Your keys' }).waitFor()
    await tabTo(page, 'Revoke typed')
    await page.keyboard.press('Enter')
    await tabTo(page, 'Revoke typed', 'BUTTON')
    await page.keyboard.press('Enter')
    await page.getByText('The key was revoked').waitFor()
  })
})
