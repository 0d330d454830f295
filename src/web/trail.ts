import { html } from 'hono/html'
import type { Html } from './layout.ts'

/** The way to a page from where it belongs, for `Page.above`: from the outermost inwards, without the page itself. */
export function trail(...places: readonly { readonly path: string; readonly name: string }[]): Html {
  return html`<nav class="trail" aria-label="Where you are">
    ${places.map(({ path, name }, index) => html`${index === 0 ? '' : ' / '}<a href="${path}">${name}</a>`)}
  </nav>`
}
