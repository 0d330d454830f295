import { html } from 'hono/html'
import { frontierId } from '../../domain/profiles.ts'
import type { Secret } from '../../runtime/secret.ts'
import type { Html } from './html.ts'

/** A new key, shown only once, with a request to try it. */
export function showKeyOnce(key: Secret, baseUrl: string): Html {
  return html`<section class="card">
    <h2 class="unseen">The key</h2>
    <p class="secret">
      <code id="new-key">${key.reveal()}</code>
      <button type="button" data-copy="new-key" hidden>Copy</button>
    </p>
    <h3>Try it</h3>
    <p class="faint">Set the key in your environment, then send your first request:</p>
    ${sample(baseUrl)}
  </section>`
}

function sample(baseUrl: string): Html {
  const body = JSON.stringify({ model: frontierId, messages: [{ role: 'user', content: 'Hello!' }] })
  return html`<pre id="try-it" tabindex="0"><code>export SVC_ROUTER_API_KEY='paste the key here'
curl ${baseUrl}/chat/completions \\
  -H "authorization: Bearer $SVC_ROUTER_API_KEY" \\
  -H 'content-type: application/json' \\
  -d '${body}'</code></pre>
    <p class="actions"><button type="button" class="secondary" data-copy="try-it" hidden>Copy request</button></p>`
}
