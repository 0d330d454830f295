import { html } from 'hono/html'
import { endOperatorSession, openOperatorSession } from '../../accounts/operator-sessions.ts'
import { findLink, findProof, startProof, takeLink, tryCode } from '../../accounts/proofs.ts'
import { maskEmailAddress, readEmailAddress, type SignInProof } from '../../domain/identity.ts'
import { MailError } from '../../domain/mail-error.ts'
import { describeBrowser } from '../browser-name.ts'
import { codeField, emailField } from '../field.ts'
import { csrfInput, type Html } from '../layout.ts'
import { outboxHint, mailFailed, tooOften, wrongCode } from '../pages/proof-forms.ts'
import { redirect } from '../redirect.ts'
import type { Route } from '../route.ts'
import { askerOf, endedSessionCookie, knownBrowserCookies, sessionCookie } from '../session-cookie.ts'
import type { DoorVisit, OperatorVisit } from '../visit.ts'
import { consolePage } from './console-page.ts'
import { consolePath, consolePathWith } from './ways-in.ts'
import { operatorActions } from '../../domain/operators.ts'

/** The console's door: an address, its code or link, and out again. Nothing here knows of accounts. */
export const operatorSignInRoutes: readonly Route[] = [
  { method: 'GET', path: '/operator/sign-in', access: 'door', handle: (visit) => showDoor(visit) },
  { method: 'POST', path: '/operator/sign-in', access: 'door', handle: sendCode },
  { method: 'GET', path: '/operator/sign-in/code/:proofId', access: 'door', handle: showCode },
  { method: 'POST', path: '/operator/sign-in/code/:proofId', access: 'door', handle: takeCode },
  { method: 'GET', path: '/operator/sign-in/link', access: 'door', handle: showLink },
  { method: 'POST', path: '/operator/sign-in/link', access: 'door', handle: enterByLink },
  { method: 'POST', path: '/operator/sign-out', access: 'operator', ...operatorActions.see, handle: leave },
]

async function showDoor(visit: DoorVisit, problem?: string): Promise<Response> {
  const { parts, form, entered } = visit
  if (entered !== undefined && problem === undefined) return redirect(nextOf(visit))
  const [first] = await parts.operators.store.listOperators(1)
  if (first?.state !== 'active') return showFirstSteps(visit)
  if (parts.sendMail === undefined)
    return doorPage(visit, {
      title: 'Sign in to the console',
      body: html`<p class="warning">This service sends no mail yet, so it cannot send you a code.</p>
        <p>On the machine where it runs, make a link that signs you in once:</p>
        <pre><code>npx svc-router operators sign-in-link you@example.com</code></pre>`,
    })
  return doorPage(visit, {
    title: 'Sign in to the console',
    lead: 'For the people who operate this service. We send a code to your email address.',
    problem,
    body: html`<form method="post" action="/operator/sign-in">
        ${csrfInput(entered)} ${nextInput(visit)} ${emailField(form.text('email'), problem)}
        <button>Send the code</button>
      </form>
      <div class="side">
        <p>Looking for your account? <a href="/sign-in">Sign in there</a>.</p>
        ${outboxHint(visit)}
      </div>`,
  })
}

/** Where nobody operates the service yet, only its own machine can say who does. */
function showFirstSteps(visit: DoorVisit): Promise<Response> {
  return doorPage(visit, {
    title: 'Nobody operates this service yet',
    lead: 'The first operator is made on the machine where the service runs:',
    body: html`<pre><code>npx svc-router operators create you@example.com --role admin</code></pre>
      <p>Then reload this page and sign in with that address. Operators make the others in the console.</p>
      <p class="side">Looking for your account? <a href="/sign-in">Sign in there</a>.</p>`,
  })
}

async function sendCode(visit: DoorVisit): Promise<Response> {
  const { parts, form } = visit
  const { sendMail, identity, appUrl, clock } = parts
  if (sendMail === undefined) return showDoor(visit)
  const address = readEmailAddress(form.text('email'))
  if (address === undefined) return showDoor(visit, 'That is not an email address. It looks like name@example.com.')
  try {
    const asker = askerOf(visit)
    const started = await startProof({ ...identity, sendMail, appUrl }, address, 'operator_sign_in', asker)
    if ('tooMany' in started) return await showDoor(visit, tooOften(started, clock.nowMs()))
    return redirect(`/operator/sign-in/code/${started.proof.id}?next=${encodeURIComponent(nextOf(visit))}`)
  } catch (error) {
    if (error instanceof MailError) return showDoor(visit, mailFailed)
    throw error
  }
}

async function showCode(visit: DoorVisit): Promise<Response> {
  const proof = await askedProof(visit)
  return proof === undefined || visit.parts.clock.nowMs() >= proof.expiresAtMs
    ? showOver(visit)
    : codePage(visit, proof)
}

async function takeCode(visit: DoorVisit): Promise<Response> {
  const { parts, form, address } = visit
  parts.limiters.tries.take(address)
  const proof = await askedProof(visit)
  if (proof === undefined) return showOver(visit)
  const tried = await tryCode(parts.identity, 'operator', proof.id, form.text('code'))
  if (tried === 'over') return showOver(visit)
  if (tried === 'wrong') return codePage(visit, proof, wrongCode)
  return enter(visit, tried)
}

/** The sign-in that the path names; the code that confirms has its own page. */
async function askedProof({ parts, params }: DoorVisit): Promise<SignInProof | undefined> {
  const proof = await findProof(parts.identity, 'operator', params['proofId'] ?? '')
  return proof?.purpose === 'operator_sign_in' && proof.address !== null ? proof : undefined
}

function codePage(visit: DoorVisit, proof: SignInProof, problem?: string): Promise<Response> {
  return doorPage(visit, {
    title: 'Type in the code',
    lead: html`If <strong>${maskEmailAddress(proof.address ?? '')}</strong> takes letters, ours with a code of six
      digits is on its way. It works for 10 minutes.`,
    problem,
    body: html`<form method="post" action="/operator/sign-in/code/${proof.id}">
        ${csrfInput(visit.entered)} ${nextInput(visit)} ${codeField(problem)}
        <button>Go on</button>
      </form>
      <div class="side">
        <p>No letter? Look among unwanted mail, or <a href="/operator/sign-in">ask for another</a>.</p>
        ${outboxHint(visit)}
      </div>`,
  })
}

/** Looking changes nothing: programs that look at every link of a letter must not use it up. */
async function showLink(visit: DoorVisit): Promise<Response> {
  const token = visit.query.get('token') ?? ''
  const proof = await findLink(visit.parts.identity, 'operator', token)
  if (proof === undefined) return showOver(visit)
  return doorPage(visit, {
    title: 'Welcome to the console',
    lead: 'This link signs you in, once.',
    body: html`<form method="post" action="/operator/sign-in/link">
      ${csrfInput(visit.entered)}<input type="hidden" name="token" value="${token}" /><button>Sign in</button>
    </form>`,
  })
}

async function enterByLink(visit: DoorVisit): Promise<Response> {
  const { parts, form, address } = visit
  parts.limiters.tries.take(address)
  const proof = await takeLink(parts.identity, 'operator', form.text('token'))
  return proof === undefined ? showOver(visit) : enter(visit, proof)
}

/** A new session, whatever the browser had before: that one ends. Who proved an address may learn that it is no operator's. */
async function enter(visit: DoorVisit, { forOperator, address }: SignInProof): Promise<Response> {
  const { parts, entered: before, userAgent } = visit
  const { store } = parts.operators
  const operator = await (forOperator === undefined
    ? store.findOperatorByEmail(address ?? '')
    : store.findOperator(forOperator.operatorId))
  const opened =
    operator?.state === 'active'
      ? await openOperatorSession(parts.operators, operator.id, {
          method: address === null ? 'link' : 'email',
          agent: describeBrowser(userAgent),
        })
      : undefined
  if (opened === undefined)
    return doorPage(visit, {
      title: 'That is no operator’s address',
      lead: 'Nobody signs in to the console with it. Another admin can make you an operator.',
      status: 403,
      body: html`<p><a class="button" href="/operator/sign-in">Use another address</a></p>`,
    })
  if (before !== undefined) await endOperatorSession(parts.operators, before.session)
  const cookie = sessionCookie(opened.token, 'operator', parts.appUrl.startsWith('https:'))
  return redirect(consolePathWith(nextOf(visit), 'operator-in'), [cookie, ...knownBrowserCookies(parts, address)])
}

async function leave({ parts, session }: OperatorVisit): Promise<Response> {
  await endOperatorSession(parts.operators, session)
  const ended = endedSessionCookie('operator', parts.appUrl.startsWith('https:'))
  return redirect('/operator/sign-in?done=operator-out', [ended])
}

function showOver(visit: DoorVisit): Promise<Response> {
  return doorPage(visit, {
    title: 'This code or link is over',
    lead: 'Each works once and for a few minutes, and a code bears five tries. Nothing is lost: ask for a new one.',
    status: 410,
    body: html`<p><a class="button" href="/operator/sign-in">Sign in</a></p>`,
  })
}

interface DoorPage {
  readonly title: string
  readonly lead?: string | Html
  readonly status?: number
  readonly problem?: string | undefined
  readonly body: Html
}

/** A page before anybody is in: it shows nothing of who was. */
function doorPage({ path, query }: DoorVisit, { problem, ...it }: DoorPage): Promise<Response> {
  const wrong = problem === undefined ? {} : { status: 422, problem: 'Please correct what is marked below.' }
  return consolePage({ path, query }, { ...it, ...wrong, narrow: true })
}

function nextOf({ query, form }: DoorVisit): string {
  return consolePath(query.get('next') ?? form.text('next'))
}

function nextInput(visit: DoorVisit): Html {
  return html`<input type="hidden" name="next" value="${nextOf(visit)}" />`
}
