import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { pythonWithOpenai } from '../clients/python.ts'
import type { Service } from '../service.ts'
import { hasChromium } from '../web/chromium.ts'
import { placeSession } from '../web/every-page.ts'
import { WatchedPages } from './watched-pages.ts'

const stepMs = 10_000
const run = promisify(execFile)
const suite = hasChromium('The playground') ? describe : describe.skip
const pages = new WatchedPages()
let service: Service
let page: Page

async function open(path = '/playground', options: Parameters<WatchedPages['openAlone']>[0] = {}): Promise<void> {
  page = await pages.openAlone(options)
  await placeSession(page, service)
  await page.goto(`${service.config.appUrl}${path}`)
}

async function send(text: string): Promise<void> {
  await page.getByLabel('Your message').fill(text)
  await page.getByRole('button', { name: 'Send', exact: true }).click()
}

const answered = (text: string): Promise<void> => page.locator('.turn.assistant').last().getByText(text).waitFor()
const focused = (): Promise<string> =>
  page.evaluate<string>('document.activeElement.id || document.activeElement.textContent')
const lastSent = (provider = service.providers[0]!): Record<string, unknown> =>
  JSON.parse(provider.captured().at(-1)!.body) as Record<string, unknown>

/** The reply of a simulated judge, with an entry in each part of its form. */
const judged = JSON.stringify({
  answer_type: 'open',
  verdict: 'synthesize',
  scores: Object.fromEntries(
    ['A', 'B'].map((label) => [label, { correct: 7, complete: 6, grounded: 7, instruction: 8, format: 8 }]),
  ),
  consensus: [{ claim: 'An index slows writing down.', support: ['A', 'B'], confidence: 0.9 }],
  contradictions: [
    {
      topic: 'How long the lock is held',
      material: true,
      positions: [
        { labels: ['A'], claim: 'for a moment' },
        { labels: ['B'], claim: 'until the end' },
      ],
    },
  ],
  outline: ['Say both.'],
})

suite('the playground in a browser', () => {
  // Chromium logs the status of rejections in its console.
  pages.watch(/status of (401|403|404|503)/)
  beforeEach(() => void ({ service } = pages))

  test('text is streamed in steps and not announced to screen readers piece by piece', async () => {
    await open()
    service.providers[0]!.script([{ do: 'answer', words: 40, tokenDelayMs: 40 }])
    await page.evaluate(`
      window.spoken = []
      new MutationObserver(() => window.spoken.push(document.getElementById('said').textContent))
        .observe(document.getElementById('said'), { childList: true, characterData: true, subtree: true })`)
    await send('Count.')
    const lengths = new Set<number>()
    const text = page.locator('.turn.assistant :is(.text:not(.thinking), .said)').last()
    while (await page.getByRole('button', { name: 'Stop' }).isVisible()) {
      lengths.add(((await text.textContent()) ?? '').length)
      await page.waitForTimeout(20)
    }
    lengths.delete(0)
    expect(lengths.size).toBeGreaterThan(4)
    expect(((await text.textContent()) ?? '').length).toBeGreaterThanOrEqual(Math.max(...lengths))
    const spoken = await page.evaluate<string[]>('window.spoken')
    expect(spoken).toEqual(['Request sent to svc-router/frontier.', `Answer: ${(await text.textContent())!}`])
    expect(await focused()).toBe('message')
  })

  test('without streaming the whole answer is shown, and the next request includes the history and the system message', async () => {
    await open()
    await page.getByLabel('Stream the answer').uncheck()
    await page.getByLabel('System message').fill('Be short.')
    await send('First.')
    await answered('simulated answer')
    await send('Second.')
    await expect.poll(() => page.locator('.turn.assistant').count()).toBe(2)
    await answered('Second')
    const sent = lastSent()
    expect(sent['stream']).toBe(false)
    expect((sent['messages'] as { role: string; content: string }[]).map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'user',
    ])
    await page.getByRole('button', { name: 'Change “First.”' }).click()
    expect(await page.getByLabel('Your message').inputValue()).toBe('First.')
    expect(await page.locator('.turn').count()).toBe(0)
  })

  test('Stop ends the answer, here and at the provider, and keeps the text so far', async () => {
    await open()
    const [provider] = service.providers
    provider!.script([{ do: 'answer', words: 1000, tokenDelayMs: 20 }])
    await send('Continue forever.')
    await expect
      .poll(async () => (await page.locator('.turn.assistant .text:not(.thinking)').textContent())?.length)
      .toBeGreaterThan(10)
    expect(await focused()).toBe('stop')
    await page.keyboard.press('Enter')
    await expect.poll(() => provider!.counts().aborted).toBe(1)
    await page.locator('.turn.assistant .tag', { hasText: 'stopped' }).waitFor()
    await page.locator('#trail').getByText('1 request', { exact: true }).waitFor()
  })

  test('a tool call is shown, takes a result, and continues the answer', async () => {
    await open()
    await page.getByRole('button', { name: 'Insert an example' }).click()
    const calls = JSON.stringify([{ name: 'get_weather', arguments: { city: 'Lisbon' } }])
    service.providers[0]!.script([
      { do: 'answer', text: 'Let me look.', calls },
      { do: 'answer', text: 'It is 18 degrees.' },
    ])
    await send('How warm is it in Lisbon?')
    await page.getByLabel('Result of get_weather').waitFor()
    expect(await page.locator('.call pre').textContent()).toContain('"city": "Lisbon"')
    expect(await focused()).toBe('result-0')
    await page.keyboard.type('{"temperature_c": 18}')
    await page.getByRole('button', { name: 'Send the result' }).click()
    await answered('It is 18 degrees.')
    const messages = lastSent()['messages'] as Record<string, unknown>[]
    const [called, result] = messages.slice(-2)
    const [call] = called!['tool_calls'] as { id: string; function: { name: string; arguments: string } }[]
    expect(JSON.parse(call!.function.arguments)).toEqual({ city: 'Lisbon' })
    expect(result).toEqual({ role: 'tool', tool_call_id: call!.id, content: '{"temperature_c": 18}' })
  })

  test('tools that are not a JSON list are not sent, and the field says why', async () => {
    await open()
    await page.getByLabel('Tools').fill('{"type": ')
    await send('Hello.')
    await page.getByText('This is not JSON').waitFor()
    expect(await focused()).toBe('tools')
    expect(service.providers[0]!.counts().requests).toBe(0)
  })

  test('after a failover the trail shows two attempts, and the headers name the backend that answered', async () => {
    await open()
    service.providers[0]!.script([{ do: 'status', status: 503 }])
    await send('Hello.')
    await answered('beta')
    await expect
      .poll(() => page.locator('#trail tbody tr').allTextContents())
      .toEqual([expect.stringMatching(/^alphaserver error503/), expect.stringMatching(/^betaanswered/)])
    expect(await page.locator('#trail dl').textContent()).toMatch(
      /Backends that failed first1[\s\S]*99,999 of 100,000 left/,
    )
    expect(await page.locator('#headers').textContent()).toContain('x-svc-router-upstream: beta')
    expect(await page.locator('#came').textContent()).toContain('data: [DONE]')
    await page.locator('#trail').getByRole('link', { name: /^req_/ }).click()
    await page.getByRole('heading', { name: 'Attempts' }).waitFor()
    await page.getByRole('link', { name: 'Try this profile in the playground' }).click()
    expect(await page.getByLabel('Profile').inputValue()).toBe('svc-router/frontier')
    expect(await page.getByLabel('Your message').inputValue()).toBe('')
  })

  test('a fusion shows its progress, the members that answered and failed, and where they agree and differ', async () => {
    await open('/playground?profile=svc-router%2Ffusion')
    const slow = { do: 'slow_headers', ms: 1500 } as const
    service.providers[0]!.script([
      { ...slow, text: 'For a moment.' },
      { do: 'answer', text: judged },
      { do: 'answer', text: judged },
      { do: 'answer', text: 'It depends on the lock.' },
    ])
    service.providers[1]!.script([{ do: 'answer', text: 'Until the end.' }])
    service.providers[2]!.script([{ do: 'status', status: 401, repeat: true }])
    await send('How long is the table locked?')
    await page.getByText('The models are working…').first().waitFor()
    await page
      .getByText(/models were asked/)
      .first()
      .waitFor()
    await answered('It depends on the lock.')
    const fused = page.locator('#fused')
    await fused.getByText('An index slows writing down.').waitFor()
    await fused.getByText('How long the lock is held').waitFor()
    await fused.getByRole('table').waitFor()
    const text = (await fused.textContent())!
    expect(text).toMatch(/Models asked2 of 3 models answered/)
    expect(text).toMatch(/Result of the comparisonsynthesize/)
    expect(text).toMatch(/Droppedgamma \(rejected credentials\)/)
    expect(text).toMatch(/synthesisalphaanswered/)
    expect(text).toContain('until the end')
    expect(await page.locator('#trail').textContent()).toContain('1 request')
  })

  test('a plan without fusion links to other plans; if the plan changes meanwhile, the error does', async () => {
    await service.putOnPlan(service.account.id, 'free')
    await open('/playground?profile=svc-router%2Ffusion')
    await page.getByText('requires a premium plan').waitFor()
    expect(await page.getByRole('button', { name: 'Send' }).isVisible()).toBe(false)
    expect(await page.getByLabel('Attach the fusion tool').isDisabled()).toBe(true)
    await service.putOnPlan(service.account.id, 'max')
    await page.reload()
    await service.putOnPlan(service.account.id, 'free')
    await send('Hello.')
    const alert = page.getByRole('alert').filter({ hasText: 'premium' })
    await alert.getByRole('link', { name: /\/billing\/upgrade$/ }).click()
    await page.waitForURL('**/billing/upgrade')
  })

  test('a broken answer can be requested again, and only answered requests are counted', async () => {
    await open()
    for (const provider of service.providers) provider.script([{ do: 'status', status: 503 }])
    await send('Hello.')
    await page.getByRole('alert').getByText('could answer right now').waitFor()
    expect(await focused()).toContain('Send it again')
    await page.locator('#trail').getByText('0 requests').waitFor({ state: 'attached' })
    expect(await page.locator('#trail dl').textContent()).not.toContain('failed first')
    await expect
      .poll(
        async () => {
          await page.getByRole('button', { name: 'Send it again' }).click()
          await page.getByRole('button', { name: 'Stop' }).waitFor({ state: 'hidden' })
          return page.locator('.turn.assistant').count()
        },
        { timeout: stepMs, interval: 500 },
      )
      .toBe(1)
    expect(await page.locator('.turn.user').count()).toBe(1)
  })

  test('an ended session is explained', async () => {
    await open()
    await page.context().clearCookies()
    await send('Hello.')
    await page.getByRole('alert').getByText('You are signed out').waitFor()
  })

  test('without scripts the page says that it needs them and shows the same request for a terminal', async () => {
    await open('/playground', { javaScriptEnabled: false })
    await page.getByRole('heading', { name: 'This page needs JavaScript' }).waitFor()
    expect(await page.locator('#plain-curl').textContent()).toContain(`${service.baseUrl}/chat/completions`)
    expect(await page.getByLabel('Your message').isVisible()).toBe(false)
  })

  test('the keyboard alone suffices', async () => {
    await open()
    await page.locator('#message').focus()
    await page.keyboard.type('Hello by keys.')
    await page.keyboard.press('Control+Enter')
    await answered('Hello by keys.')
    expect(await focused()).toBe('message')
    const reached = new Set<string>()
    await page.locator('#profile').focus()
    const isPastTheLast = (): Promise<boolean> => page.evaluate<boolean>('document.activeElement === document.body')
    for (let presses = 0; presses < 40 && !(await isPastTheLast()); presses++) {
      reached.add(await focused())
      const outline = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')
      expect(outline, `${await focused()} shows that it has the focus`).not.toBe('none')
      await page.keyboard.press('Tab')
    }
    for (const id of ['profile', 'stream', 'fusion', 'system', 'tools', 'example', 'anew', 'message', 'send', 'look-0'])
      expect(reached, `the keyboard reaches ${id}`).toContain(id)
    await page.locator('#look-0').focus()
    for (let presses = 0; presses < 5; presses++) await page.keyboard.press('ArrowRight')
    await page.locator('#curl').waitFor()
  })

  test("the code samples send the same request with curl and OpenAI's libraries", async () => {
    await open()
    const said = `It's "50 %" of $HOME \\ \`true\`, isn't it?\nYes.`
    await page.getByRole('button', { name: 'Insert an example' }).click()
    await page.getByLabel('Your message').fill(said)
    const codeOf = async (id: string): Promise<string> => (await page.locator(`#${id}`).textContent()) ?? ''
    const env = { ...process.env, SVC_ROUTER_API_KEY: service.key }
    const messageOf = (body: Record<string, unknown>): unknown =>
      (body['messages'] as { content: string }[]).at(-1)?.content
    // A fake curl prints its arguments, to show whether the shell parses them correctly.
    const stub = `curl() { for each in "$@"; do printf '%s\\0' "$each"; done; }`
    const { stdout } = await run('sh', ['-c', `${stub}\n${await codeOf('curl')}`], { env })
    const given = stdout.split('\0')
    expect(given).toContain(`${service.baseUrl}/chat/completions`)
    expect(given).toContain(`Authorization: Bearer ${service.key}`)
    const body = JSON.parse(given[given.indexOf('-d') + 1]!) as Record<string, unknown>
    expect([messageOf(body), (body['tools'] as unknown[]).length]).toEqual([said, 1])
    const [provider] = service.providers
    await run(process.execPath, ['--input-type=module', '-e', await codeOf('javascript')], { env })
    expect([provider!.counts().requests, messageOf(lastSent())]).toEqual([1, said])
    const python = pythonWithOpenai('the playground’s Python')
    if (python !== undefined) {
      await run(python, ['-c', await codeOf('python')], { env })
      expect([provider!.counts().requests, messageOf(lastSent())]).toEqual([2, said])
    }
    expect((await codeOf('curl')) + (await codeOf('python'))).not.toContain(service.key)
  })
})
