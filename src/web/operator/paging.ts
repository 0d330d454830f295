import { html } from 'hono/html'
import type { Html } from '../layout.ts'

/** What one page shows of a list, and the way to the rest. */
interface Part<Item> {
  readonly shown: readonly Item[]
  readonly nav: Html | ''
}

/** Which list of a page it is: `name` says in the page's address how many of it are passed over. */
interface Paged {
  readonly path: string
  readonly query: URLSearchParams
  readonly name: string
  readonly perPage: number
}

/** The part of a list that the page's address names, so that no page grows with what is kept. */
export function partOf<Item>(items: readonly Item[], of: Paged): Part<Item> {
  const { from, nav } = placeIn(items.length, of)
  return { shown: items.slice(from, from + of.perPage), nav }
}

/** The same for a list of which only that part is read. */
export function placeIn(
  count: number,
  { path, query, name, perPage }: Paged,
): { readonly from: number; readonly nav: Html | '' } {
  const asked = Number(/^\d{1,6}$/.exec(query.get(name) ?? '')?.[0] ?? 0)
  const from = asked < count ? asked : 0
  if (count <= perPage) return { from, nav: '' }
  const next = from + perPage
  return {
    from,
    nav: html`<nav class="actions" aria-label="More of these: ${name}">
      <span class="faint">${from + 1} to ${Math.min(next, count)} of ${count}</span>
      ${from === 0 ? '' : html`<a class="button secondary" href="${path}">From the start</a>`}
      ${next >= count ? '' : html`<a class="button secondary" rel="next" href="${path}?${name}=${next}">Next</a>`}
    </nav>`,
  }
}
