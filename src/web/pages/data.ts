import { html } from 'hono/html'
import { closeBilling } from '../../accounts/billing/checkout.ts'
import { BillingFailure } from '../../accounts/billing/ports.ts'
import { deleteAccount } from '../../accounts/delete-account.ts'
import { AccountsError, maxNameCharacters } from '../../accounts/refusals.ts'
import { isFreshSession } from '../../accounts/sessions.ts'
import { streamAccountData } from '../account-data.ts'
import { actorOf } from '../actor.ts'
import { download } from '../download.ts'
import { field } from '../field.ts'
import { csrfInput, page, type Html } from '../layout.ts'
import { withNotice } from '../notices.ts'
import { redirect } from '../redirect.ts'
import type { Route } from '../route.ts'
import { endedSessionCookie } from '../session-cookie.ts'
import type { AccountVisit } from '../visit.ts'
import { trail } from '../trail.ts'

export const dataRoutes: readonly Route[] = [
  { method: 'GET', path: '/account/data', access: 'account', handle: (visit) => showData(visit) },
  { method: 'GET', path: '/account/data/download', access: 'account', handle: giveEverything },
  { method: 'POST', path: '/account/data/delete', access: 'account', handle: endAccount },
]

function giveEverything(visit: AccountVisit): Response {
  visit.parts.limiters.downloads.take(visit.signedIn.account.id)
  return download('svc-router-account.json', streamAccountData(visit))
}

function showData(visit: AccountVisit, problem?: string): Promise<Response> {
  const { signedIn, parts } = visit
  const isFresh = isFreshSession(signedIn.session, parts.clock.nowMs())
  return page(visit, {
    title: 'Your data',
    above: trail({ path: '/account', name: 'Account' }),
    lead: 'Take everything with you, or have it deleted.',
    status: problem === undefined ? 200 : 422,
    problem,
    body: html`<section class="card">
        <h2>Download</h2>
        <p>
          One JSON file with all that this service holds about your account: addresses, keys without their secrets,
          providers without their credentials, requests and counts of refused ones, billing, sign-ins, what was changed
          and when, and the answers that are stored for you with what they say.
        </p>
        <p><a class="button" href="/account/data/download" download>Download everything</a></p>
      </section>
      <section class="card">
        <h2>Delete the account</h2>
        <ul>
          <li>
            Every key is refused within a second. Answers that are under way still end; what is noted of them goes when
            its time is over, as with all records.
          </li>
          <li>Addresses, providers, requests and stored answers are gone at once, for ever.</li>
          <li>What you subscribe to is cancelled.</li>
          <li>The audit log keeps that an account of this id was there, and nothing that names you.</li>
        </ul>
        ${isFresh ? deleteForm(visit, problem) : signInFirst()}
      </section>`,
  })
}

function deleteForm({ signedIn }: AccountVisit, problem: string | undefined): Html {
  return html`<form method="post" action="/account/data/delete">
    ${csrfInput(signedIn)}
    ${field({
      name: 'name',
      label: 'Type the name of the account',
      hint: html`<code>${signedIn.account.name}</code>`,
      problem,
      maxCharacters: maxNameCharacters,
    })}
    <button class="danger">Delete the account for ever</button>
  </form>`
}

function signInFirst(): Html {
  return html`<p class="warning">
      You signed in a while ago. Sign in once more, so that nobody who found your browser open can do this.
    </p>
    <p><a class="button secondary" href="/sign-in?again=1&amp;next=/account/data">Sign in again</a></p>`
}

async function endAccount(visit: AccountVisit): Promise<Response> {
  const { parts, signedIn, form } = visit
  if (!isFreshSession(signedIn.session, parts.clock.nowMs()))
    return showData(visit, 'You signed in too long ago for this. Sign in again below.')
  try {
    await deleteAccount({ ...parts.holdings, actor: actorOf(visit) }, signedIn.account.id, form.text('name'))
  } catch (error) {
    if (!(error instanceof AccountsError) || error.code !== 'account_name_differs') throw error
    return showData(visit, 'That is not the name of the account. Nothing was deleted.')
  }
  await cancelSubscription(visit)
  return redirect(withNotice('/sign-in', 'account-deleted'), [
    endedSessionCookie('account', parts.appUrl.startsWith('https:')),
  ])
}

async function cancelSubscription({ parts, signedIn }: AccountVisit): Promise<void> {
  const { sold } = parts.sales
  try {
    if (sold !== undefined) await closeBilling(sold.plane, signedIn.account.id)
  } catch (error) {
    // It is marked as given up since the account is gone: the checks cancel it.
    if (!(error instanceof BillingFailure)) throw error
    parts.log({ event: 'billing_failing', reason: error.trouble })
  }
}
