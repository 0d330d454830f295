import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { harmless, secrets } from '../domain/forbidden-samples.ts'
import { Service } from '../service.ts'
import { hasChromium, returnPage } from '../web/chromium.ts'
import { signIn } from '../web/every-page.ts'
import { openWatched } from './watched-pages.ts'

const suite = hasChromium('The public pages') ? describe : describe.skip

let service: Service
let page: Page
let faults: string[]

suite('public pages in a browser', () => {
  beforeAll(async () => {
    service = await Service.start()
  })
  afterAll(() => service.stop())
  beforeEach(async () => {
    faults = []
    page = await openWatched(faults, { permissions: ['clipboard-read', 'clipboard-write'] })
  })
  afterEach(async () => {
    await returnPage(page)
    expect(faults).toEqual([])
  })

  test('the home page shows one client example at a time, by click or key, and copies all of it', async () => {
    await page.goto(service.config.appUrl)
    expect(await page.locator('.tab:visible').count()).toBe(1)
    await page.getByText('Codex', { exact: true }).first().click()
    await page.getByText('model_provider = "svc-router"').waitFor()
    await page.keyboard.press('ArrowLeft')
    await page.getByText("import OpenAI from 'openai'").waitFor()
    expect(await page.locator('.tab:visible').count()).toBe(1)
    await page.locator('.tab:visible button').click()
    expect(await page.evaluate('navigator.clipboard.readText()')).toContain(`baseURL: "${service.baseUrl}"`)
  })

  test('a connect page turns green by itself with the first request', async () => {
    await signIn(page, service)
    await page.goto(`${service.config.appUrl}/connect/codex`)
    await page.getByText('Waiting for your first request…').waitFor()
    await service.chat()
    await page.getByText('It works: alpha answered your request for svc-router/frontier.').waitFor()
    expect(await page.locator('.waiting.good').count()).toBe(1)
    expect(await page.getByRole('link', { name: 'Check again' }).count()).toBe(0)
  })

  test('each kind of secret is detected during typing, and ordinary text is not', async () => {
    await page.goto(`${service.config.appUrl}/support`)
    const said = page.locator('#text-found')
    const text = page.getByLabel('What happened')
    for (const [kind, secret] of secrets) {
      await text.fill(`It fails.\n${secret}\nHelp!`)
      expect(await said.textContent(), secret).toContain(kind)
    }
    for (const each of harmless) {
      await text.fill(each)
      expect(await said.textContent(), each).toBe('')
    }
  })

  test('a message with a secret is not sent from the page; without it, it is', async () => {
    await page.goto(`${service.config.appUrl}/support`)
    const sent: string[] = []
    page.on('request', (request) => void (request.method() === 'POST' && sent.push(request.postData() ?? '')))
    await page.getByLabel('Your email address').fill('asker@example.com')
    await page.getByLabel('What happened').fill('It fails with sk-canary-0000111122223333 since noon.')
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByText('This appears to contain a provider key. Remove it; nothing was sent.').waitFor()
    expect(sent).toEqual([])
    await page.getByLabel('What happened').fill('It fails with every key since noon.')
    expect(await page.getByText('This appears to contain').count()).toBe(0)
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('heading', { name: 'We have your message' }).waitFor()
    expect(sent.length).toBe(1)
  })

  test('one click leads from an error code to the page with its fix', async () => {
    await page.goto(`${service.config.appUrl}/docs/errors/key_missing`)
    await page.getByRole('main').getByRole('link', { name: 'Get a key' }).click()
    await page.getByLabel('Email address').waitFor()
  })
})
