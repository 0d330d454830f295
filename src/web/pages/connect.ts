import { html } from 'hono/html'
import { rootOf } from '../../domain/client-config.ts'
import { clientRecipes, type ClientRecipe } from '../../domain/client-recipes.ts'
import { breadcrumbs } from '../components/breadcrumbs.ts'
import { codeSample } from '../components/code-sample.ts'
import { connectCommand, clientConfigFor } from '../components/connect-text.ts'
import type { Html } from '../components/html.ts'
import { page } from '../components/layout.ts'
import { PageError } from '../http/page-error.ts'
import type { PageRoute } from '../http/route.ts'
import { jsonAnswer } from '../http/text-answer.ts'
import type { AccountVisit, Visit } from '../http/visit.ts'
import { firstRequest, readProgress } from './first-request.ts'

export const connectRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/connect', access: 'public', handle: showClients },
  { method: 'GET', path: '/connect/:client', access: 'public', handle: showClient },
  { method: 'GET', path: '/account/first-request', access: 'account', handle: tellProgress },
]

const firstStep = html`Next step: send your first request. Choose your client, or try it now in the
  <a href="/playground">playground</a>.`
/** Agents that `svc-router run` starts without any configuration. */
const started = ['codex', 'claude', 'opencode']

async function showClients(visit: Visit): Promise<Response> {
  const { deps, signedIn } = visit
  const isNew = signedIn !== undefined && (await deps.latestRequest(signedIn.account.id)) === undefined
  return page(visit, {
    title: 'Connect a client',
    lead: isNew
      ? firstStep
      : 'Choose your client. Its configuration includes this service’s base URL. Most clients read your key from an environment variable.',
    body: html`<ul class="choices">
        ${clientRecipes.map(
          ({ name, title, language }) =>
            html`<li>
              <a class="card" href="/connect/${name}"
                ><strong>${title}</strong> <span class="faint">${language}</span></a
              >
            </li>`,
        )}
      </ul>
      <p class="faint">
        Using another client? Set your key and the model <code>svc-router/frontier</code>. Set the base URL to
        <code>${deps.baseUrl}</code> for the OpenAI API. For Anthropic’s SDKs and Claude Code, use
        <code>${rootOf(deps.baseUrl)}</code>. <a href="/docs/clients">More about clients</a>
      </p>`,
  })
}

async function showClient(visit: Visit): Promise<Response> {
  const { deps, params } = visit
  const recipe = clientRecipes.find(({ name }) => name === params['client'])
  if (recipe === undefined) throw new PageError('not_found')
  const clientConfig = clientConfigFor(deps)
  const command = connectCommand(recipe, deps)
  return page(visit, {
    title: recipe.title,
    above: breadcrumbs({ path: '/connect', name: 'Connect a client' }),
    body: html`<ol class="steps">
      <li>${keyStep(visit)} ${codeSample('key', `export ${clientConfig.keyVariable}=sk_svc_…`)}</li>
      <li>
        <h2>Configuration</h2>
        <p>${recipe.place.replace('{again}', command)}</p>
        ${codeSample('configuration', recipe.write(clientConfig))}
        ${
          started.includes(recipe.name)
            ? html`<p>
                  Or, where svc-router is installed, start ${recipe.title} with it and leave your configuration
                  unchanged:
                </p>
                ${codeSample('run', `npx svc-router run ${recipe.name} --url ${deps.baseUrl}`)}`
            : ''
        }
      </li>
      <li>
        <h2>Try it</h2>
        ${next(recipe)}
        ${visit.signedIn === undefined ? signInLine(recipe) : await firstRequest({ ...visit, signedIn: visit.signedIn })}
      </li>
    </ol>`,
  })
}

function keyStep({ deps, signedIn }: Visit): Html {
  return html`<h2>Your key</h2>
    ${
      // Simulated providers answer everyone who has no other provider.
      deps.backends.some(({ simulated }) => simulated)
        ? ''
        : html`<p>
            Requests need a model provider. If the operator provides none for you,
            <a href="/account/upstreams">connect one</a> first.
          </p>`
    }
    <p>
      ${
        signedIn === undefined
          ? html`<a href="/account/setup">Get a key</a>, and replace <code>sk_svc_…</code> with it:`
          : html`A key is shown only when you create it. <a href="/account/keys">Create one</a>, and replace
              <code>sk_svc_…</code> with it:`
      }
    </p>`
}

/** The next step: a command, or something to do in the client. */
function next({ next: then, name }: ClientRecipe): Html {
  return name === 'continue' || name === 'curl' ? html`<p>Then ${then}.</p>` : codeSample('next', then)
}

function signInLine({ name }: ClientRecipe): Html {
  return html`<p class="faint">
    <a href="/sign-in?next=${encodeURIComponent(`/connect/${name}`)}">Sign in</a> to see your first request arrive here.
  </p>`
}

/** Polled by the page while it waits for the first request. */
async function tellProgress(visit: AccountVisit): Promise<Response> {
  return jsonAnswer(await readProgress(visit), 0)
}
