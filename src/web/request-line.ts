import { html } from 'hono/html'
import type { RequestRecord } from '../domain/requests.ts'
import type { Html } from './layout.ts'

/** How a request ended, as a tag in its colour. */
export function stateTag({ state, errorCode }: RequestRecord): Html {
  if (errorCode === 'client_closed') return html`<span class="tag warn">you left</span>`
  if (errorCode !== undefined) return html`<span class="tag bad">${errorCode}</span>`
  if (state === 'lost') return html`<span class="tag warn">lost</span>`
  if (state !== 'done') return html`<span class="tag">running</span>`
  return html`<span class="tag good">answered</span>`
}

/** `340 ms` or `12.3 s`. */
export function writeMs(ms: number): string {
  return ms < 10_000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`
}
