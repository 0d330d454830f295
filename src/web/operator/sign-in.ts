import { html } from 'hono/html'
import { findLink, findProof, startProof, takeLink, tryCode } from '../../accounts/identity/proofs.ts'
import { endOperatorSession, openOperatorSession } from '../../accounts/operators/operator-sessions.ts'
import { maskEmailAddress, readEmailAddress, type SignInProof } from '../../domain/identity.ts'
import { MailError } from '../../domain/mail-error.ts'
import { operatorActions } from '../../domain/operators.ts'
import { codeField, emailField } from '../components/field.ts'
import type { Html } from '../components/html.ts'
import { csrfInput } from '../components/layout.ts'
import { describeBrowser } from '../http/browser-name.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import { requesterOf, endedSessionCookie, knownBrowserCookies, sessionCookie } from '../http/session-cookie.ts'
import type { ConsoleSignInRequest, OperatorVisit } from '../http/visit.ts'
import { outboxHint, mailFailed, tooOften, wrongCode } from '../pages/proof-forms.ts'
import { consolePath, consolePathWith } from './console-links.ts'
import { consolePage } from './console-page.ts'

/** Signing in to and out of the console, with a code or link. Independent of accounts. */
export const operatorSignInRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/operator/sign-in', access: 'console_sign_in', handle: (visit) => showSignIn(visit) },
  { method: 'POST', path: '/operator/sign-in', access: 'console_sign_in', handle: sendCode },
  { method: 'GET', path: '/operator/sign-in/code/:proofId', access: 'console_sign_in', handle: showCode },
  { method: 'POST', path: '/operator/sign-in/code/:proofId', access: 'console_sign_in', handle: takeCode },
  { method: 'GET', path: '/operator/sign-in/link', access: 'console_sign_in', handle: showLink },
  { method: 'POST', path: '/operator/sign-in/link', access: 'console_sign_in', handle: enterByLink },
  { method: 'POST', path: '/operator/sign-out', access: 'operator', ...operatorActions.see, handle: leave },
]

async function showSignIn(visit: ConsoleSignInRequest, problem?: string): Promise<Response> {
  const { deps, form, signedInOperator } = visit
  if (signedInOperator !== undefined && problem === undefined) return redirect(nextOf(visit))
  const [first] = await deps.operators.store.listOperators(1)
  if (first?.state !== 'active') return showFirstSteps(visit)
  if (deps.sendMail === undefined)
    return signInPage(visit, {
      title: 'Sign in to the console',
      body: html`<p class="warning">This service cannot send email yet, so it cannot send you a code.</p>
        <p>Create a one-time sign-in link on the machine where it runs:</p>
        <pre><code>npx svc-router operators sign-in-link you@example.com</code></pre>`,
    })
  return signInPage(visit, {
    title: 'Sign in to the console',
    lead: 'For the people who operate this service. We send a code to your email address.',
    problem,
    body: html`<form method="post" action="/operator/sign-in">
        ${csrfInput(signedInOperator)} ${nextInput(visit)} ${emailField(form.text('email'), problem)}
        <button>Send the code</button>
      </form>
      <div class="side">
        <p>Looking for your account? <a href="/sign-in">Sign in here</a>.</p>
        ${outboxHint(visit)}
      </div>`,
  })
}

/** The first operator can only be created on the service's own machine (contract 24.2). */
function showFirstSteps(visit: ConsoleSignInRequest): Promise<Response> {
  return signInPage(visit, {
    title: 'This service has no operator yet',
    lead: 'Create the first operator on the machine where the service runs:',
    body: html`<pre><code>npx svc-router operators create you@example.com --role admin</code></pre>
      <p>Then reload this page and sign in with that address. Admins add other operators in the console.</p>
      <p class="side">Looking for your account? <a href="/sign-in">Sign in here</a>.</p>`,
  })
}

async function sendCode(visit: ConsoleSignInRequest): Promise<Response> {
  const { deps, form } = visit
  const { sendMail, identity, appUrl, clock } = deps
  if (sendMail === undefined) return showSignIn(visit)
  const address = readEmailAddress(form.text('email'))
  if (address === undefined) return showSignIn(visit, 'Enter an email address such as name@example.com.')
  try {
    const requester = requesterOf(visit)
    const started = await startProof({ ...identity, sendMail, appUrl }, address, 'operator_sign_in', requester)
    if ('tooMany' in started) return await showSignIn(visit, tooOften(started, clock.nowMs()))
    return redirect(`/operator/sign-in/code/${started.proof.id}?next=${encodeURIComponent(nextOf(visit))}`)
  } catch (error) {
    if (error instanceof MailError) return showSignIn(visit, mailFailed)
    throw error
  }
}

async function showCode(visit: ConsoleSignInRequest): Promise<Response> {
  const proof = await askedProof(visit)
  return proof === undefined || visit.deps.clock.nowMs() >= proof.expiresAtMs ? showOver(visit) : codePage(visit, proof)
}

async function takeCode(visit: ConsoleSignInRequest): Promise<Response> {
  const { deps, form, address } = visit
  deps.limiters.tries.take(address)
  const proof = await askedProof(visit)
  if (proof === undefined) return showOver(visit)
  const tried = await tryCode(deps.identity, 'operator', proof.id, form.text('code'))
  if (tried === 'over') return showOver(visit)
  if (tried === 'wrong') return codePage(visit, proof, wrongCode)
  return enter(visit, tried)
}

/** The sign-in proof in the path; confirmation codes have their own page. */
async function askedProof({ deps, params }: ConsoleSignInRequest): Promise<SignInProof | undefined> {
  const proof = await findProof(deps.identity, 'operator', params['proofId'] ?? '')
  return proof?.purpose === 'operator_sign_in' && proof.address !== null ? proof : undefined
}

function codePage(visit: ConsoleSignInRequest, proof: SignInProof, problem?: string): Promise<Response> {
  return signInPage(visit, {
    title: 'Enter the code',
    lead: html`We sent a six-digit code to <strong>${maskEmailAddress(proof.address ?? '')}</strong>. It expires in 10
      minutes.`,
    problem,
    body: html`<form method="post" action="/operator/sign-in/code/${proof.id}">
        ${csrfInput(visit.signedInOperator)} ${nextInput(visit)} ${codeField(problem)}
        <button>Continue</button>
      </form>
      <div class="side">
        <p>No email? Check your spam folder, or <a href="/operator/sign-in">request another code</a>.</p>
        ${outboxHint(visit)}
      </div>`,
  })
}

/** A GET changes nothing, so that mail scanners that open every link do not use it up. */
async function showLink(visit: ConsoleSignInRequest): Promise<Response> {
  const token = visit.query.get('token') ?? ''
  const proof = await findLink(visit.deps.identity, 'operator', token)
  if (proof === undefined) return showOver(visit)
  return signInPage(visit, {
    title: 'Welcome to the console',
    lead: 'This link signs you in and works only once.',
    body: html`<form method="post" action="/operator/sign-in/link">
      ${csrfInput(visit.signedInOperator)}<input type="hidden" name="token" value="${token}" /><button>Sign in</button>
    </form>`,
  })
}

async function enterByLink(visit: ConsoleSignInRequest): Promise<Response> {
  const { deps, form, address } = visit
  deps.limiters.tries.take(address)
  const proof = await takeLink(deps.identity, 'operator', form.text('token'))
  return proof === undefined ? showOver(visit) : enter(visit, proof)
}

/** Opens a new session in place of any earlier one. A verified address may be told that it is not an operator's. */
async function enter(visit: ConsoleSignInRequest, { forOperator, address }: SignInProof): Promise<Response> {
  const { deps, signedInOperator: before, userAgent } = visit
  const { store } = deps.operators
  const operator = await (forOperator === undefined
    ? store.findOperatorByEmail(address ?? '')
    : store.findOperator(forOperator.operatorId))
  const opened =
    operator?.state === 'active'
      ? await openOperatorSession(deps.operators, operator.id, {
          method: address === null ? 'link' : 'email',
          agent: describeBrowser(userAgent),
        })
      : undefined
  if (opened === undefined)
    return signInPage(visit, {
      title: 'This address does not belong to an operator',
      lead: 'You cannot sign in to the console with this address. An admin can add you as an operator.',
      status: 403,
      body: html`<p><a class="button" href="/operator/sign-in">Use another address</a></p>`,
    })
  if (before !== undefined) await endOperatorSession(deps.operators, before.session)
  const cookie = sessionCookie(opened.token, 'operator', deps.appUrl.startsWith('https:'))
  return redirect(consolePathWith(nextOf(visit), 'operator-in'), [cookie, ...knownBrowserCookies(deps, address)])
}

async function leave({ deps, session }: OperatorVisit): Promise<Response> {
  await endOperatorSession(deps.operators, session)
  const ended = endedSessionCookie('operator', deps.appUrl.startsWith('https:'))
  return redirect('/operator/sign-in?done=operator-out', [ended])
}

function showOver(visit: ConsoleSignInRequest): Promise<Response> {
  return signInPage(visit, {
    title: 'This code or link no longer works',
    lead: 'It was already used, it expired, or a wrong code was entered five times. Codes and links from an email work for 10 minutes, links from the command line for 15. Request a new one.',
    status: 410,
    body: html`<p><a class="button" href="/operator/sign-in">Sign in</a></p>`,
  })
}

interface ConsoleSignInPage {
  readonly title: string
  readonly lead?: string | Html
  readonly status?: number
  readonly problem?: string | undefined
  readonly body: Html
}

/** A page before sign-in. It shows nothing about previous visitors. */
function signInPage({ path, query }: ConsoleSignInRequest, { problem, ...it }: ConsoleSignInPage): Promise<Response> {
  const wrong = problem === undefined ? {} : { status: 422, problem: 'Please correct the errors below.' }
  return consolePage({ path, query }, { ...it, ...wrong, narrow: true })
}

function nextOf({ query, form }: ConsoleSignInRequest): string {
  return consolePath(query.get('next') ?? form.text('next'))
}

function nextInput(visit: ConsoleSignInRequest): Html {
  return html`<input type="hidden" name="next" value="${nextOf(visit)}" />`
}
