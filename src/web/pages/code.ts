import { html } from 'hono/html'
import { findLink, findProof, takeLink, tryCode } from '../../accounts/proofs.ts'
import { maskEmailAddress, type SignInProof } from '../../domain/identity.ts'
import { codeField } from '../field.ts'
import { csrfInput, page, type Html } from '../layout.ts'
import { ownPath } from '../redirect.ts'
import type { Route } from '../route.ts'
import type { Visit } from '../visit.ts'
import { arrive } from './arrival.ts'
import { outboxHint, wrongCode } from './proof-forms.ts'

/** Where a code is typed in, and where the link of a letter leads. */
export const codeRoutes: readonly Route[] = [
  { method: 'GET', path: '/sign-in/code/:proofId', access: 'public', handle: showCode },
  { method: 'POST', path: '/sign-in/code/:proofId', access: 'public', handle: takeCode },
  { method: 'GET', path: '/sign-in/link', access: 'public', handle: showLink },
  { method: 'POST', path: '/sign-in/link', access: 'public', handle: enterByLink },
]

async function showCode(visit: Visit): Promise<Response> {
  const proof = await findProof(visit.parts.identity, 'account', visit.params['proofId'] ?? '')
  return proof?.address == null || visit.parts.clock.nowMs() >= proof.expiresAtMs
    ? showOver(visit)
    : codePage(visit, proof)
}

async function takeCode(visit: Visit): Promise<Response> {
  const { parts, params, form, address } = visit
  const proofId = params['proofId'] ?? ''
  parts.limiters.tries.take(address)
  const proof = await findProof(parts.identity, 'account', proofId)
  // One more address is for the account that asked: its own page takes the code.
  if (proof === undefined || proof.purpose === 'add_email') return showOver(visit)
  const tried = await tryCode(parts.identity, 'account', proofId, form.text('code'))
  if (tried === 'over') return showOver(visit)
  if (tried === 'wrong') return codePage(visit, proof, wrongCode)
  return arrive(visit, tried, { next: ownPath(form.text('next'), ''), revokeOld: form.isTicked('revoke-old') })
}

function codePage(visit: Visit, proof: SignInProof, problem?: string): Promise<Response> {
  const { parts, query, form, signedIn } = visit
  const next = ownPath(query.get('next') ?? form.text('next'), '')
  return page(visit, {
    title: 'Type in the code',
    lead: html`If <strong>${maskEmailAddress(proof.address ?? '')}</strong> takes letters, ours with a code of six
      digits is on its way. It works for 10 minutes.`,
    narrow: true,
    status: problem === undefined ? 200 : 422,
    problem: problem === undefined ? undefined : 'The code was not right.',
    body: html`<form method="post" action="/sign-in/code/${proof.id}">
        ${csrfInput(signedIn)} ${next === '' ? '' : html`<input type="hidden" name="next" value="${next}" />`}
        ${codeField(problem)} ${revokeChoice(proof)}
        <button>${proof.purpose === 'recover' ? 'Get a new key' : 'Go on'}</button>
      </form>
      <div class="side">
        <p>No letter? Look among unwanted mail, or <a href="${startOf(proof)}">ask for another</a>.</p>
        ${parts.outbox === undefined ? '' : outboxHint(visit)}
      </div>`,
  })
}

/** Looking changes nothing: programs that look at every link of a letter must not use it up. */
async function showLink(visit: Visit): Promise<Response> {
  const { parts, query, signedIn } = visit
  const token = query.get('token') ?? ''
  const proof = await findLink(parts.identity, 'account', token)
  if (proof === undefined) return showOver(visit)
  return page(visit, {
    title: proof.purpose === 'recover' ? 'Recover your key' : 'Welcome',
    lead:
      proof.address === null
        ? 'This link signs you in, once.'
        : html`This signs in <strong>${maskEmailAddress(proof.address)}</strong>.`,
    narrow: true,
    body: html`<form method="post" action="/sign-in/link">
      ${csrfInput(signedIn)}<input type="hidden" name="token" value="${token}" />
      ${revokeChoice(proof)}
      <button>${proof.purpose === 'recover' ? 'Get a new key' : 'Sign in'}</button>
    </form>`,
  })
}

async function enterByLink(visit: Visit): Promise<Response> {
  const { parts, form, address } = visit
  parts.limiters.tries.take(address)
  const proof = await takeLink(parts.identity, 'account', form.text('token'))
  if (proof === undefined) return showOver(visit)
  return arrive(visit, proof, { next: '', revokeOld: form.isTicked('revoke-old') })
}

function revokeChoice({ purpose }: SignInProof): Html | '' {
  if (purpose !== 'recover') return ''
  return html`<label class="choice"
    ><input type="checkbox" name="revoke-old" />
    <span
      >Revoke every key that the account has now
      <span class="hint"
        >For keys that are lost or that somebody else may have. Unticked, they go on working.</span
      ></span
    ></label
  >`
}

function showOver(visit: Visit): Promise<Response> {
  return page(visit, {
    title: 'This code or link is over',
    lead: 'Each works once and for a few minutes, and a code bears five tries. Nothing is lost: ask for a new one.',
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
