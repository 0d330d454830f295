import { html } from 'hono/html'
import { keysPath, landingPath } from '../http/landing.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import { sendCode, showAddressPage, type AddressPage } from './proof-forms.ts'

const signIn: AddressPage = {
  path: '/sign-in',
  purpose: 'sign_in',
  title: 'Sign in',
  lead: 'There is no password. Enter your email address, and we will send you a code.',
  button: 'Send the code',
  below: html`<p>No account yet? <a href="/account/setup">Create one</a> in a minute.</p>
    <p>Lost your key? <a href="/account/recover">Get a new one</a>.</p>`,
}
const setUp: AddressPage = {
  path: '/account/setup',
  purpose: 'set_up',
  title: 'Set up your account',
  lead: 'Enter your email address and the code we send you to get your first key.',
  button: 'Send the code',
  below: html`<p>Already have an account? <a href="/sign-in">Sign in</a>.</p>`,
}
const recover: AddressPage = {
  path: '/account/recover',
  purpose: 'recover',
  title: 'Recover your key',
  lead: 'We store only hashes of keys, so an old key cannot be shown again. Verify your email address to get a new one.',
  button: 'Send the code',
  below: html`<p>
    When you enter the code, you can choose to revoke your old keys. Do that if someone else may have one.
  </p>`,
}

/** The three pages that ask for an email address. Signed-in visitors who want a key go to the keys page. */
export const signInRoutes: readonly PageRoute[] = [signIn, setUp, recover].flatMap((it): PageRoute[] => [
  {
    method: 'GET',
    path: it.path,
    access: 'public',
    handle: async (visit) =>
      visit.signedIn !== undefined && it !== recover && !visit.query.has('again')
        ? redirect(it === setUp ? keysPath : await landingPath(visit.deps, visit.signedIn.account.id))
        : showAddressPage(visit, it),
  },
  { method: 'POST', path: it.path, access: 'public', handle: (visit) => sendCode(visit, it) },
])
