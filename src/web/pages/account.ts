import { html } from 'hono/html'
import { listSessions } from '../../accounts/identity/sessions.ts'
import { maxEmailsPerAccount } from '../../accounts/identity/sign-in.ts'
import { effectiveState, maxListedKeys } from '../../accounts/keys.ts'
import type { StoredKey } from '../../domain/accounts.ts'
import type { AccountEmail, Session } from '../../domain/identity.ts'
import type { Html } from '../components/html.ts'
import { csrfInput, page } from '../components/layout.ts'
import { newKeyForm } from '../components/new-key-form.ts'
import { quotaBar } from '../components/quota-bar.ts'
import { writeAgo, writeNumber } from '../components/time.ts'
import type { PageRoute } from '../http/route.ts'
import type { AccountVisit, SignedIn } from '../http/visit.ts'
import type { WebDeps } from '../web-deps.ts'
import { passkeyCard } from './passkeys.ts'

export const accountRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/account', access: 'account', handle: showAccount },
]

async function showAccount(visit: AccountVisit): Promise<Response> {
  const { deps, signedIn } = visit
  const { account } = signedIn
  const nowMs = deps.clock.nowMs()
  const [passkeys, sessions, emails, keys, uses, upstreams, usage] = await Promise.all([
    deps.identity.store.listPasskeys(account.id),
    listSessions(deps.identity, account.id),
    deps.identity.store.listEmails(account.id),
    deps.control.store.listKeys(account.id, maxListedKeys),
    deps.lastUses(account.id),
    deps.control.store.listUpstreams(account.id),
    deps.usageOf(account),
  ])
  const plan = deps.plans.find(({ id }) => id === account.planId)
  return page(visit, {
    title: 'Account',
    lead: account.name,
    body: html`${
        account.suspended
          ? html`<p class="warning">
              This account is suspended, and its keys do not work. <a href="/support">Contact support</a>.
            </p>`
          : ''
      }
      <div class="cards">
        <section class="card">
          <h2>Plan: ${plan?.name ?? account.planId}</h2>
          ${usage === undefined ? html`<p class="problem">Your plan no longer exists. Choose another one.</p>` : quotaBar(usage, nowMs)}
          ${plan === undefined ? '' : html`<p class="faint">Your plan ${plan.premium ? 'includes' : 'does not include'} premium profiles.</p>`}
          <p><a href="/billing/upgrade">See the plans</a> · <a href="/account/budgets">Budgets</a></p>
        </section>
        ${keyCard(visit, keys, uses, nowMs)}
        <section class="card">
          <h2>Providers</h2>
          <p>
            ${
              upstreams.length === 0
                ? 'You have not connected a model provider yet.'
                : html`<strong>${upstreams.length}</strong> ${upstreams.length === 1 ? 'provider' : 'providers'}
                    connected.`
            }
          </p>
          <p>
            <a href="/account/upstreams">${upstreams.length === 0 ? 'Connect a provider' : 'See your providers'}</a>
            · <a href="/account/managed-access">Managed access</a>
          </p>
          <p class="faint">
            No provider of your own? <a href="/account/managed-access">Request managed access</a> to use the operator’s
            providers. A person reviews each request.
          </p>
        </section>
      </div>
      <section class="card">
        <h2>Email addresses</h2>
        ${emailList(emails, signedIn)}
      </section>
      ${passkeyCard(visit, passkeys)}
      <section class="card">
        <h2>Signed-in browsers</h2>
        ${sessionList(sessions, signedIn, nowMs)}
      </section>
      <section class="card">
        <h2>Your data</h2>
        <p>Download everything we store about this account, or delete it.</p>
        <p><a href="/account/data">Download or delete</a></p>
      </section>`,
  })
}

/** Errors about keys link here, so a key can be created on this page. */
function keyCard(
  { deps, signedIn }: AccountVisit,
  keys: readonly StoredKey[],
  uses: ReadonlyMap<string, number>,
  nowMs: number,
): Html {
  const working = keys.filter((key) => ['active', 'retiring'].includes(effectiveState(key, nowMs)))
  const lastUseMs = Math.max(0, ...uses.values())
  return html`<section class="card">
    <h2>Keys</h2>
    <p>
      ${
        working.length === 0
          ? 'You have no active keys.'
          : html`<strong>${writeNumber(working.length)}</strong> active
              key${working.length === 1 ? '' : 's'}${lastUseMs === 0 ? ', not used recently' : html`, last used ${writeAgo(lastUseMs, nowMs)}`}.`
      }
    </p>
    ${newKeyForm(signedIn, { limits: everyProfile(deps) })}
    <p class="after"><a href="/account/keys">See your keys</a></p>
  </section>`
}

function emailList(emails: readonly AccountEmail[], signedIn: SignedIn): Html {
  const canRemove = emails.length > 1
  return html`${
    emails.length === 0
      ? html`<p class="empty">
          None yet. Add one to sign in from any browser, and to get a new key if you lose yours.
        </p>`
      : html`<ul class="rows">
          ${emails.map(
            ({ address }) =>
              html`<li>
                <span>${address}</span>
                ${
                  canRemove
                    ? html`<form method="post" action="/account/emails/remove">
                        ${csrfInput(signedIn)}<input type="hidden" name="address" value="${address}" />
                        <button class="quiet">Remove<span class="unseen"> ${address}</span></button>
                      </form>`
                    : ''
                }
              </li>`,
          )}
        </ul>`
  }
  ${
    emails.length < maxEmailsPerAccount
      ? html`<p><a class="button secondary" href="/account/emails">Add an email address</a></p>`
      : ''
  }`
}

function sessionList(sessions: readonly Session[], signedIn: SignedIn, nowMs: number): Html {
  return html`<ul class="rows">
      ${sessions.map(
        (session) =>
          html`<li>
            <div>
              <strong>${session.agent}</strong>${
                session.id === signedIn.session.id ? html` <span class="tag good">this browser</span>` : ''
              }<br />
              <span class="faint">last used ${writeAgo(session.lastSeenAtMs, nowMs)}</span>
            </div>
            <form method="post" action="/account/sessions/${session.id}/end">
              ${csrfInput(signedIn)}<button class="quiet">Sign out<span class="unseen"> ${session.agent}</span></button>
            </form>
          </li>`,
      )}
    </ul>
    <form method="post" action="/account/sessions/end-all">
      ${csrfInput(signedIn)}<button class="secondary">Sign out everywhere</button>
    </form>`
}

/** A key created here can use all profiles; it can be limited on the keys page. */
function everyProfile({ profiles }: WebDeps): Html {
  return html`${profiles.map(({ id }) => html`<input type="hidden" name="profiles" value="${id}" />`)}`
}
