import { html } from 'hono/html'
import { maxListedKeys } from '../../accounts/keys.ts'
import { connections } from '../../domain/connections.ts'
import { frontierId, fusionId, fusionToolType } from '../../domain/profiles.ts'
import { wiringOf } from '../connect-text.ts'
import { page, type Html } from '../layout.ts'
import { namesOf } from '../names.ts'
import { PageRefusal } from '../refusals.ts'
import type { Route } from '../route.ts'
import { sample } from '../sample.ts'
import { setSecurityHeaders } from '../security-headers.ts'
import { tabs } from '../tabs.ts'
import { jsonAnswer } from '../text-answer.ts'
import type { AccountVisit, ScriptVisit } from '../visit.ts'

/** A browser that takes nothing of a complete answer for this long is given up. */
const slowReaderMs = 60_000

export const playgroundRoutes: readonly Route[] = [
  { method: 'GET', path: '/playground', access: 'account', handle: showPlayground },
  { method: 'POST', path: '/playground/chat', access: 'script', handle: answerChat },
  { method: 'GET', path: '/playground/trail/:recordId', access: 'account', handle: giveTrail },
]

/**
 * Hands the connection to the API, which answers the account as if a key of it had been sent: the same limits, charge,
 * record and words, and no step in between that could hold a stream back. Ends when the connection's answer has.
 */
async function answerChat({ parts, signedIn, connection }: ScriptVisit): Promise<Response> {
  const { response } = connection
  const sent = new Response(null, { headers: { 'x-hono-already-sent': 'true' } })
  if (response.destroyed) return sent
  const headers = new Headers()
  setSecurityHeaders(headers, parts.appUrl.startsWith('https:'))
  response.setHeaders(headers)
  // A whole answer is silent for longer than a page may be; the API has limits of its own.
  response.setTimeout(0)
  response.once('prefinish', () => response.setTimeout(slowReaderMs, () => response.destroy()))
  const closed = new Promise<void>((resolve) => response.once('close', resolve))
  parts.answerChat(signedIn.account, connection)
  await closed
  return sent
}

/** What became of a request, by the names that the account knows: what the page shows when the answer is there. */
async function giveTrail({ parts, params, signedIn }: AccountVisit): Promise<Response> {
  const { id } = signedIn.account
  const [record, keys, upstreams] = await Promise.all([
    parts.activity.findActivity(id, params['recordId'] ?? ''),
    parts.control.store.listKeys(id, maxListedKeys),
    parts.control.store.listUpstreams(id),
  ])
  if (record === undefined) throw new PageRefusal('not_found')
  const names = namesOf(keys, upstreams)
  const { state, errorCode, charged, firstContentMs, totalMs, usage, attempts, fusions = [] } = record
  const trail = {
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
    lead: 'Requests made here are your account’s: they count, are limited and are listed like those of your keys. We keep nothing of what is said: it is gone with this page.',
    also: { style: 'playground.css', script: 'playground.js' },
    body: html`${withoutScript(visit)}
      <div class="desk" data-playground="${settingsOf(visit)}" hidden>
        ${requestCard(visit)}
        <div>${conversationCard()} ${lookCard()}</div>
      </div>`,
  })
}

/** What the script must know. No secret is among it but the token that every form of the session carries. */
function settingsOf({ parts, signedIn }: AccountVisit): string {
  const { keyVariable } = wiringOf(parts)
  const plan = parts.plans.find(({ id }) => id === signedIn.account.planId)
  return JSON.stringify({
    csrf: signedIn.csrfToken,
    baseUrl: parts.baseUrl,
    keyVariable,
    fusionId,
    fusionToolType,
    isPremium: plan?.premium ?? false,
    premiumProfiles: parts.profiles.filter(({ premium, id }) => premium || id === fusionId).map(({ id }) => id),
  })
}

function withoutScript({ parts }: AccountVisit): Html {
  const curl = connections.find(({ name }) => name === 'curl')
  return html`<noscript>
    <section class="card">
      <h2>This page needs script</h2>
      <p>It shows an answer while it arrives, which takes script. Nothing else of this app does.</p>
      <p>The same from a terminal, with <a href="/account/keys">a key of yours</a>:</p>
      ${sample('plain-curl', curl?.write(wiringOf(parts)) ?? '')}
    </section>
  </noscript>`
}

function requestCard(visit: AccountVisit): Html {
  const { parts, query, signedIn } = visit
  const chat = parts.profiles.filter(({ embeddings }) => embeddings === undefined)
  const asked = query.get('profile') ?? ''
  const chosen = chat.some(({ id }) => id === asked) ? asked : frontierId
  const plan = parts.plans.find(({ id }) => id === signedIn.account.planId)
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
          ? 'The model may have several others answer first.'
          : html`Your plan${plan === undefined ? '' : html`, ${plan.name},`} does not include it.
              <a href="/billing/upgrade">See plans that do</a>`
      }
    </p>
    <div class="field">
      <label for="system">System message <span class="faint">(optional)</span></label>
      <textarea id="system" rows="2" autocomplete="off"></textarea>
    </div>
    ${numberField({ id: 'temperature', label: 'Temperature', hint: 'From 0 to 2. Empty: the model’s own.', min: 0, max: 2 })}
    ${numberField({ id: 'max-tokens', label: 'Maximum tokens', hint: 'The longest answer, from 1 to 1000000. Empty: the model’s own.', min: 1, max: 1_000_000 })}
    <div class="field">
      <label for="tools">Tools <span class="faint">(optional)</span></label>
      <span class="hint" id="tools-hint">A JSON list of functions that the model may call. You answer for them.</span>
      <textarea
        id="tools"
        class="json"
        rows="3"
        spellcheck="false"
        autocomplete="off"
        aria-describedby="tools-hint tools-wrong"
      ></textarea>
      <span class="wrong" id="tools-wrong" role="alert"></span>
      <button type="button" class="quiet" id="example">Fill in an example</button>
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

/** A number that may be left out; the script checks it against the bounds. */
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
      <button type="button" class="quiet" id="anew" hidden>Start anew</button>
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
        <span class="hint" id="message-hint">Ctrl or ⌘ with Enter sends it.</span>
      </div>
      <div class="field">
        <label for="image">Image <span class="faint">(optional)</span></label>
        <span class="hint" id="image-hint"
          >PNG, JPEG, WebP or GIF, up to 2,500 kB. A profile that cannot read images says so.</span
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
        <span id="locked-profile"></span> is for premium plans, and yours is not one.
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
    <h2 id="look-title">Behind it</h2>
    ${tabs('look', 'What to look at', [
      {
        name: 'Trail',
        body: empty('trail', 'Who was asked, how it went and what it counted: once you have sent something.'),
      },
      {
        name: 'Fusion',
        body: empty('fused', `Who deliberated and what they found: with ${fusionId}, or with the tool.`),
      },
      {
        name: 'Request',
        body: html`<p class="empty" id="no-request">Nothing was sent yet.</p>
          ${sample('sent', '')}`,
      },
      {
        name: 'Response',
        body: html`<p class="empty" id="no-response">Nothing came yet.</p>
          ${sample('came', '')}`,
      },
      { name: 'Headers', body: empty('headers', 'Nothing came yet.') },
      {
        name: 'Code',
        body: html`<p>What is set above, from your own program. The key is read from its variable.</p>
          <h3>curl</h3>
          ${sample('curl', '')}
          <h3>OpenAI SDK for Python</h3>
          ${sample('python', '')}
          <h3>OpenAI SDK for JavaScript</h3>
          ${sample('javascript', '')}`,
      },
    ])}
  </section>`
}
