import type { Page } from 'playwright-core'
import { expect } from 'vitest'

/** More tab stops than any page has before the wanted element. */
const maxPresses = 60

/** The name of the focused element for users of screen readers. */
export function focused(page: Page): Promise<string> {
  return page.evaluate<string>(
    `(document.activeElement?.name || document.activeElement?.textContent || '').replace(/\\s+/g, ' ').trim()`,
  )
}

/** Presses Tab until the wanted element has the focus, which must be visible. */
export async function tabTo(page: Page, wanted: string, tag?: string): Promise<void> {
  for (let presses = 0; presses < maxPresses; presses++) {
    const isThere = (await focused(page)) === wanted
    if (isThere && (tag === undefined || (await page.evaluate('document.activeElement.tagName')) === tag)) {
      const outline = await page.evaluate<string>('getComputedStyle(document.activeElement).outlineStyle')
      expect(outline, `${wanted} shows that it has the focus`).not.toBe('none')
      return
    }
    await page.keyboard.press('Tab')
  }
  throw new Error(`the keyboard does not reach ${wanted}`)
}

/**
 * Runs in the page: records focus changes from now on, starting at the top. Returns the number of tab stops.
 */
const watchFocus = `(() => {
  // After a click, the focus that a script sets need not be visible, so start after the first link.
  const skip = document.querySelector('.skip')
  skip.focus()
  const seen = new Set([skip])
  const unmarked = []
  addEventListener('focusin', ({ target }) => {
    seen.add(target)
    const shown = target.closest('.tabs') !== null && target.type === 'radio' ? target.nextElementSibling : target
    if (getComputedStyle(shown).outlineStyle === 'none') unmarked.push(target.outerHTML.slice(0, 120))
  })
  const first = (radio) => {
    const group = [...document.getElementsByName(radio.name)].filter(({ form }) => form === radio.form)
    return group.find(({ checked }) => checked) ?? group[0]
  }
  const stops = [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]')]
    .filter((each) => each.checkVisibility() && !each.disabled && (each.type !== 'radio' || first(each) === each))
  globalThis.focusNotes = () => ({ missed: stops.filter((each) => !seen.has(each)).map((each) => each.outerHTML.slice(0, 120)), unmarked })
  // Each part of a date is a tab stop.
  return stops.length + 4 * stops.filter(({ type }) => type === 'date').length
})()`

/** The elements of a page that Tab does not reach, or whose focus is not visible. */
export async function faultsByKeyboard(page: Page): Promise<string[]> {
  const presses = await page.evaluate<number>(watchFocus)
  // As if the key were held down, without a wait after each step.
  await Promise.all(Array.from({ length: presses }, () => page.keyboard.down('Tab')))
  await page.keyboard.up('Tab')
  const { missed, unmarked } = await page.evaluate<{ missed: string[]; unmarked: string[] }>('focusNotes()')
  return [...missed.map((each) => `not reached: ${each}`), ...unmarked.map((each) => `not shown: ${each}`)]
}
