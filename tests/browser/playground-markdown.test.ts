import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Service } from '../service.ts'
import { hasChromium } from '../web/chromium.ts'
import { placeSession } from '../web/every-page.ts'
import { WatchedPages } from './watched-pages.ts'

const suite = hasChromium('Answers and fields of the playground') ? describe : describe.skip
const pages = new WatchedPages()
let service: Service
let page: Page

async function open(): Promise<void> {
  page = await pages.openAlone()
  await placeSession(page, service)
  await page.goto(`${service.config.appUrl}/playground`)
}

async function send(text: string): Promise<void> {
  await page.getByLabel('Your message').fill(text)
  await page.getByRole('button', { name: 'Send', exact: true }).click()
}

/** Makes the model answer with this text, and returns the HTML that the page renders. */
async function htmlOf(text: string): Promise<string> {
  service.providers[0]!.script([{ do: 'answer', text }])
  const before = await page.locator('.turn.assistant .said').count()
  await send('Go on.')
  await expect.poll(() => page.locator('.turn.assistant .said').count()).toBe(before + 1)
  return page.locator('.turn.assistant .said').last().innerHTML()
}

const lastSent = (): Record<string, unknown> =>
  JSON.parse(service.providers[0]!.captured().at(-1)!.body) as Record<string, unknown>
/** The requests of this test and of those before it. */
let askedBefore: number
const allAsked = (): number => service.providers[0]!.counts().requests
const asked = (): number => allAsked() - askedBefore
const focused = (): Promise<string> => page.evaluate<string>('document.activeElement.id')

suite('an answer of the playground', () => {
  pages.watch(/status of (400|503)/, { isShared: true })
  beforeEach(async () => {
    ;({ service } = pages)
    askedBefore = allAsked()
    await open()
  })

  test('an answer is rendered as Markdown', async () => {
    const text = [
      '# Title\n\n### Below\n\nA **bold** and *slanted* `word`,\nsnake_case_name, 2 \\* 3.',
      '- one\n  - inner\n\n    ```js\n    if (a < b) {\n      go()\n    }\n    ```\n- two\n\n3. third\n4. fourth',
      '> said\n\n---\n\n| A | B |\n|---|---|\n| 1 | `x \\| y` |',
      'See [the site](https://example.com/a_(b)) and https://example.com/c.',
    ].join('\n\n')
    const html = await htmlOf(text)
    for (const part of [
      '<h3>Title</h3><h4>Below</h4>',
      '<p>A <strong>bold</strong> and <em>slanted</em> <code>word</code>,\nsnake_case_name, 2 * 3.</p>',
      '<li>one<ul><li>inner<pre tabindex="0"><code>if (a &lt; b) {\n  go()\n}</code></pre></li></ul></li><li>two</li>',
      '<ol start="3"><li>third</li><li>fourth</li></ol>',
      '<blockquote><p>said</p></blockquote><hr>',
      '<td><span><code>x | y</code></span></td>',
      'href="https://example.com/a_(b)" target="_blank" rel="noopener noreferrer nofollow">the site</a>',
      '>https://example.com/c</a>.',
    ])
      expect(html).toContain(part)
  })

  test('an answer cannot contain HTML elements or scripts, and links only to the web', async () => {
    const text = [
      '<img src=x onerror="window.broken = 1"> <script>window.broken = 1</script>',
      '[a](javascript:window.broken=1) [b](JaVaScRiPt:alert(1)) [c](data:text/html,x) [d](//evil.example) [e](/account)',
      '![picture](https://evil.example/x.png) [f](https://evil.example/" onclick="window.broken=1)',
      '```html\n</code></pre><img src=x onerror="window.broken = 1">\n```',
      '| <b>a</b> | b |\n|---|---|\n| <i onclick=x>1</i> | 2 |',
    ].join('\n\n')
    await htmlOf(text)
    const shown = page.locator('.turn.assistant .said')
    expect(await shown.locator('img, script, iframe, b, i, [onclick], [onerror], [style], [src]').count()).toBe(0)
    const links = await shown.locator('a').all()
    const hrefs = await Promise.all(links.map((link) => link.getAttribute('href')))
    expect(hrefs).toEqual(['https://evil.example/x.png', 'https://evil.example/'])
    expect(await page.evaluate('window.broken')).toBeUndefined()
    expect(await shown.textContent()).toContain('<img src=x onerror="window.broken = 1">')
  })

  test('an answer can be switched to its raw text and back, without losing form input', async () => {
    const calls = JSON.stringify([{ name: 'get_weather', arguments: {} }])
    await page.getByRole('button', { name: 'Insert an example' }).click()
    service.providers[0]!.script([{ do: 'answer', text: 'Let me **look**.', calls }])
    await send('Weather?')
    await page.getByLabel('Result of get_weather').fill('warm')
    await page.locator('.turn.assistant strong').waitFor()
    await page.getByLabel('Show answers as raw text').check()
    expect(await page.locator('.turn.assistant .said').textContent()).toBe('Let me **look**.')
    await page.getByLabel('Show answers as raw text').uncheck()
    await page.locator('.turn.assistant strong').waitFor()
    expect(await page.getByLabel('Result of get_weather').inputValue()).toBe('warm')
  })
})

suite('the fields of the playground', () => {
  pages.watch(/status of (400|503)/, { isShared: true })
  beforeEach(async () => {
    ;({ service } = pages)
    askedBefore = allAsked()
    await open()
  })

  test('temperature and maximum tokens are sent if set and omitted if empty', async () => {
    await send('First.')
    await page.locator('.turn.assistant .said').waitFor()
    expect(Object.keys(lastSent())).not.toContain('temperature')
    await page.getByLabel('Temperature').fill('0.3')
    await page.getByLabel('Maximum tokens').fill('64')
    expect(await page.locator('#curl').textContent()).toContain('"temperature": 0.3')
    await send('Second.')
    await expect.poll(asked).toBe(2)
    const { temperature, max_completion_tokens: most = lastSent()['max_tokens'] } = lastSent()
    expect([temperature, most]).toEqual([0.3, 64])
  })

  test.each([
    ['Temperature', 'temperature', ['2.1', '-1', 'warm', '1e0', '0x1']],
    ['Maximum tokens', 'max-tokens', ['0', '1.5', '1000001', '-4', '1e3', 'many']],
  ])('an invalid %s is not sent, and the field says why', async (label, id, values) => {
    for (const value of values) {
      await page.getByLabel(label).fill(value)
      await send('Hello.')
      expect(await page.locator(`#${id}-wrong`).textContent(), value).toMatch(/^Enter a .*number from/)
      expect(await focused(), value).toBe(id)
      expect(await page.locator(`#${id}`).getAttribute('aria-invalid')).toBe('true')
    }
    expect(asked()).toBe(0)
    await page.getByLabel(label).fill('1')
    expect(await page.locator(`#${id}-wrong`).textContent()).toBe('')
  })

  test('an image is sent with one message, is named in the conversation, and can be edited back in', async () => {
    const buffer = Buffer.from('made-up picture')
    const image = page.getByLabel('Image')
    await image.setInputFiles({ name: 'cat.png', mimeType: 'image/png', buffer })
    await page.locator('#attached').getByText('cat.png, 1 kB').waitFor()
    const url = `data:image/png;base64,${buffer.toString('base64')}`
    expect(await page.locator('#curl').textContent()).not.toContain(url)
    expect(await page.locator('#curl').textContent()).toContain('IMAGE_IN_BASE64')
    await send('What is this?')
    await page.locator('.turn.assistant .said').waitFor()
    expect((lastSent()['messages'] as { content: unknown }[])[0]!.content).toEqual([
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url } },
    ])
    await page.getByText('With the image cat.png').waitFor()
    expect(await page.locator('#attached').textContent()).toBe('')
    await page.getByRole('button', { name: /^Change/ }).click()
    expect(await page.getByLabel('Your message').inputValue()).toBe('What is this?')
    await page.getByRole('button', { name: 'Remove the image' }).click()
    expect(await page.locator('#attached').textContent()).toBe('')
  })

  test.each([
    ['is too large', 'image/png', 2_500_001, 'can be at most 2,500 kB in total'],
    ['is no image', 'text/html', 10, 'Choose a PNG, JPEG, WebP, or GIF image'],
    ['may hold script', 'image/svg+xml', 10, 'Choose a PNG, JPEG, WebP, or GIF image'],
  ])('a file that %s is not attached, and the field says why', async (_, mimeType, bytes, words) => {
    await page.getByLabel('Image').setInputFiles({ name: 'file', mimeType, buffer: Buffer.alloc(bytes) })
    await page.locator('#image-wrong').getByText(words).waitFor()
    expect(await page.locator('#attached').textContent()).toBe('')
  })

  test('all images of one conversation together stay within the limit', async () => {
    const attach = (name: string): Promise<void> =>
      page.getByLabel('Image').setInputFiles({ name, mimeType: 'image/png', buffer: Buffer.alloc(1_500_000) })
    await attach('one.png')
    await page.locator('#attached').getByText('one.png').waitFor()
    await send('Look.')
    await page.locator('.turn.assistant .said').waitFor()
    await attach('two.png')
    await page.locator('#image-wrong').getByText('in total').waitFor()
  })
})
