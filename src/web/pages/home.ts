import { html } from 'hono/html'
import { connections } from '../../domain/connections.ts'
import { wiringOf } from '../connect-text.ts'
import { page } from '../layout.ts'
import { planCards } from '../plan-cards.ts'
import type { Route } from '../route.ts'
import { sample } from '../sample.ts'
import { statusDot } from '../status-dot.ts'
import { tabs } from '../tabs.ts'
import type { Visit } from '../visit.ts'

export const homeRoutes: readonly Route[] = [{ method: 'GET', path: '/', access: 'public', handle: showHome }]

/** What is tried first: a command, a program, an agent. */
const firstTries = ['curl', 'openai', 'codex']

async function showHome(visit: Visit): Promise<Response> {
  const { parts, signedIn } = visit
  const wiring = wiringOf(parts)
  const tries = connections.filter(({ name }) => firstTries.includes(name))
  const ordered = firstTries.flatMap((name) => tries.filter((one) => one.name === name))
  return page(visit, {
    title: 'One key, many models',
    lead: 'A base URL that your client knows already. Name a profile; the best provider behind it answers, and when one fails the next is asked before you notice.',
    body: html`<p class="actions">
        ${
          signedIn === undefined
            ? html`<a class="button" href="/account/setup">Get a key</a>`
            : html`<a class="button" href="/account">Your account</a>`
        }
        <a class="button secondary" href="/connect">Connect a client</a>
        ${await statusDot(parts)}
      </p>
      ${tabs(
        'try',
        'Try it with',
        ordered.map((one) => ({ name: one.title, body: sample(`try-${one.name}`, one.write(wiring)) })),
      )}
      <p class="faint">
        All of <a href="/connect">${connections.length} clients</a> are set up in one step. Your key stands in
        <code>${wiring.keyVariable}</code>.
      </p>
      <div class="cards reasons">
        <section>
          <h2>Your SDKs work</h2>
          <p>Chat completions, responses and messages, streamed or whole, with tools, images and structured answers.</p>
        </section>
        <section>
          <h2>Failures stay here</h2>
          <p>
            A provider that is down, slow or out of quota is passed by. Each answer says who gave it and how many failed
            before.
          </p>
        </section>
        <section>
          <h2>Errors that help</h2>
          <p>
            Each says what happened, what to do and where. <a href="/docs/errors">Every code has a page</a>, and every
            answer an id that finds it again.
          </p>
        </section>
        <section>
          <h2>Nothing hidden</h2>
          <p>
            The count that you see is the one that is enforced. Prompts and answers are in no log, and your provider
            credentials serve you alone.
          </p>
        </section>
      </div>
      <h2 id="plans">Plans</h2>
      ${planCards(visit, await parts.offers())}`,
  })
}
