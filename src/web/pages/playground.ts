import { html } from 'hono/html'
import { maxListedKeys } from '../../accounts/keys.ts'
import { clientRecipes } from '../../domain/client-recipes.ts'
import { frontierId, fusionId, fusionToolType } from '../../domain/profiles.ts'
import { codeSample } from '../components/code-sample.ts'
import { clientConfigFor } from '../components/connect-text.ts'
import type { Html } from '../components/html.ts'
import { page } from '../components/layout.ts'
import { buildNames } from '../components/names.ts'
import { tabs } from '../components/tabs.ts'
import { PageError } from '../http/page-error.ts'
import type { PageRoute } from '../http/route.ts'
import { setSecurityHeaders } from '../http/security-headers.ts'
import { jsonAnswer } from '../http/text-answer.ts'
import type { AccountVisit, ScriptVisit } from '../http/visit.ts'
import type { PlaygroundSettings, PlaygroundTrail } from '../playground-types.ts'

/** Disconnect a browser that reads nothing of a complete answer for this long. */
const slowReaderMs = 60_000

export const playgroundRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/playground', access: 'account', handle: showPlayground },
  { method: 'POST', path: '/playground/chat', access: 'script', handle: answerChat },
  { method: 'GET', path: '/playground/trail/:recordId', access: 'account', handle: giveTrail },
]

/**
 * Hands the connection to the API, which answers as if one of the account's keys had been sent: same limits, charges,
 * records, and messages, with nothing in between that could buffer the stream (contract 20.8). Resolves when the
 * response has ended.
 */
async function answerChat({ deps, signedIn, exchange }: ScriptVisit): Promise<Response> {
  const { response } = exchange
  const sent = new Response(null, { headers: { 'x-hono-already-sent': 'true' } })
  if (response.destroyed) return sent
  const headers = new Headers()
  setSecurityHeaders(headers, deps.appUrl.startsWith('https:'))
  response.setHeaders(headers)
  // A non-streamed answer can take longer than the page timeout; the API has its own timeouts.
  response.setTimeout(0)
  response.once('prefinish', () => response.setTimeout(slowReaderMs, () => response.destroy()))
  const closed = new Promise<void>((resolve) => response.once('close', resolve))
  deps.answerChat(signedIn.account, exchange)
  await closed
  return sent
}

/** The result of a request, with the account's names for keys and backends; the page shows it after the answer. */
async function giveTrail({ deps, params, signedIn }: AccountVisit): Promise<Response> {
  const { id } = signedIn.account
  const [record, keys, upstreams] = await Promise.all([
    deps.activity.findActivity(id, params['recordId'] ?? ''),
    deps.control.store.listKeys(id, maxListedKeys),
    deps.control.store.listUpstreams(id),
  ])
  if (record === undefined) throw new PageError('not_found')
  const names = buildNames(keys, upstreams)
  const { state, errorCode, charged, firstContentMs, totalMs, usage, attempts, fusions = [] } = record
  const trail: PlaygroundTrail = {
    isOver: state === 'done' || state === 'lost',
    errorCode,
    charged,
    firstContentMs,
    totalMs,
    usage,
    attempts: attempts.map(({ backend, outcome, status, ms }) => ({
      backend: names.backend(backend),
      outcome,
      status,
      ms,
    })),
    fusions: fusions.map(({ dropOuts, calls, preset, mode, costUsd }) => ({
      preset,
      mode,
      costUsd,
      dropOuts: dropOuts.map(({ member, why }) => ({ member: names.backend(member), why })),
      calls: calls.map(({ role, member, status, ms, usage: used, costUsd: cost }) => ({
        role,
        member: names.backend(member),
        status,
        ms,
        usage: used,
        costUsd: cost,
      })),
    })),
  }
  return jsonAnswer(trail, 0)
}

function showPlayground(visit: AccountVisit): Promise<Response> {
  return page(visit, {
    title: 'Playground',
    lead: 'Choose a profile, type a message, and send it. Requests from this page count toward your limits and appear in Activity, like requests with your keys. We do not store the conversation: it is lost when you leave this page.',
    also: { style: 'playground.css', script: 'playground.js' },
    body: html`${withoutScript(visit)}
      <div class="panes" data-playground="${settingsOf(visit)}" hidden>
        ${requestCard(visit)}
        <div>${conversationCard()} ${lookCard()}</div>
      </div>`,
  })
}

/** Settings for the script, as JSON. */
function settingsOf({ deps, signedIn }: AccountVisit): string {
  const { keyVariable } = clientConfigFor(deps)
  const plan = deps.plans.find(({ id }) => id === signedIn.account.planId)
  const settings: PlaygroundSettings = {
    csrf: signedIn.csrfToken,
    baseUrl: deps.baseUrl,
    keyVariable,
    fusionId,
    fusionToolType,
    isPremium: plan?.premium ?? false,
    premiumProfiles: deps.profiles.filter(({ premium, id }) => premium || id === fusionId).map(({ id }) => id),
  }
  return JSON.stringify(settings)
}

function withoutScript({ deps }: AccountVisit): Html {
  const curl = clientRecipes.find(({ name }) => name === 'curl')
  return html`<noscript>
    <section class="card">
      <h2>This page needs JavaScript</h2>
      <p>
        It uses JavaScript to show answers as they arrive. Except for passkeys, the rest of this app works without it.
      </p>
      <p>You can do the same from a terminal with <a href="/account/keys">one of your keys</a>:</p>
      ${codeSample('plain-curl', curl?.write(clientConfigFor(deps)) ?? '')}
    </section>
  </noscript>`
}

function requestCard(visit: AccountVisit): Html {
  const { deps, query, signedIn } = visit
  const chat = deps.profiles.filter(({ embeddings }) => embeddings === undefined)
  const asked = query.get('profile') ?? ''
  const chosen = chat.some(({ id }) => id === asked) ? asked : frontierId
  const plan = deps.plans.find(({ id }) => id === signedIn.account.planId)
  const isPremium = plan?.premium ?? false
  return html`<section class="card" aria-labelledby="request-title">
    <h2 id="request-title">Request</h2>
    <div class="field">
      <label for="profile">Profile</label>
      <select id="profile" autocomplete="off">
        ${chat.map(
          ({ id, premium }) =>
            html`<option value="${id}" ${id === chosen ? 'selected' : ''}>
              ${id}${premium && !isPremium ? ' (locked)' : ''}
            </option>`,
        )}
      </select>
    </div>
    <label class="choice"
      ><input type="checkbox" id="stream" checked autocomplete="off" /> <span>Stream the answer</span></label
    >
    <label class="choice"
      ><input
        type="checkbox"
        id="fusion"
        autocomplete="off"
        ${isPremium ? '' : html`disabled`}
        aria-describedby="fusion-hint"
      />
      <span>Attach the fusion tool</span></label
    >
    <p class="hint" id="fusion-hint">
      ${
        isPremium
          ? 'The model can consult several other models before it answers.'
          : html`Your plan${plan === undefined ? '' : html`, ${plan.name},`} does not include it.
              <a href="/billing/upgrade">See plans that do</a>`
      }
    </p>
    <div class="field">
      <label for="system">System message <span class="faint">(optional)</span></label>
      <textarea id="system" rows="2" autocomplete="off"></textarea>
    </div>
    ${numberField({ id: 'temperature', label: 'Temperature', hint: 'From 0 to 2. Leave empty for the model’s default.', min: 0, max: 2 })}
    ${numberField({ id: 'max-tokens', label: 'Maximum tokens', hint: 'The maximum length of the answer, from 1 to 1,000,000. Leave empty for the model’s default.', min: 1, max: 1_000_000 })}
    <div class="field">
      <label for="tools">Tools <span class="faint">(optional)</span></label>
      <span class="hint" id="tools-hint"
        >A JSON array of functions that the model can call. You enter their results.</span
      >
      <textarea
        id="tools"
        class="json"
        rows="3"
        spellcheck="false"
        autocomplete="off"
        aria-describedby="tools-hint tools-wrong"
      ></textarea>
      <span class="wrong" id="tools-wrong" role="alert"></span>
      <button type="button" class="quiet" id="example">Insert an example</button>
    </div>
  </section>`
}

interface NumberField {
  readonly id: string
  readonly label: string
  readonly hint: string
  readonly min: number
  readonly max: number
}

/** An optional number; the script checks its bounds. */
function numberField({ id, label, hint, min, max }: NumberField): Html {
  return html`<div class="field">
    <label for="${id}">${label} <span class="faint">(optional)</span></label>
    <span class="hint" id="${id}-hint">${hint}</span>
    <input
      id="${id}"
      type="text"
      inputmode="decimal"
      maxlength="10"
      autocomplete="off"
      data-min="${min}"
      data-max="${max}"
      aria-describedby="${id}-hint ${id}-wrong"
    />
    <span class="wrong" id="${id}-wrong" role="alert"></span>
  </div>`
}

function conversationCard(): Html {
  return html`<section class="card" aria-labelledby="conversation-title">
    <div class="heading">
      <h2 id="conversation-title">Conversation</h2>
      <button type="button" class="quiet" id="anew" hidden>Start over</button>
    </div>
    <label class="choice"
      ><input type="checkbox" id="raw" autocomplete="off" /> <span>Show answers as raw text</span></label
    >
    <ol id="turns" class="turns"></ol>
    <div id="trouble"></div>
    <form id="ask">
      <div class="field">
        <label for="message">Your message</label>
        <textarea id="message" rows="3" autocomplete="off" aria-describedby="message-hint"></textarea>
        <span class="hint" id="message-hint">Press Ctrl+Enter or ⌘+Enter to send.</span>
      </div>
      <div class="field">
        <label for="image">Image <span class="faint">(optional)</span></label>
        <span class="hint" id="image-hint"
          >PNG, JPEG, WebP, or GIF. The images in a conversation can be at most 2,500 kB in total. A profile without
          image support returns an error.</span
        >
        <input
          id="image"
          type="file"
          accept="image/png,image/jpeg,image/webp,image/gif"
          aria-describedby="image-hint image-wrong"
        />
        <span class="wrong" id="image-wrong" role="alert"></span>
        <p id="attached" class="attached"></p>
      </div>
      <p class="warning" id="locked" hidden>
        <span id="locked-profile"></span> requires a premium plan.
        <a href="/billing/upgrade">See plans</a>
      </p>
      <p class="actions">
        <button id="send">Send</button>
        <button type="button" class="danger" id="stop" hidden>Stop</button>
      </p>
    </form>
    <p role="status" class="unseen" id="said"></p>
  </section>`
}

function lookCard(): Html {
  const empty = (id: string, text: string): Html => html`<div id="${id}"><p class="empty">${text}</p></div>`
  return html`<section class="card" aria-labelledby="look-title">
    <h2 id="look-title">Details</h2>
    ${tabs('look', 'Details to show', [
      {
        name: 'Attempts',
        body: empty(
          'trail',
          'Send a message to see which backends were tried, how they responded, and how much of your quota was used.',
        ),
      },
      {
        name: 'Fusion',
        body: empty('fused', `Use ${fusionId} or the fusion tool to see which models took part and what they found.`),
      },
      {
        name: 'Request',
        body: html`<p class="empty" id="no-request">No request yet.</p>
          ${codeSample('sent', '')}`,
      },
      {
        name: 'Response',
        body: html`<p class="empty" id="no-response">No response yet.</p>
          ${codeSample('came', '')}`,
      },
      { name: 'Headers', body: empty('headers', 'No response yet.') },
      {
        name: 'Code',
        body: html`<p>The same request from your own program. It reads your key from an environment variable.</p>
          <h3>curl</h3>
          ${codeSample('curl', '')}
          <h3>OpenAI SDK for Python</h3>
          ${codeSample('python', '')}
          <h3>OpenAI SDK for JavaScript</h3>
          ${codeSample('javascript', '')}`,
      },
    ])}
  </section>`
}
