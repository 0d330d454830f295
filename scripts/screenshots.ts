// npm run screenshots [FOLDER]: takes screenshots of every page of the real service, in the light and the dark theme and
// in desktop and phone size.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Service } from '../tests/service.ts'
import { startChromium } from '../tests/web/chromium.ts'
import { byName, everyPage, signInAs } from '../tests/web/every-page.ts'
import { fillAccount } from '../tests/web/fill-account.ts'
import { beholders } from '../tests/web/page-state.ts'

const folder = process.argv[2] ?? '.cache/screenshots'
const sizes = [
  { name: 'desk', width: 1280, height: 800 },
  { name: 'phone', width: 320, height: 640 },
] as const

mkdirSync(folder, { recursive: true })
const browser = await startChromium()
try {
  for (const colorScheme of ['light', 'dark'] as const) for (const size of sizes) await photograph(colorScheme, size)
  console.log(`${everyPage.length * 4} pictures in ${folder}`)
} finally {
  await browser.close()
}

/** Takes one set of screenshots with its own service, because the number of emails of a service is limited. */
async function photograph(
  colorScheme: 'light' | 'dark',
  { name, width, height }: (typeof sizes)[number],
): Promise<void> {
  const service = await Service.start()
  try {
    await fillAccount(service)
    for (const as of beholders) {
      const context = await browser.newContext({ colorScheme, viewport: { width, height } })
      const page = await context.newPage()
      await signInAs(as, page, service, byName(service))
      for (const state of everyPage.filter((each) => each.as === as)) {
        await state.show(page, byName(service))
        await page.screenshot({ path: join(folder, `${state.name}-${name}-${colorScheme}.png`), fullPage: true })
      }
      await context.close()
    }
  } finally {
    await service.stop()
  }
}
