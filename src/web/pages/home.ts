import { html } from 'hono/html'
import { clientRecipes } from '../../domain/client-recipes.ts'
import { codeSample } from '../components/code-sample.ts'
import { clientConfigFor } from '../components/connect-text.ts'
import { page } from '../components/layout.ts'
import { planCards } from '../components/plan-cards.ts'
import { statusDot } from '../components/status-dot.ts'
import { tabs } from '../components/tabs.ts'
import type { PageRoute } from '../http/route.ts'
import type { Visit } from '../http/visit.ts'

export const homeRoutes: readonly PageRoute[] = [{ method: 'GET', path: '/', access: 'public', handle: showHome }]

/** The samples to show: a command, a program, an agent. */
const firstTries = ['curl', 'openai', 'codex']

async function showHome(visit: Visit): Promise<Response> {
  const { deps, signedIn } = visit
  const clientConfig = clientConfigFor(deps)
  const tries = clientRecipes.filter(({ name }) => firstTries.includes(name))
  const ordered = firstTries.flatMap((name) => tries.filter((one) => one.name === name))
  return page(visit, {
    title: 'One key, many models',
    lead: 'One API that works with the clients you already use. Each request names a profile: a list of models at providers. For most profiles, one of these models answers. If it fails before its answer begins, another model takes over.',
    body: html`<p class="actions">
        ${
          signedIn === undefined
            ? html`<a class="button" href="/account/setup">Get a key</a>`
            : html`<a class="button" href="/account">Your account</a>`
        }
        <a class="button secondary" href="/connect">Connect a client</a>
        ${await statusDot(deps)}
      </p>
      ${tabs(
        'try',
        'Try it with',
        ordered.map((one) => ({ name: one.title, body: codeSample(`try-${one.name}`, one.write(clientConfig)) })),
      )}
      <p class="faint">
        The page <a href="/connect">Connect a client</a> says where to save each configuration, for
        ${clientRecipes.length} clients. Most configurations read your key from the environment variable
        <code>${clientConfig.keyVariable}</code>.
      </p>
      <div class="cards reasons">
        <section>
          <h2>Your SDKs work</h2>
          <p>Chat Completions, Responses, and Messages, streamed or not, with tools, images, and structured outputs.</p>
        </section>
        <section>
          <h2>Automatic failover</h2>
          <p>
            Requests skip models that are down, slow, or rate-limited by their provider. Each response names the one
            that answered and says how many failed first.
          </p>
        </section>
        <section>
          <h2>Errors that help</h2>
          <p>
            Each error says what happened and what to do, and often links to the page that helps.
            <a href="/docs/errors">Every error code has a page</a>. Every response has an ID, and you can look up each
            request that we accepted.
          </p>
        </section>
        <section>
          <h2>Nothing hidden</h2>
          <p>
            The usage you see is the usage that counts toward your limits. Prompts and answers never appear in logs.
            Stored responses and conversations are encrypted, and no other account can read them. Your provider
            credentials are used only for you.
          </p>
        </section>
      </div>
      <h2 id="plans">Plans</h2>
      ${planCards(visit, await deps.offers())}`,
  })
}
