import { html } from 'hono/html'
import type { Html } from './layout.ts'

/** The ways from one page of a list to others; each is left out where there is nothing. */
interface Ways {
  /** What this is more of, for whoever hears the page. */
  readonly label: string
  /** Where the list begins, seen from behind its first page. */
  readonly start: string | undefined
  readonly next: string | undefined
  /** Which of all are shown. */
  readonly shown?: Html
}

/** The way about in a list. Nothing where one page shows all of it. */
export function paging({ label, start, next, shown }: Ways): Html | '' {
  if (start === undefined && next === undefined) return ''
  return html`<nav class="actions" aria-label="${label}">
    ${shown ?? ''} ${start === undefined ? '' : html`<a class="button secondary" href="${start}">From the start</a>`}
    ${next === undefined ? '' : html`<a class="button secondary" rel="next" href="${next}">Next</a>`}
  </nav>`
}

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

/** The same for a list of which only that part is read: where it begins. */
export function placeIn(
  count: number,
  { path, query, name, perPage }: Paged,
): { readonly from: number; readonly nav: Html | '' } {
  const asked = Number(/^\d{1,6}$/.exec(query.get(name) ?? '')?.[0] ?? 0)
  const from = asked < count ? asked : 0
  const end = Math.min(from + perPage, count)
  const nav = paging({
    label: `More of these: ${name}`,
    start: from === 0 ? undefined : path,
    next: end === count ? undefined : `${path}?${name}=${end}`,
    shown: html`<span class="faint">${from + 1} to ${end} of ${count}</span>`,
  })
  return { from, nav }
}
