import { html } from 'hono/html'
import type { RequestRecord } from '../../domain/requests.ts'
import type { Html } from './html.ts'

/** A colored tag with the result of a request. */
export function stateTag({ state, errorCode }: RequestRecord): Html {
  if (errorCode === 'client_closed') return html`<span class="tag warn">client disconnected</span>`
  if (errorCode !== undefined) return html`<span class="tag bad">${errorCode}</span>`
  if (state === 'lost') return html`<span class="tag warn">lost</span>`
  if (state !== 'done') return html`<span class="tag">running</span>`
  return html`<span class="tag good">answered</span>`
}

/** `340 ms`, `1.25 s` or `12.3 s`. */
export function writeMs(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`
}
