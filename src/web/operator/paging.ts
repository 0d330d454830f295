import { html } from 'hono/html'
import type { Html } from '../layout.ts'

/** What one page shows of a list, and the way to the rest. */
interface Part<Item> {
  readonly shown: readonly Item[]
  readonly nav: Html | ''
}

/** The part of a list that the page's address names by `name`, so that no page grows with what is kept. */
export function partOf<Item>(
  items: readonly Item[],
  of: { readonly path: string; readonly query: URLSearchParams; readonly name: string; readonly perPage: number },
): Part<Item> {
  const { path, query, name, perPage } = of
  const asked = Number(/^\d{1,6}$/.exec(query.get(name) ?? '')?.[0] ?? 0)
  const from = asked < items.length ? asked : 0
  const shown = items.slice(from, from + perPage)
  if (items.length <= perPage) return { shown, nav: '' }
  const next = from + perPage
  return {
    shown,
    nav: html`<nav class="actions" aria-label="More of these: ${name}">
      <span class="faint">${from + 1} to ${Math.min(next, items.length)} of ${items.length}</span>
      ${from === 0 ? '' : html`<a class="button secondary" href="${path}">From the start</a>`}
      ${next >= items.length ? '' : html`<a class="button secondary" rel="next" href="${path}?${name}=${next}">Next</a>`}
    </nav>`,
  }
}
