import { html } from 'hono/html'
import { maxTries, startProof, type StartedProof } from '../../accounts/identity/proofs.ts'
import { readEmailAddress, type AccountPurpose } from '../../domain/identity.ts'
import { MailError } from '../../domain/mail-error.ts'
import { emailField } from '../components/field.ts'
import type { Html } from '../components/html.ts'
import { csrfInput, page } from '../components/layout.ts'
import { PageError } from '../http/page-error.ts'
import { ownPath, redirect } from '../http/redirect.ts'
import { requesterOf } from '../http/session-cookie.ts'
import type { Visit } from '../http/visit.ts'
import { passkeySignIn } from './passkeys.ts'

/** A page that asks for an email address. */
export interface AddressPage {
  readonly path: string
  readonly purpose: AccountPurpose
  readonly title: string
  readonly lead: string
  readonly button: string
  readonly below: Html
}

/** Shows the page, with the error if there is one. */
export function showAddressPage(visit: Visit, it: AddressPage, problem?: string): Promise<Response> {
  const { deps, form, query, signedIn } = visit
  const next = ownPath(query.get('next') ?? form.text('next'), '')
  const status = problem === undefined ? 200 : 422
  if (deps.sendMail === undefined)
    return page(visit, {
      title: it.title,
      narrow: true,
      body: html`<p class="warning">This service cannot send email yet. Its operator can give you a sign-in link.</p>
        <p class="faint">
          Operators: set <code>mail</code> in the configuration, or run <code>svc-router sign-in-link</code>.
        </p>`,
    })
  return page(visit, {
    title: it.title,
    lead: it.lead,
    narrow: true,
    status,
    problem: problem === undefined ? undefined : 'Please correct the errors below.',
    body: html`<form method="post" action="${it.path}">
        ${csrfInput(signedIn)} ${next === '' ? '' : html`<input type="hidden" name="next" value="${next}" />`}
        ${emailField(form.text('email'), problem)}
        <button>${it.button}</button>
      </form>
      ${it.purpose === 'sign_in' ? passkeySignIn(visit, next) : ''}
      <div class="side">${it.below} ${outboxHint(visit)}</div>`,
  })
}

/** Sends the code and redirects to the page where it is entered. Behaves the same for every address. */
export async function sendCode(visit: Visit, it: AddressPage): Promise<Response> {
  const { deps, form } = visit
  const { sendMail, identity, appUrl, clock } = deps
  if (sendMail === undefined) return showAddressPage(visit, it)
  const address = readEmailAddress(form.text('email'))
  if (address === undefined) return showAddressPage(visit, it, 'Enter an email address such as name@example.com.')
  try {
    const started = await startProof({ ...identity, sendMail, appUrl }, address, it.purpose, requesterOf(visit))
    if ('tooMany' in started) return showAddressPage(visit, it, tooOften(started, clock.nowMs()))
    const next = ownPath(form.text('next'), '')
    return redirect(`/sign-in/code/${started.proof.id}${next === '' ? '' : `?next=${encodeURIComponent(next)}`}`)
  } catch (error) {
    if (error instanceof MailError) return showAddressPage(visit, it, mailFailed)
    throw error
  }
}

/** Shown when the mail server does not accept the email. */
export const mailFailed = 'The email could not be sent. Check the address, or try again in a minute.'

/** Shown when the entered code is wrong. */
export const wrongCode = `That code is not correct. After ${maxTries} wrong tries you need a new code.`

/**
 * Shown when too many codes were requested for an address, whether or not an account has it.
 * @throws PageError `too_many` if the visitor's network requested too many
 */
export function tooOften({ tooMany, retryAtMs }: Exclude<StartedProof, { proof: unknown }>, nowMs: number): string {
  if (tooMany === 'network') throw new PageError('too_many')
  const minutes = Math.max(1, Math.ceil((retryAtMs - nowMs) / 60_000))
  const wait = minutes > 90 ? `${Math.ceil(minutes / 60)} hours` : `${minutes} minute${minutes === 1 ? '' : 's'}`
  return `We already sent several codes to this address. Use the newest email, or try again in ${wait}.`
}

/** Links to the local outbox, where the emails that were not sent are shown. */
export function outboxHint({ deps, isFromThisMachine }: Visit): Html | '' {
  if (deps.outbox === undefined || !isFromThisMachine) return ''
  return html`<p>No mail server is configured. Emails go to the <a href="/dev/outbox">local outbox</a>.</p>`
}
