import { html } from 'hono/html'
import type { Html } from './layout.ts'

/** Breadcrumbs for `Page.above`, outermost page first, without the page itself. */
export function breadcrumbs(...places: readonly { readonly path: string; readonly name: string }[]): Html {
  return html`<nav class="trail" aria-label="Breadcrumbs">
    ${places.map(({ path, name }, index) => html`${index === 0 ? '' : ' / '}<a href="${path}">${name}</a>`)}
  </nav>`
}
