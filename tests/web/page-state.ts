import type { Page } from 'playwright-core'

/** Who looks at pages. */
export const beholders = ['nobody', 'account', 'operator'] as const

/** A page in one of its states, and how a browser comes to see it. */
export interface PageState {
  readonly name: string
  /** Who must be signed in: somebody with keys, providers and two addresses, or an operator. */
  readonly as: (typeof beholders)[number]
  show(page: Page, origin: string): Promise<void>
}

type Show = PageState['show']

/** A row of what anybody sees. */
export const nobody = (name: string, show: Show): PageState => ({ name, as: 'nobody', show })

/** A row of what an account sees. */
export const somebody = (name: string, show: Show): PageState => ({ name, as: 'account', show })

/** A row of what an operator sees. */
export const operator = (name: string, show: Show): PageState => ({ name: `operator-${name}`, as: 'operator', show })

/** Shows a page as it comes. */
export const at =
  (path: string): Show =>
  async (page, origin) =>
    void (await page.goto(`${origin}${path}`))

/** Opens everything on a page that opens. */
export async function openSummaries(page: Page): Promise<void> {
  for (const summary of await page.locator('summary').all()) await summary.click()
}

/** Shows a page with everything open. */
export const openAll =
  (path: string): Show =>
  async (page, origin) => {
    await page.goto(`${origin}${path}`)
    await openSummaries(page)
  }

/** Types an address where one is asked for, and waits for the field of the code that was sent to it. */
export async function askForCode(page: Page, origin: string, path: string, email: string): Promise<void> {
  await page.goto(`${origin}${path}`)
  await page.getByLabel('Email address').fill(email)
  await page.getByRole('button', { name: 'Send the code' }).click()
  await page.getByLabel('Code').waitFor()
}

/** Runs in the page: what is wider than the page, and by how much. */
export const tooWide = `(() => {
  const over = document.documentElement.scrollWidth - innerWidth
  if (over <= 0) return []
  const wide = [...document.querySelectorAll('body *')]
    .filter((element) => element.getBoundingClientRect().right > innerWidth + 0.5)
    .slice(0, 5).map((element) => over + ' px: ' + element.outerHTML.slice(0, 100))
  return wide.length > 0 ? wide : [over + ' px']
})()`
