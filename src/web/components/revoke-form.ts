import { html } from 'hono/html'
import type { SignedIn } from '../http/visit.ts'
import type { Html } from './html.ts'
import { csrfInput } from './layout.ts'

/** A form that revokes a key after a second click; for owners and operators. */
export function revokeForm(name: string, action: string, session: Pick<SignedIn, 'csrfToken'>): Html {
  return html`<details>
    <summary>Revoke<span class="unseen"> ${name}</span></summary>
    <form class="panel" method="post" action="${action}">
      ${csrfInput(session)}
      <p>The key stops working within a second. This cannot be undone.</p>
      <button class="danger">Revoke ${name}</button>
    </form>
  </details>`
}
