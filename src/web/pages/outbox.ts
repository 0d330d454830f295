import { html } from 'hono/html'
import type { Html } from '../components/html.ts'
import { page } from '../components/layout.ts'
import { writeAgo } from '../components/time.ts'
import { PageError } from '../http/page-error.ts'
import type { PageRoute } from '../http/route.ts'

/**
 * The emails that would have been sent, in local mode without a mail server; shown only to this machine (contract
 * 20.12).
 */
export const outboxRoutes: readonly PageRoute[] = [
  {
    method: 'GET',
    path: '/dev/outbox',
    access: 'public',
    handle(visit) {
      const { outbox, clock } = visit.deps
      if (outbox === undefined || !visit.isFromThisMachine) throw new PageError('not_found')
      const emails = outbox.list()
      return page(visit, {
        title: 'Local outbox',
        lead: 'No mail server is configured, so these emails were not sent. They are stored in memory and shown only on this machine.',
        body:
          emails.length === 0
            ? html`<p class="empty">
                Nothing yet. Request a code on the <a href="/sign-in">sign-in page</a>, then come back.
              </p>`
            : html`${emails.map(
                ({ to, subject, text, sentAtMs }, index) =>
                  html`<section class="card">
                    <h2>${subject}</h2>
                    <p class="faint">to ${to}, ${writeAgo(sentAtMs, clock.nowMs())}</p>
                    <pre tabindex="0" aria-label="Email ${index + 1}">${withLinks(text)}</pre>
                  </section>`,
              )}`,
      })
    },
  },
]

/** The text with its URLs as links. */
function withLinks(text: string): Html {
  return html`${text
    .split(/(https?:\/\/\S+)/)
    .map((part, index) => (index % 2 === 1 ? html`<a href="${part}">${part}</a>` : part))}`
}
