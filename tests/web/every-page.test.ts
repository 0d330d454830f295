import { describe, expect, onTestFinished, test } from 'vitest'
import { violations } from './axe.ts'
import { hasChromium, lendPage } from './chromium.ts'
import { faultsByKeyboard } from './keyboard.ts'
import { faultsInDocument, testEveryPageOf } from './page-rules.ts'
import { tooWide } from './page-state.ts'

const suite = hasChromium('What holds for every page') ? describe : describe.skip

suite('what looks for faults', () => {
  test('the page checker detects deliberate problems', async () => {
    const page = await lendPage()
    onTestFinished(() => page.context().close())
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
      ...(await violations(page)),
      ...(await page.evaluate<string[]>(tooWide)),
    ].join('\n')
    const faults = ['first level: 0', 'title', 'lang', 'quirks', 'twice: a', 'inline style', 'inline script', 'handler']
    const more = ['label of nothing', 'aria-describedby', 'link to nothing', 'button of no form', 'picture without']
    const rules = ['label: ', 'color-contrast: ', 'px: <p style="color:#ddd']
    for (const fault of [...faults, ...more, ...rules, 'not reached: <a href="/x"', 'not shown: <a href="/y"'])
      expect(found).toContain(fault)
  })
})

testEveryPageOf('nobody')
