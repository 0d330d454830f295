import { html } from 'hono/html'
import { startProof, tryCode } from '../../accounts/identity/proofs.ts'
import { addProvenEmail, maxEmailsPerAccount, removeEmail } from '../../accounts/identity/sign-in.ts'
import { readEmailAddress, type SignInProof } from '../../domain/identity.ts'
import { MailError } from '../../domain/mail-error.ts'
import { breadcrumbs } from '../components/breadcrumbs.ts'
import { codeField, emailField } from '../components/field.ts'
import { csrfInput, page } from '../components/layout.ts'
import { withNotice } from '../components/notices.ts'
import { identityDepsFor } from '../http/control.ts'
import { PageError } from '../http/page-error.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import { requesterOf } from '../http/session-cookie.ts'
import type { AccountVisit } from '../http/visit.ts'
import { mailFailed, outboxHint, tooOften } from './proof-forms.ts'

export const emailRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/account/emails', access: 'account', handle: (visit) => askForAddress(visit) },
  { method: 'POST', path: '/account/emails', access: 'account', handle: sendCode },
  { method: 'POST', path: '/account/emails/remove', access: 'account', handle: remove },
  { method: 'GET', path: '/account/emails/:proofId', access: 'account', handle: showCode },
  { method: 'POST', path: '/account/emails/:proofId', access: 'account', handle: takeCode },
]

function askForAddress(visit: AccountVisit, problem?: string): Promise<Response> {
  const { form, signedIn, deps } = visit
  if (deps.sendMail === undefined)
    return page(visit, {
      title: 'Add an email address',
      above: breadcrumbs({ path: '/account', name: 'Account' }),
      lead: 'This service cannot send email yet, so it cannot verify an address. Contact its operator.',
      narrow: true,
      body: html`<p><a class="button" href="/account">Back</a></p>`,
    })
  return page(visit, {
    title: 'Add an email address',
    above: breadcrumbs({ path: '/account', name: 'Account' }),
    lead: 'We send a code to the address to verify it. You can then use the address to sign in to this account and recover its keys.',
    narrow: true,
    status: problem === undefined ? 200 : 422,
    problem: problem === undefined ? undefined : 'Please correct the errors below.',
    body: html`<form method="post" action="/account/emails">
        ${csrfInput(signedIn)} ${emailField(form.text('email'), problem)}
        <p class="actions"><button>Send the code</button> <a href="/account">Back</a></p>
      </form>
      <div class="side">${outboxHint(visit)}</div>`,
  })
}

async function sendCode(visit: AccountVisit): Promise<Response> {
  const { deps, form, signedIn } = visit
  const { sendMail, identity, appUrl, clock } = deps
  if (sendMail === undefined) return askForAddress(visit)
  const address = readEmailAddress(form.text('email'))
  if (address === undefined) return askForAddress(visit, 'Enter an email address such as name@example.com.')
  try {
    const requester = { ...requesterOf(visit), accountId: signedIn.account.id }
    const started = await startProof({ ...identity, sendMail, appUrl }, address, 'add_email', requester)
    if ('tooMany' in started) return askForAddress(visit, tooOften(started, clock.nowMs()))
    return redirect(`/account/emails/${started.proof.id}`)
  } catch (error) {
    if (error instanceof MailError) return askForAddress(visit, mailFailed)
    throw error
  }
}

async function showCode(visit: AccountVisit): Promise<Response> {
  return codePage(visit, await ownProof(visit))
}

async function takeCode(visit: AccountVisit): Promise<Response> {
  const { deps, form, signedIn, address: peer } = visit
  deps.limiters.tries.take(peer)
  const proof = await ownProof(visit)
  const tried = await tryCode(deps.identity, 'account', proof.id, form.text('code'))
  if (tried === 'wrong') return codePage(visit, proof, 'That code is not correct. Check it, or request a new one.')
  if (tried === 'over') return askForAddress(visit, 'That code no longer works. Request a new one.')
  if (!(await addProvenEmail(identityDepsFor(visit), signedIn.account.id, tried.address ?? '')))
    return askForAddress(
      visit,
      `This address already belongs to an account, or your account has reached its limit of ${maxEmailsPerAccount} addresses.`,
    )
  return redirect(withNotice('/account', 'email-added'))
}

function codePage(visit: AccountVisit, proof: SignInProof, problem?: string): Promise<Response> {
  return page(visit, {
    title: 'Enter the code',
    lead: html`We sent a six-digit code to <strong>${proof.address ?? ''}</strong>. It expires in 10 minutes.`,
    narrow: true,
    status: problem === undefined ? 200 : 422,
    problem: problem === undefined ? undefined : 'The code is not correct.',
    body: html`<form method="post" action="/account/emails/${proof.id}">
        ${csrfInput(visit.signedIn)} ${codeField(problem)}
        <button>Add address</button>
      </form>
      <div class="side">
        <p>No email? <a href="/account/emails">Request another code</a>.</p>
        ${outboxHint(visit)}
      </div>`,
  })
}

/** The proof that this account requested. @throws PageError `not_found` for any other */
async function ownProof({ deps, params, signedIn }: AccountVisit): Promise<SignInProof> {
  const proof = await deps.identity.store.findProof(params['proofId'] ?? '')
  if (proof?.purpose !== 'add_email' || proof.accountId !== signedIn.account.id) throw new PageError('not_found')
  return proof
}

/** The last address cannot be removed: without it nobody could sign in by email or recover a key. */
async function remove(visit: AccountVisit): Promise<Response> {
  const { deps, form, signedIn } = visit
  const { id } = signedIn.account
  const address = form.text('address')
  const emails = await deps.identity.store.listEmails(id)
  if (emails.length < 2 || !(await removeEmail(identityDepsFor(visit), id, address))) throw new PageError('not_found')
  return redirect(withNotice('/account', 'email-removed'))
}
