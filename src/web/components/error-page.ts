import { html } from 'hono/html'
import { describeError } from '../http/page-error.ts'
import type { Visit } from '../http/visit.ts'
import { page } from './layout.ts'

/** The error page for anything thrown, as a response. */
export function errorPage(
  visit: Pick<Visit, 'deps' | 'path' | 'query' | 'signedIn' | 'requestId'>,
  thrown: unknown,
): Promise<Response> {
  const { requestId } = visit
  const { status, title, text } = describeError(visit, thrown)
  return page(
    { ...visit, query: new URLSearchParams() },
    {
      title,
      lead: text,
      status,
      narrow: true,
      body: html`<p><a class="button" href="/">Home page</a></p>
        <p class="faint">Request ID: <code>${requestId}</code></p>`,
    },
  )
}
