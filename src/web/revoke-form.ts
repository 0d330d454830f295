import { html } from 'hono/html'
import { csrfInput, type Html } from './layout.ts'
import type { SignedIn } from './visit.ts'

/** Revokes a key after a second click, sent to `action`; the same words for its owner and for an operator. */
export function revokeForm(name: string, action: string, session: Pick<SignedIn, 'csrfToken'>): Html {
  return html`<details>
    <summary>Revoke<span class="unseen"> ${name}</span></summary>
    <form class="panel" method="post" action="${action}">
      ${csrfInput(session)}
      <p>Whoever uses it is refused within a second, for ever.</p>
      <button class="danger">Revoke ${name}</button>
    </form>
  </details>`
}
