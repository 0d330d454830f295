import { html } from 'hono/html'
import { findProof, startConfirming, tryCode } from '../../accounts/identity/proofs.ts'
import { confirmOperatorSession, isConfirmed } from '../../accounts/operators/operator-sessions.ts'
import { maskEmailAddress, type SignInProof } from '../../domain/identity.ts'
import { MailError } from '../../domain/mail-error.ts'
import { operatorActions } from '../../domain/operators.ts'
import { codeField } from '../components/field.ts'
import type { Html } from '../components/html.ts'
import { csrfInput } from '../components/layout.ts'
import { PageError } from '../http/page-error.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import { requesterOf } from '../http/session-cookie.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { mailFailed, outboxHint, tooOften, wrongCode } from '../pages/proof-forms.ts'
import { consolePath, consolePathWith, pathToConfirm } from './console-links.ts'
import { consolePage } from './console-page.ts'

/** Step-up authentication: operators confirm their identity before sensitive actions. */
export const confirmRoutes: readonly PageRoute[] = [
  {
    method: 'GET',
    path: '/operator/confirm',
    access: 'operator',
    ...operatorActions.see,
    handle: (visit) => ask(visit),
  },
  { method: 'POST', path: '/operator/confirm', access: 'operator', ...operatorActions.see, handle: sendCode },
  { method: 'GET', path: '/operator/confirm/:proofId', access: 'operator', ...operatorActions.see, handle: showCode },
  { method: 'POST', path: '/operator/confirm/:proofId', access: 'operator', ...operatorActions.see, handle: takeCode },
]

/** A notice above a form that requires confirmation, so that nobody has to fill it in twice. */
export function confirmFirst({ session, deps }: OperatorVisit, path: string): Html | '' {
  if (isConfirmed(session, deps.clock.nowMs())) return ''
  return html`<p class="notice">
    This requires a recent confirmation of your identity, from the last ten minutes.
    <a href="${pathToConfirm(path)}">Confirm your identity first</a>
  </p>`
}

const title = 'Confirm your identity'

function ask(visit: OperatorVisit, problem?: string): Promise<Response> {
  const { deps, operator } = visit
  if (deps.sendMail === undefined)
    return consolePage(visit, {
      title,
      lead: 'To continue, confirm that it is you. The confirmation is valid for ten minutes.',
      narrow: true,
      body: html`<p>This service cannot send email. Create a link on the machine where it runs, and open it here:</p>
        <pre><code>npx svc-router operators sign-in-link ${operator.email}</code></pre>
        <p><a href="${nextOf(visit)}">Back</a></p>`,
    })
  return consolePage(visit, {
    title,
    lead: html`To continue, confirm that it is you. The confirmation is valid for ten minutes. We will send a code to
      <strong>${maskEmailAddress(operator.email)}</strong>.`,
    narrow: true,
    status: problem === undefined ? 200 : 422,
    problem,
    body: html`<form method="post" action="/operator/confirm">
        ${csrfInput(visit)} ${nextInput(visit)}<button>Send the code</button>
      </form>
      <p class="side"><a href="${nextOf(visit)}">Cancel and go back</a></p>`,
  })
}

async function sendCode(visit: OperatorVisit): Promise<Response> {
  const { deps, operator, session } = visit
  const { sendMail, identity, appUrl, clock } = deps
  if (sendMail === undefined) return ask(visit)
  try {
    const started = await startConfirming(
      { ...identity, sendMail, appUrl },
      { operator, sessionId: session.id },
      requesterOf(visit),
    )
    if ('tooMany' in started) return await ask(visit, tooOften(started, clock.nowMs()))
    return redirect(`/operator/confirm/${started.proof.id}?next=${encodeURIComponent(nextOf(visit))}`)
  } catch (error) {
    if (error instanceof MailError) return ask(visit, mailFailed)
    throw error
  }
}

async function showCode(visit: OperatorVisit): Promise<Response> {
  return codePage(visit, await ownProof(visit))
}

async function takeCode(visit: OperatorVisit): Promise<Response> {
  const { deps, form, session, address } = visit
  deps.limiters.tries.take(address)
  const proof = await ownProof(visit)
  const tried = await tryCode(deps.identity, 'operator', proof.id, form.text('code'))
  if (tried === 'over') return ask(visit, 'That code no longer works. Request a new one.')
  if (tried === 'wrong') return codePage(visit, proof, wrongCode)
  if (!(await confirmOperatorSession(deps.operators, session))) throw new PageError('not_found')
  return redirect(consolePathWith(nextOf(visit), 'confirmed'))
}

/** The proof that this session requested. @throws PageError `not_found` for any other */
async function ownProof({ deps, params, operator, session }: OperatorVisit): Promise<SignInProof> {
  const proof = await findProof(deps.identity, 'operator', params['proofId'] ?? '')
  const asked = proof?.purpose === 'operator_confirm' ? proof.forOperator : undefined
  if (proof === undefined || asked?.operatorId !== operator.id || asked.sessionId !== session.id)
    throw new PageError('not_found')
  return proof
}

function codePage(visit: OperatorVisit, proof: SignInProof, problem?: string): Promise<Response> {
  return consolePage(visit, {
    title: 'Enter the code',
    lead: html`We sent a six-digit code to <strong>${maskEmailAddress(proof.address ?? '')}</strong>. It expires in 10
      minutes and works only in this browser.`,
    narrow: true,
    status: problem === undefined ? 200 : 422,
    problem: problem === undefined ? undefined : 'The code is not correct.',
    body: html`<form method="post" action="/operator/confirm/${proof.id}">
        ${csrfInput(visit)} ${nextInput(visit)} ${codeField(problem)}
        <button>Confirm</button>
      </form>
      <div class="side">
        <p>No email? <a href="/operator/confirm?next=${encodeURIComponent(nextOf(visit))}">Request another code</a>.</p>
        ${outboxHint(visit)}
      </div>`,
  })
}

function nextOf({ query, form }: OperatorVisit): string {
  return consolePath(query.get('next') ?? form.text('next'))
}

function nextInput(visit: OperatorVisit): Html {
  return html`<input type="hidden" name="next" value="${nextOf(visit)}" />`
}
