import { html } from 'hono/html'
import { addPasskey, maxPasskeysPerAccount, removePasskey } from '../../accounts/identity/sign-in.ts'
import type { Passkey } from '../../domain/identity.ts'
import type { Html } from '../components/html.ts'
import { csrfInput, page } from '../components/layout.ts'
import { withNotice } from '../components/notices.ts'
import {
  checkRegistration,
  checkSignIn,
  passkeySite,
  registrationOptions,
  signInOptions,
} from '../components/passkey-ceremony.ts'
import { writeAgo } from '../components/time.ts'
import { describeBrowser } from '../http/browser-name.ts'
import { identityDepsFor } from '../http/control.ts'
import { landingPath } from '../http/landing.ts'
import { PageError } from '../http/page-error.ts'
import { ownPath, redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import type { AccountVisit, Visit } from '../http/visit.ts'
import { startSession } from './complete-sign-in.ts'

export const passkeyRoutes: readonly PageRoute[] = [
  { method: 'POST', path: '/sign-in/passkey', access: 'public', handle: signIn },
  { method: 'POST', path: '/account/passkeys', access: 'account', handle: register },
  { method: 'POST', path: '/account/passkeys/remove', access: 'account', handle: remove },
]

/** The button on the sign-in page. A script shows it, because passkeys require JavaScript. */
export function passkeySignIn(visit: Visit, next: string): Html | '' {
  const site = passkeySite(visit)
  if (site === undefined) return ''
  return html`<form
    method="post"
    action="/sign-in/passkey"
    data-passkey="get"
    data-options="${signInOptions(visit, site.id)}"
    hidden
  >
    ${csrfInput(visit.signedIn)}<input type="hidden" name="answer" />
    ${next === '' ? '' : html`<input type="hidden" name="next" value="${next}" />`}
    <button class="secondary">Sign in with a passkey</button>
  </form>`
}

/** The passkeys card on the account page. */
export function passkeyCard(visit: AccountVisit, passkeys: readonly Passkey[]): Html {
  const { deps, signedIn } = visit
  const site = passkeySite(visit)
  const nowMs = deps.clock.nowMs()
  return html`<section class="card">
    <h2>Passkeys</h2>
    ${
      passkeys.length === 0
        ? html`<p class="empty">None yet. Add one to sign in without an email code.</p>`
        : html`<ul class="rows">
            ${passkeys.map(
              ({ id, name, lastUsedAtMs }) =>
                html`<li>
                  <div>
                    <strong>${name}</strong><br />
                    <span class="faint"
                      >${lastUsedAtMs === null ? 'not used yet' : html`last used ${writeAgo(lastUsedAtMs, nowMs)}`}</span
                    >
                  </div>
                  <form method="post" action="/account/passkeys/remove">
                    ${csrfInput(signedIn)}<input type="hidden" name="passkey" value="${id}" />
                    <button class="quiet">Remove<span class="unseen"> ${name}</span></button>
                  </form>
                </li>`,
            )}
          </ul>`
    }
    ${
      site === undefined
        ? html`<p class="faint">
            Passkeys require a host name, not an IP address. Open this app under a host name, such as localhost.
          </p>`
        : html`<form
            method="post"
            action="/account/passkeys"
            data-passkey="create"
            data-options="${registrationOptions(visit, site.id, signedIn.account, passkeys)}"
            hidden
          >
            ${csrfInput(signedIn)}<input type="hidden" name="answer" />
            <button class="secondary">Add a passkey</button>
          </form>`
    }
  </section>`
}

async function signIn(visit: Visit): Promise<Response> {
  const { deps, form, address } = visit
  deps.limiters.tries.take(address)
  const passkey = await checkSignIn(visit, form.text('answer'))
  const account = passkey === undefined ? undefined : await deps.identity.store.findAccount(passkey.accountId)
  if (account === undefined) return refuse(visit, 'This passkey does not work here', '/sign-in')
  const { cookie } = await startSession(visit, account, 'passkey')
  return redirect(ownPath(form.text('next'), withNotice(await landingPath(deps, account.id), 'signed-in')), [cookie])
}

async function register(visit: AccountVisit): Promise<Response> {
  const { form, signedIn, userAgent } = visit
  const { account } = signedIn
  const made = await checkRegistration(visit, account, form.text('answer'))
  if (made === undefined) return refuse(visit, 'The passkey was not added', '/account')
  const passkey = { ...made, accountId: account.id, name: describeBrowser(userAgent) }
  const added = await addPasskey(identityDepsFor(visit), passkey)
  return added
    ? redirect(withNotice('/account', 'passkey-added'))
    : refuse(visit, 'The passkey was not added', '/account')
}

async function remove(visit: AccountVisit): Promise<Response> {
  if (!(await removePasskey(identityDepsFor(visit), visit.signedIn.account.id, visit.form.text('passkey'))))
    throw new PageError('not_found')
  return redirect(withNotice('/account', 'passkey-removed'))
}

function refuse(visit: Visit, title: string, back: string): Promise<Response> {
  return page(visit, {
    title,
    lead: `Nothing was changed. Either it took too long, the passkey is already registered or belongs to another site, or the account has reached its limit of ${maxPasskeysPerAccount} passkeys.`,
    narrow: true,
    status: 422,
    body: html`<p><a class="button" href="${back}">Try again</a></p>`,
  })
}
