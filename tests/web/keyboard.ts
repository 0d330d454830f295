import type { Page } from 'playwright-core'
import { expect } from 'vitest'

/** More stops than any page has before what is looked for. */
const maxPresses = 60

/** What has the focus, as somebody who only listens knows it. */
export function focused(page: Page): Promise<string> {
  return page.evaluate<string>(
    `(document.activeElement?.name || document.activeElement?.textContent || '').replace(/\\s+/g, ' ').trim()`,
  )
}

/** Presses Tab until the wanted one has the focus; it must be visible that it has. */
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
 * Runs in the page: notes what gets the focus from now on, and begins at the top. Gives how often Tab leads to the end.
 */
const watchFocus = `(() => {
  // After a click a script's focus need not show: what is looked at begins behind the first link.
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
  // Parts of a date are stops of their own.
  return stops.length + 4 * stops.filter(({ type }) => type === 'date').length
})()`

/** What of a page Tab does not reach, or does not show that it has. */
export async function faultsByKeyboard(page: Page): Promise<string[]> {
  const presses = await page.evaluate<number>(watchFocus)
  // As if the key were held down: nothing waits for each single step.
  await Promise.all(Array.from({ length: presses }, () => page.keyboard.down('Tab')))
  await page.keyboard.up('Tab')
  const { missed, unmarked } = await page.evaluate<{ missed: string[]; unmarked: string[] }>('focusNotes()')
  return [...missed.map((each) => `not reached: ${each}`), ...unmarked.map((each) => `not shown: ${each}`)]
}
