import { html } from 'hono/html'
import { confirmOperatorSession, isConfirmed } from '../../accounts/operator-sessions.ts'
import { findProof, startConfirming, tryCode } from '../../accounts/proofs.ts'
import { maskEmailAddress, type SignInProof } from '../../domain/identity.ts'
import { MailError } from '../../domain/mail-error.ts'
import { operatorActions } from '../../domain/operators.ts'
import { codeField } from '../field.ts'
import { csrfInput, type Html } from '../layout.ts'
import { mailFailed, outboxHint, tooOften, wrongCode } from '../pages/proof-forms.ts'
import { askerOf } from '../session-cookie.ts'
import { redirect } from '../redirect.ts'
import { PageRefusal } from '../refusals.ts'
import type { Route } from '../route.ts'
import type { OperatorVisit } from '../visit.ts'
import { consolePage } from './console-page.ts'
import { consolePath, consolePathWith, pathToConfirm } from './ways-in.ts'

/** Step-up authentication: operators confirm their identity before sensitive actions. */
export const confirmRoutes: readonly Route[] = [
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
export function confirmFirst({ session, parts }: OperatorVisit, path: string): Html | '' {
  if (isConfirmed(session, parts.clock.nowMs())) return ''
  return html`<p class="notice">
    This requires that you confirmed your identity within the last ten minutes.
    <a href="${pathToConfirm(path)}">Confirm your identity first</a>
  </p>`
}

const title = 'Confirm your identity'

function ask(visit: OperatorVisit, problem?: string): Promise<Response> {
  const { parts, operator } = visit
  if (parts.sendMail === undefined)
    return consolePage(visit, {
      title,
      lead: 'This action requires that you confirmed your identity within the last ten minutes.',
      narrow: true,
      body: html`<p>This service cannot send email. Create a link on the machine where it runs, and open it here:</p>
        <pre><code>npx svc-router operators sign-in-link ${operator.email}</code></pre>
        <p><a href="${nextOf(visit)}">Back</a></p>`,
    })
  return consolePage(visit, {
    title,
    lead: html`This action requires that you confirmed your identity within the last ten minutes. We will send a code to
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
  const { parts, operator, session } = visit
  const { sendMail, identity, appUrl, clock } = parts
  if (sendMail === undefined) return ask(visit)
  try {
    const started = await startConfirming(
      { ...identity, sendMail, appUrl },
      { operator, sessionId: session.id },
      askerOf(visit),
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
  const { parts, form, session, address } = visit
  parts.limiters.tries.take(address)
  const proof = await ownProof(visit)
  const tried = await tryCode(parts.identity, 'operator', proof.id, form.text('code'))
  if (tried === 'over') return ask(visit, 'That code has expired. Request a new one.')
  if (tried === 'wrong') return codePage(visit, proof, wrongCode)
  if (!(await confirmOperatorSession(parts.operators, session))) throw new PageRefusal('not_found')
  return redirect(consolePathWith(nextOf(visit), 'confirmed'))
}

/** The proof that this session requested. @throws PageRefusal `not_found` for any other */
async function ownProof({ parts, params, operator, session }: OperatorVisit): Promise<SignInProof> {
  const proof = await findProof(parts.identity, 'operator', params['proofId'] ?? '')
  const asked = proof?.purpose === 'operator_confirm' ? proof.forOperator : undefined
  if (proof === undefined || asked?.operatorId !== operator.id || asked.sessionId !== session.id)
    throw new PageRefusal('not_found')
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
