import { html } from 'hono/html'
import type { Html } from './layout.ts'

/** Code to be copied: the button shows itself where there is a clipboard. `id` is unique on the page. */
export function sample(id: string, text: string): Html {
  return html`<div class="sample">
    <pre id="${id}"><code>${text}</code></pre>
    <button type="button" class="secondary" data-copy="${id}" hidden>Copy</button>
  </div>`
}
