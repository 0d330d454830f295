import { html } from 'hono/html'
import { AccountsError } from '../../accounts/accounts-error.ts'
import { continueProof } from '../../accounts/identity/proofs.ts'
import { endSession, openSession } from '../../accounts/identity/sessions.ts'
import { findProvenAccount, setUpAccount } from '../../accounts/identity/sign-in.ts'
import { createKey, revokeEveryKey } from '../../accounts/keys.ts'
import type { Account } from '../../domain/accounts.ts'
import type { SignInMethod, SignInProof } from '../../domain/identity.ts'
import type { Secret } from '../../runtime/secret.ts'
import { showKeyOnce } from '../components/key-once.ts'
import { csrfInput, page } from '../components/layout.ts'
import { withNotice } from '../components/notices.ts'
import { describeBrowser } from '../http/browser-name.ts'
import { accountsDepsFor } from '../http/control.ts'
import { csrfTokenFor } from '../http/csrf.ts'
import { keysPath, landingPath } from '../http/landing.ts'
import { redirect } from '../http/redirect.ts'
import { knownBrowserCookies, sessionCookie } from '../http/session-cookie.ts'
import type { AccountVisit, Visit } from '../http/visit.ts'

const firstKeyName = 'first key'
const recoveredKeyName = 'recovered key'

interface SignInIntent {
  /** Where to go next; empty for the default page. */
  readonly next: string
  /** For a recovery: whether to revoke the existing keys. */
  readonly revokeOld: boolean
}

/** Signs in a person whose code or link was correct. */
export async function completeSignIn(visit: Visit, proof: SignInProof, intent: SignInIntent): Promise<Response> {
  const response = await respond(visit, proof, intent)
  // Set no cookie if the person has no account and so was not signed in.
  const cookies = response.headers.has('Set-Cookie') ? knownBrowserCookies(visit.deps, proof.address) : []
  for (const cookie of cookies) response.headers.append('Set-Cookie', cookie)
  return response
}

async function respond(visit: Visit, proof: SignInProof, { next, revokeOld }: SignInIntent): Promise<Response> {
  const { deps } = visit
  if (proof.purpose === 'set_up' && proof.address !== null) {
    const { account, isNew } = await setUpAccount(deps.identity, proof.address, deps.defaultPlan)
    const { visit: inside, cookie } = await startSession(visit, account, 'email')
    return isNew ? showFirstKey(inside, cookie) : redirect(withNotice(keysPath, 'had-account'), [cookie])
  }
  const account = await findProvenAccount(deps.identity, proof)
  if (account === undefined) return offerAccount(visit, proof)
  const { visit: inside, cookie } = await startSession(visit, account, proof.address === null ? 'link' : 'email')
  if (proof.purpose === 'recover') return recover(inside, cookie, revokeOld)
  return redirect(next === '' ? withNotice(await landingPath(deps, account.id), 'signed-in') : next, [cookie])
}

/** Opens a new session and ends the one the browser had before, if any. */
export async function startSession(
  visit: Visit,
  account: Account,
  method: SignInMethod,
): Promise<{ visit: AccountVisit; cookie: string }> {
  const { deps, signedIn: before, userAgent } = visit
  if (before !== undefined) await endSession(deps.identity, before.account.id, before.session.id)
  const { token, session } = await openSession(deps.identity, account.id, {
    method,
    agent: describeBrowser(userAgent),
  })
  const signedIn = { session, account, csrfToken: csrfTokenFor(token) }
  return { visit: { ...visit, signedIn }, cookie: sessionCookie(token, 'account', deps.appUrl.startsWith('https:')) }
}

async function showFirstKey(visit: AccountVisit, cookie: string): Promise<Response> {
  const { key } = await createKey(accountsDepsFor(visit), visit.signedIn.account.id, firstKeyName)
  return showKey(visit, cookie, key, {
    title: 'Your first key',
    lead: 'Your account is ready. This key is shown only once: copy it now and store it like a password.',
  })
}

async function recover(visit: AccountVisit, cookie: string, revokeOld: boolean): Promise<Response> {
  const control = accountsDepsFor(visit)
  const { id } = visit.signedIn.account
  const revoked = revokeOld ? await revokeEveryKey(control, id) : 0
  try {
    const { key } = await createKey(control, id, recoveredKeyName)
    const lead =
      revoked === 0
        ? 'This key is shown only once: copy it now. No other key was revoked.'
        : `This key is shown only once: copy it now. ${revoked === 1 ? 'Your other key was' : `Your ${revoked} other keys were`} permanently revoked.`
    return await showKey(visit, cookie, key, { title: 'Your new key', lead })
  } catch (error) {
    if (!(error instanceof AccountsError && error.code === 'key_limit')) throw error
    return redirect(withNotice('/account/keys', 'key-limit'), [cookie])
  }
}

async function showKey(
  visit: AccountVisit,
  cookie: string,
  key: Secret,
  { title, lead }: { title: string; lead: string },
): Promise<Response> {
  const body = html`${showKeyOnce(key, visit.deps.baseUrl)}
    <h2>Next: send a request</h2>
    <p>
      If the operator provides no models for you,
      <a href="/account/upstreams">connect a model provider</a> first. Then run the command above, or connect a client.
    </p>
    <p class="actions">
      <a class="button" href="/connect">Connect a client</a>
      <a class="button secondary" href="/account">Your account</a>
    </p>`
  const response = await page({ ...visit, query: new URLSearchParams() }, { title, lead, body })
  response.headers.append('Set-Cookie', cookie)
  return response
}

/** The address is verified, so saying that it has no account reveals nothing to others. */
async function offerAccount(visit: Visit, proof: SignInProof): Promise<Response> {
  if (proof.address === null) return redirect('/sign-in')
  const token = await continueProof(visit.deps.identity, proof.address)
  return page(visit, {
    title: 'No account has this address yet',
    lead: html`There is no account for <strong>${proof.address}</strong>. If your account has another address, use that
      one.`,
    narrow: true,
    body: html`<form method="post" action="/sign-in/link">
        ${csrfInput(visit.signedIn)}<input type="hidden" name="token" value="${token.reveal()}" />
        <button>Create an account</button>
      </form>
      <p class="side"><a href="/sign-in">Use another address</a></p>`,
  })
}
