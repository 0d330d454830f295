import { html } from 'hono/html'
import type { Html } from './html.ts'

/** Breadcrumbs for `Page.above`, outermost page first, without the page itself. */
export function breadcrumbs(...pages: readonly { readonly path: string; readonly name: string }[]): Html {
  return html`<nav class="breadcrumbs" aria-label="Breadcrumbs">
    ${pages.map(({ path, name }, index) => html`${index === 0 ? '' : ' / '}<a href="${path}">${name}</a>`)}
  </nav>`
}
