import type { Page } from 'playwright-core'

/** The kinds of visitors. */
export const beholders = ['nobody', 'account', 'operator'] as const

/** A page in one of its states, and how a browser reaches it. */
export interface PageState {
  readonly name: string
  /** Who must be signed in: an account with keys, providers, and two addresses, or an operator. */
  readonly as: (typeof beholders)[number]
  show(page: Page, origin: string): Promise<void>
}

type Show = PageState['show']

/** A page state for every visitor. */
export const nobody = (name: string, show: Show): PageState => ({ name, as: 'nobody', show })

/** A page state for an account. */
export const somebody = (name: string, show: Show): PageState => ({ name, as: 'account', show })

/** A page state for an operator. */
export const operator = (name: string, show: Show): PageState => ({ name: `operator-${name}`, as: 'operator', show })

/** Opens a page. */
export const at =
  (path: string): Show =>
  async (page, origin) =>
    void (await page.goto(`${origin}${path}`))

/** Opens all collapsible elements of a page. */
export async function openSummaries(page: Page): Promise<void> {
  const closed = page.locator('details:not([open]) > summary')
  for (let count = await closed.count(); count > 0; count--) await closed.first().click()
  if ((await closed.count()) > 0) throw new Error('a collapsible element does not open')
}

/** Opens a page, unless the previous state shows it, and all its collapsible elements. */
export const openAll =
  (path: string): Show =>
  async (page, origin) => {
    if (page.url() !== `${origin}${path}`) await page.goto(`${origin}${path}`)
    await openSummaries(page)
  }

/** Types an address into its field, and waits for the field of the emailed code. */
export async function askForCode(page: Page, origin: string, path: string, email: string): Promise<void> {
  await page.goto(`${origin}${path}`)
  await page.getByLabel('Email address').fill(email)
  await page.getByRole('button', { name: 'Send the code' }).click()
  await page.getByLabel('Code').waitFor()
}

/** Runs in the page: finds elements that are wider than the page, and by how much. */
export const tooWide = `(() => {
  const over = document.documentElement.scrollWidth - innerWidth
  if (over <= 0) return []
  const wide = [...document.querySelectorAll('body *')]
    .filter((element) => element.getBoundingClientRect().right > innerWidth + 0.5)
    .slice(0, 5).map((element) => over + ' px: ' + element.outerHTML.slice(0, 100))
  return wide.length > 0 ? wide : [over + ' px']
})()`
