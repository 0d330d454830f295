import { html } from 'hono/html'
import type { Html } from './html.ts'

/** Links between the pages of a list; undefined ones are left out. */
interface PagingLinks {
  /** The accessible name of the navigation. */
  readonly label: string
  /** The first page, unless this is the first page. */
  readonly start: string | undefined
  readonly next: string | undefined
  /** The range of items shown. */
  readonly shown?: Html
}

/** Pagination links; empty if one page shows the whole list. */
export function paging({ label, start, next, shown }: PagingLinks): Html | '' {
  if (start === undefined && next === undefined) return ''
  return html`<nav class="actions" aria-label="${label}">
    ${shown ?? ''} ${start === undefined ? '' : html`<a class="button secondary" href="${start}">From the start</a>`}
    ${next === undefined ? '' : html`<a class="button secondary" rel="next" href="${next}">Next</a>`}
  </nav>`
}

/** The items of one page and the pagination links. */
interface Part<Item> {
  readonly shown: readonly Item[]
  readonly nav: Html | ''
}

/** Identifies a paged list. The query parameter `name` holds the offset. */
interface Paged {
  readonly path: string
  readonly query: URLSearchParams
  readonly name: string
  readonly perPage: number
}

/** The part of a list that the URL selects, which bounds the size of the page (contract 20.6). */
export function pageOf<Item>(items: readonly Item[], of: Paged): Part<Item> {
  const { from, nav } = pagePosition(items.length, of)
  return { shown: items.slice(from, from + of.perPage), nav }
}

/** The same for a list that is read page by page: its offset. */
export function pagePosition(
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
