import { html } from 'hono/html'
import { findLink, findProof, takeLink, tryCode } from '../../accounts/identity/proofs.ts'
import { maskEmailAddress, type SignInProof } from '../../domain/identity.ts'
import { codeField } from '../components/field.ts'
import type { Html } from '../components/html.ts'
import { csrfInput, page } from '../components/layout.ts'
import { ownPath } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import type { Visit } from '../http/visit.ts'
import { completeSignIn } from './complete-sign-in.ts'
import { outboxHint, wrongCode } from './proof-forms.ts'

/** The pages where a code is entered and where the link in an email leads. */
export const codeRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/sign-in/code/:proofId', access: 'public', handle: showCode },
  { method: 'POST', path: '/sign-in/code/:proofId', access: 'public', handle: takeCode },
  { method: 'GET', path: '/sign-in/link', access: 'public', handle: showLink },
  { method: 'POST', path: '/sign-in/link', access: 'public', handle: enterByLink },
]

async function showCode(visit: Visit): Promise<Response> {
  const proof = await findProof(visit.deps.identity, 'account', visit.params['proofId'] ?? '')
  return proof?.address == null || visit.deps.clock.nowMs() >= proof.expiresAtMs
    ? showOver(visit)
    : codePage(visit, proof)
}

async function takeCode(visit: Visit): Promise<Response> {
  const { deps, params, form, address } = visit
  const proofId = params['proofId'] ?? ''
  deps.limiters.tries.take(address)
  const proof = await findProof(deps.identity, 'account', proofId)
  // A code for an additional address is entered on that account's own page.
  if (proof === undefined || proof.purpose === 'add_email') return showOver(visit)
  const tried = await tryCode(deps.identity, 'account', proofId, form.text('code'))
  if (tried === 'over') return showOver(visit)
  if (tried === 'wrong') return codePage(visit, proof, wrongCode)
  return completeSignIn(visit, tried, { next: ownPath(form.text('next'), ''), revokeOld: form.isTicked('revoke-old') })
}

function codePage(visit: Visit, proof: SignInProof, problem?: string): Promise<Response> {
  const { deps, query, form, signedIn } = visit
  const next = ownPath(query.get('next') ?? form.text('next'), '')
  return page(visit, {
    title: 'Enter the code',
    lead: html`We sent a six-digit code to <strong>${maskEmailAddress(proof.address ?? '')}</strong>. It expires in 10
      minutes.`,
    narrow: true,
    status: problem === undefined ? 200 : 422,
    problem: problem === undefined ? undefined : 'The code is not correct.',
    body: html`<form method="post" action="/sign-in/code/${proof.id}">
        ${csrfInput(signedIn)} ${next === '' ? '' : html`<input type="hidden" name="next" value="${next}" />`}
        ${codeField(problem)} ${revokeChoice(proof)}
        <button>${proof.purpose === 'recover' ? 'Get a new key' : 'Continue'}</button>
      </form>
      <div class="side">
        <p>No email? Check your spam folder, or <a href="${startOf(proof)}">request another code</a>.</p>
        ${deps.outbox === undefined ? '' : outboxHint(visit)}
      </div>`,
  })
}

/** A GET changes nothing, so that mail scanners that open every link do not use it up. */
async function showLink(visit: Visit): Promise<Response> {
  const { deps, query, signedIn } = visit
  const token = query.get('token') ?? ''
  const proof = await findLink(deps.identity, 'account', token)
  if (proof === undefined) return showOver(visit)
  return page(visit, {
    title: proof.purpose === 'recover' ? 'Recover your key' : 'Welcome',
    lead:
      proof.address === null
        ? 'This link signs you in and works only once.'
        : html`Sign in as <strong>${maskEmailAddress(proof.address)}</strong>.`,
    narrow: true,
    body: html`<form method="post" action="/sign-in/link">
      ${csrfInput(signedIn)}<input type="hidden" name="token" value="${token}" />
      ${revokeChoice(proof)}
      <button>${proof.purpose === 'recover' ? 'Get a new key' : 'Sign in'}</button>
    </form>`,
  })
}

async function enterByLink(visit: Visit): Promise<Response> {
  const { deps, form, address } = visit
  deps.limiters.tries.take(address)
  const proof = await takeLink(deps.identity, 'account', form.text('token'))
  if (proof === undefined) return showOver(visit)
  return completeSignIn(visit, proof, { next: '', revokeOld: form.isTicked('revoke-old') })
}

function revokeChoice({ purpose }: SignInProof): Html | '' {
  if (purpose !== 'recover') return ''
  return html`<label class="choice"
    ><input type="checkbox" name="revoke-old" />
    <span
      >Revoke all existing keys of this account
      <span class="hint"
        >Choose this if keys are lost or someone else may have them. Otherwise they keep working.</span
      ></span
    ></label
  >`
}

function showOver(visit: Visit): Promise<Response> {
  return page(visit, {
    title: 'This code or link no longer works',
    lead: 'It was already used, it expired, or a wrong code was entered five times. Codes and links from an email work for 10 minutes, links from the command line for 15. Request a new one.',
    narrow: true,
    status: 410,
    body: html`<p class="actions">
      <a class="button" href="/sign-in">Sign in</a>
      <a class="button secondary" href="/account/recover">Recover a key</a>
    </p>`,
  })
}

function startOf({ purpose }: SignInProof): string {
  if (purpose === 'recover') return '/account/recover'
  return purpose === 'set_up' ? '/account/setup' : '/sign-in'
}
