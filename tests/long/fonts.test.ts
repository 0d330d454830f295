import { afterAll, describe, expect, test } from 'vitest'
import { Service } from '../service.ts'
import { hasChromium, startChromium } from '../web/chromium.ts'
import { byName, everyPage, signInAs } from '../web/every-page.ts'
import { fillAccount } from '../web/fill-account.ts'
import { fontSets } from '../web/font-sets.ts'
import { beholders, tooWide } from '../web/page-state.ts'

const suite = hasChromium('The layout under other fonts') ? describe : describe.skip
const fonts = fontSets()

suite('a layout that does not depend on installed fonts', () => {
  afterAll(() => fonts.remove())
  // The machine has only one kind of font, and every-page.test.ts tests the same pages with it.
  if (fonts.sets.length === 0) test.skip('every page fits into 320 pixels with other fonts')

  test.each(fonts.sets)(
    'every page fits into 320 pixels with $name',
    async ({ configPath }) => {
      const service = await Service.start()
      await fillAccount(service)
      const browser = await startChromium([], { FONTCONFIG_FILE: configPath })
      const found: string[] = []
      for (const as of beholders) {
        const context = await browser.newContext({ viewport: { width: 320, height: 640 } })
        context.setDefaultTimeout(10_000)
        const page = await context.newPage()
        const origin = byName(service)
        await signInAs(as, page, service, origin)
        for (const state of everyPage.filter((each) => each.as === as)) {
          await state.show(page, origin)
          const wide = await page.evaluate<string[]>(tooWide)
          found.push(...wide.map((each) => `${state.name}: ${each}`))
        }
        await context.close()
      }
      await browser.close()
      await service.stop()
      expect(found).toEqual([])
    },
    240_000,
  )
})
