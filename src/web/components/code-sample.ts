import { html } from 'hono/html'
import type { Html } from './html.ts'

/** A code sample with a copy button, which appears if a clipboard is available. `id` must be unique on the page. */
export function codeSample(id: string, text: string): Html {
  return html`<div class="sample">
    <pre id="${id}"><code>${text}</code></pre>
    <button type="button" class="secondary" data-copy="${id}" hidden>Copy</button>
  </div>`
}
