import { html } from 'hono/html'
import { page, type Html } from '../layout.ts'
import { PageRefusal } from '../refusals.ts'
import type { Route } from '../route.ts'
import { writeAgo } from '../time.ts'

/** What would have been sent, for local mode without a mail server, and for whoever sits at this machine alone. */
export const outboxRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/dev/outbox',
    access: 'public',
    handle(visit) {
      const { outbox, clock } = visit.parts
      if (outbox === undefined || !visit.isFromThisMachine) throw new PageRefusal('not_found')
      const letters = outbox.list()
      return page(visit, {
        title: 'Local outbox',
        lead: 'No mail server is set, so these letters were not sent. They are kept in memory and shown on this machine alone.',
        body:
          letters.length === 0
            ? html`<p class="empty">
                Nothing yet. Ask for a code on the <a href="/sign-in">sign-in page</a>, then come back.
              </p>`
            : html`${letters.map(
                ({ to, subject, text, sentAtMs }, index) =>
                  html`<section class="card">
                    <h2>${subject}</h2>
                    <p class="faint">to ${to}, ${writeAgo(sentAtMs, clock.nowMs())}</p>
                    <pre tabindex="0" aria-label="Letter ${index + 1}">${withLinks(text)}</pre>
                  </section>`,
              )}`,
      })
    },
  },
]

/** A text in which addresses of pages can be followed. */
function withLinks(text: string): Html {
  return html`${text
    .split(/(https?:\/\/\S+)/)
    .map((part, index) => (index % 2 === 1 ? html`<a href="${part}">${part}</a>` : part))}`
}
