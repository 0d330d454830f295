import { html } from 'hono/html'
import { AccountsError, maxNameCharacters } from '../../accounts/accounts-error.ts'
import { closeBilling } from '../../accounts/billing/checkout.ts'
import { BillingFailure } from '../../accounts/billing/ports.ts'
import { deleteAccount } from '../../accounts/delete-account.ts'
import { isFreshSession } from '../../accounts/identity/sessions.ts'
import { breadcrumbs } from '../components/breadcrumbs.ts'
import { field } from '../components/field.ts'
import type { Html } from '../components/html.ts'
import { csrfInput, page } from '../components/layout.ts'
import { withNotice } from '../components/notices.ts'
import { actorOf } from '../http/actor.ts'
import { download } from '../http/download.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import { endedSessionCookie } from '../http/session-cookie.ts'
import type { AccountVisit } from '../http/visit.ts'
import { streamAccountData } from './account-data.ts'

export const dataRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/account/data', access: 'account', handle: (visit) => showData(visit) },
  { method: 'GET', path: '/account/data/download', access: 'account', handle: giveEverything },
  { method: 'POST', path: '/account/data/delete', access: 'account', handle: endAccount },
]

function giveEverything(visit: AccountVisit): Response {
  visit.deps.limiters.downloads.take(visit.signedIn.account.id)
  return download('svc-router-account.json', streamAccountData(visit))
}

function showData(visit: AccountVisit, problem?: string): Promise<Response> {
  const { signedIn, deps } = visit
  const isFresh = isFreshSession(signedIn.session, deps.clock.nowMs())
  return page(visit, {
    title: 'Your data',
    above: breadcrumbs({ path: '/account', name: 'Account' }),
    lead: 'Download everything we store about your account, or delete it.',
    status: problem === undefined ? 200 : 422,
    problem,
    body: html`<section class="card">
        <h2>Download</h2>
        <p>
          One JSON file with everything this service stores about your account: email addresses, keys (without secrets),
          providers (without credentials), budgets, webhooks (without secrets), requests, counts of rejected requests,
          billing, sign-ins, messages to support, the history of changes, and your stored responses and conversations
          with their content. It does not contain answers that are stored only so that a request can be retried. Very
          long lists are truncated.
        </p>
        <p><a class="button" href="/account/data/download" download>Download everything</a></p>
      </section>
      <section class="card">
        <h2>Delete the account</h2>
        <ul>
          <li>
            All keys stop working within a second. Requests in progress still complete. Their records are deleted when
            the retention period ends.
          </li>
          <li>
            Email addresses, providers, budgets, webhooks, requests, messages to support, stored responses, and
            conversations are deleted immediately and permanently.
          </li>
          <li>If you have a subscription, it is canceled.</li>
          <li>The audit log records that an account with this ID existed, but nothing that identifies you.</li>
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
      label: 'Enter the account name',
      hint: html`<code>${signedIn.account.name}</code>`,
      problem,
      maxCharacters: maxNameCharacters,
    })}
    <button class="danger">Permanently delete the account</button>
  </form>`
}

function signInFirst(): Html {
  return html`<p class="warning">You signed in a while ago. Sign in again to confirm that it is you.</p>
    <p><a class="button secondary" href="/sign-in?again=1&amp;next=/account/data">Sign in again</a></p>`
}

async function endAccount(visit: AccountVisit): Promise<Response> {
  const { deps, signedIn, form } = visit
  if (!isFreshSession(signedIn.session, deps.clock.nowMs()))
    return showData(visit, 'You signed in too long ago to do this. Sign in again below.')
  try {
    await deleteAccount({ ...deps.accountData, actor: actorOf(visit) }, signedIn.account.id, form.text('name'))
  } catch (error) {
    if (!(error instanceof AccountsError) || error.code !== 'account_name_mismatch') throw error
    return showData(visit, 'That is not the account name. Nothing was deleted.')
  }
  await cancelSubscription(visit)
  return redirect(withNotice('/sign-in', 'account-deleted'), [
    endedSessionCookie('account', deps.appUrl.startsWith('https:')),
  ])
}

async function cancelSubscription({ deps, signedIn }: AccountVisit): Promise<void> {
  const { sold } = deps.sales
  try {
    if (sold !== undefined) await closeBilling(sold.plansDeps, signedIn.account.id)
  } catch (error) {
    // Deleting the account marked the subscription for cancellation, so the background checks will cancel it.
    if (!(error instanceof BillingFailure)) throw error
    deps.log({ event: 'billing_failing', reason: error.trouble })
  }
}
