import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { RunOptions } from 'axe-core'
import type { Page } from 'playwright-core'

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const everyRule = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
/** The rules whose result depends on colors. */
const colorRules = { type: 'rule', values: ['color-contrast', 'link-in-text-block'] } satisfies RunOptions['runOnly']

/** The accessibility rules that a page violates in its current state, with the violating elements. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(source)
  return run(page, everyRule)
}

/**
 * Like `violations`: all rules in the light theme, then the rules about colors in the dark theme, which remains set.
 */
export async function violationsInBothThemes(page: Page): Promise<string[]> {
  await page.emulateMedia({ colorScheme: 'light' })
  const light = await violations(page)
  await page.emulateMedia({ colorScheme: 'dark' })
  return [...light, ...(await run(page, colorRules)).map((each) => `dark: ${each}`)]
}

async function run(page: Page, runOnly: NonNullable<RunOptions['runOnly']>): Promise<string[]> {
  // Omit passed rules: axe would describe each of their elements, which takes most of its time.
  const options: RunOptions = { runOnly, resultTypes: ['violations'], selectors: false }
  return page.evaluate<string[]>(`axe.run(document, ${JSON.stringify(options)}).then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html.slice(0, 120)).join(' | ')))`)
}
