import { html } from 'hono/html'
import type { Html } from './html.ts'

/** One of several tabs. */
export interface Tab {
  readonly name: string
  readonly body: Html
}

/** Tabs without JavaScript: radio buttons select a tab, and CSS shows it. */
export function tabs(id: string, question: string, all: readonly Tab[]): Html {
  return html`<fieldset class="tabs">
    <legend class="unseen">${question}</legend>
    ${all.map(
      ({ name }, index) =>
        html`<input type="radio" name="${id}" id="${id}-${index}" ${index === 0 ? 'checked' : ''} /><label
            for="${id}-${index}"
            >${name}</label
          >`,
    )}
    ${all.map(({ body }) => html`<div class="tab">${body}</div>`)}
  </fieldset>`
}
