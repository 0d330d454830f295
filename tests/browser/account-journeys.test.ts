import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { addProvenEmail } from '../../src/accounts/identity/sign-in.ts'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import { Service } from '../service.ts'
import { type ContextOptions, hasChromium } from '../web/chromium.ts'
import { lastLetter } from '../web/every-page.ts'
import { Journey } from './journey.ts'

const suite = hasChromium('The journeys of an account') ? describe : describe.skip
const hourMs = 3_600_000
/** Servers notice a change of keys within a second. */
const noticedWithin = { timeout: 5000 }

suite('an account, with and without scripts', () => {
  const clock = new SkippingClock()
  let service: Service
  let journey: Journey
  let accounts = 0
  let account: Awaited<ReturnType<Service['addAccount']>>['account']
  let key: string
  beforeAll(async () => {
    service = await Service.start({ clock })
  })
  afterAll(() => service.stop())
  beforeEach(async () => {
    accounts++
    ;({ account, key } = await service.addAccount(`owner ${accounts}`, 'max'))
  })
  afterEach(async () => {
    expect([...journey.asked]).toEqual([service.config.appUrl])
    await journey.end()
  })

  const open = async (path: string, options?: ContextOptions): Promise<void> => {
    journey = await (await Journey.begin(service, options)).signedInTo(account.id)
    await journey.page.goto(`${service.config.appUrl}${path}`)
  }
  const statusOf = async (which: string): Promise<number> =>
    (await service.chat({}, { authorization: `Bearer ${which}` })).status

  test.each([
    ['1 more hour', hourMs],
    ['24 more hours', 24 * hourMs],
    ['7 more days', 7 * 24 * hourMs],
  ])(
    'after a rotation with overlap “%s”, both keys work until the overlap ends and then only the new one',
    async (overlap, lastsMs) => {
      await open('/account/keys')
      await journey.press(journey.page.locator('summary', { hasText: 'Rotate' }))
      await journey.page.getByLabel(overlap).check()
      await journey.pressButton('Create the new key')
      await journey.page.getByText('The old key works until').waitFor()
      expect(journey.clicks).toBe(2)
      const next = await journey.shownKey()
      const endsAtMs = (await service.store.listKeys(account.id, 2)).find(
        ({ state }) => state === 'retiring',
      )!.endsAtMs!
      expect(Math.abs(endsAtMs - clock.nowMs() - lastsMs)).toBeLessThan(60_000)
      await clock.skip(endsAtMs - clock.nowMs() - 60_000)
      await expect.poll(() => statusOf(next), noticedWithin).toBe(200)
      expect(await statusOf(key)).toBe(200)
      await clock.skip(61_000)
      await expect.poll(() => statusOf(key), noticedWithin).toBe(401)
      await expect.poll(() => statusOf(next), noticedWithin).toBe(200)
    },
  )

  test('after a recovery that revokes everything, the old key is rejected and the new one works', async () => {
    const address = `recovers${accounts}@example.com`
    await addProvenEmail({ ...service.accountsDeps, store: service.store }, account.id, address)
    journey = await Journey.begin(service)
    await journey.page.goto(`${service.config.appUrl}/account/recover`)
    await journey.page.getByLabel('Email address').fill(address)
    await journey.pressButton('Send the code')
    await journey.page.getByLabel('Code').fill((await lastLetter(journey.page, service.config.appUrl)).code)
    await journey.page.getByLabel('Revoke all existing keys').check()
    await journey.pressButton('Get a new key')
    await journey.page.getByText('Your other key was permanently revoked').waitFor()
    expect(await statusOf(await journey.shownKey())).toBe(200)
    await expect.poll(() => statusOf(key), noticedWithin).toBe(401)
  })

  test('without scripts, the support form rejects and discards a secret, and accepts a plain message', async () => {
    await open('/support', { javaScriptEnabled: false })
    const { page } = journey
    const secret = 'sk-canary-0000111122223333'
    await page.getByLabel('Your email address').fill('asker@example.com')
    await page.getByLabel('What happened').fill(`It fails with ${secret} since noon.`)
    await journey.pressButton('Send')
    await page.getByText('it appears to contain a provider key').first().waitFor()
    expect(await page.content()).not.toContain(secret)
    expect(await page.title()).toMatch(/^Error: /)
    expect(await service.store.listTickets(10)).toEqual([])
    await page.getByLabel('What happened').fill('It fails since noon.')
    await journey.pressButton('Send')
    await page.getByRole('heading', { name: 'We have your message' }).waitFor()
    expect((await service.store.listTickets(10)).length).toBe(1)
  })

  test('managed access is requested in one click and withdrawn in one, and neither switches it on', async () => {
    await open('/account/managed-access')
    await journey.pressButton('Request a review')
    await journey.page.getByText('waiting for review').waitFor()
    expect(await journey.page.getByText('met', { exact: true }).count()).toBe(2)
    await journey.pressButton('Withdraw')
    await journey.page.getByText('Your request was withdrawn').waitFor()
    await journey.page.getByRole('button', { name: 'Request a review' }).waitFor()
    expect(journey.clicks).toBe(2)
  })

  test('Usage and Activity show the requests just made, down to the attempts of a single one', async () => {
    for (const provider of service.providers) provider.script([])
    for (let request = 0; request < 3; request++) expect(await statusOf(key)).toBe(200)
    service.providers[0]!.script([{ do: 'status', status: 503 }])
    expect(await statusOf(key)).toBe(200)
    await open('/usage')
    const { page } = journey
    await expect
      .poll(
        async () => {
          await page.reload()
          return page.getByText('4 of 100,000 requests this month').count()
        },
        { timeout: 5000 },
      )
      .toBe(1)
    await page.goto(`${service.config.appUrl}/activity`)
    await page.getByText('2 attempts').waitFor()
    await journey.press(page.getByRole('link', { name: /, request req_/ }).first())
    await page.getByRole('heading', { name: 'Attempts' }).waitFor()
    const rows = await page.locator('tbody tr').allTextContents()
    expect(rows.map((row) => row.replaceAll(/\s+/g, ' ').trim())).toEqual([
      expect.stringMatching(/^alpha server error 503/),
      expect.stringMatching(/^beta answered/),
    ])
  })

  test('the account downloads all its data as one file and is deleted after its name is typed', async () => {
    await statusOf(key)
    await open('/account/data')
    const arriving = journey.page.waitForEvent('download')
    await journey.pressLink('Download everything')
    const file = await (await arriving).path()
    const held = JSON.parse(readFileSync(file, 'utf8')) as { readonly account: { readonly id: string } }
    expect(held.account.id).toBe(account.id)
    expect(JSON.stringify(held)).not.toContain(key)
    await journey.page.getByLabel('Enter the account name').fill(account.name)
    await journey.pressButton('Permanently delete the account')
    await journey.page.getByText('Your account and all of its data were deleted').waitFor()
    expect(journey.clicks).toBe(2)
    await expect.poll(() => statusOf(key), noticedWithin).toBe(401)
    await journey.page.goto(`${service.config.appUrl}/account`)
    await journey.page.getByRole('heading', { name: 'Sign in' }).waitFor()
  })
})
