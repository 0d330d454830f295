import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasChromium, lendPage } from '../web/chromium.ts'
import { tooWide } from '../web/page-state.ts'
import { violations } from './axe.ts'
import { faultsByKeyboard } from './keyboard.ts'
import { faultsInDocument, testEveryPageOf } from './page-rules.ts'

const suite = hasChromium('What holds for every page') ? describe : describe.skip

suite('what looks for faults', () => {
  let page: Page
  beforeAll(async () => {
    page = await lendPage()
  })
  // Not returned, because its theme has changed.
  afterAll(() => page.context().close())

  test('the page checker detects deliberate problems', async () => {
    // The blank page of a reused page has the security policy of the previous document.
    await page.goto('about:blank')
    await page.setContent(
      `<title>Nothing</title><a class="skip" href="#main">Skip</a><i id="a" style="color:red"></i><i id="a"></i>
       <label for="none">Of nothing</label><p aria-describedby="none"></p><button>Lost</button><img src="x.png">
       <script>1</script><p onclick="1"></p><a href="/x" tabindex="-1">Never</a><a href="/y" style="outline:none">Dark</a>
       <input><p style="color:#ddd;background:#fff;width:9000px">pale</p>`,
    )
    const found = [
      ...(await page.evaluate<string[]>(faultsInDocument)),
      ...(await faultsByKeyboard(page)),
      ...(await violations(page, new Set())),
      ...(await page.evaluate<string[]>(tooWide)),
    ].join('\n')
    const faults = ['first level: 0', 'title', 'lang', 'quirks', 'twice: a', 'inline style', 'inline script', 'handler']
    const more = ['label of nothing', 'aria-describedby', 'link to nothing', 'button of no form', 'picture without']
    const rules = ['label: ', 'color-contrast: ', 'px: <p style="color:#ddd']
    for (const fault of [...faults, ...more, ...rules, 'not reached: <a href="/x"', 'not shown: <a href="/y"'])
      expect(found).toContain(fault)
  })

  test.each([
    ['on another background', '<p style="background:#bbb"><b>text</b></p>'],
    ['in a translucent element', '<p style="opacity:.8"><b>text</b></p>'],
    ['in a smaller font', '<p><b style="font-size:14px">text</b></p>'],
    [
      'over another element',
      '<div style="position:relative"><p style="background:#bbb;height:9em"></p><b style="position:absolute;top:1em">text</b></div>',
    ],
    ['only in the dark theme', '<section><b>text</b></section>'],
    ['as a link in text', '<p style="color:#777;font-size:30px">much more text <a href="/x">text</a></p>'],
  ])('the page checker judges colors that it has accepted again %s', async (_, html) => {
    await page.goto('about:blank')
    const style =
      'b,a{color:#858585;font-size:30px;text-decoration:none}@media(prefers-color-scheme:dark){section b{background:#999}}'
    const judged = new Set<string>()
    const show = async (body: string): Promise<string> => {
      await page.setContent(
        `<html lang="en"><title>Title</title><style>${style}</style><main><h1>One</h1>${body}</main>`,
      )
      return (await violations(page, judged)).join('\n')
    }
    expect(await show('<p><b>text</b></p>')).toBe('')
    const { size } = judged
    expect(await show('<p><b>the same</b></p>')).toBe('')
    expect(judged.size).toBe(size)
    expect(await show(html)).toMatch(/color-contrast|link-in-text-block/)
  })
})

testEveryPageOf('nobody')
