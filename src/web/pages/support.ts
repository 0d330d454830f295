import { html } from 'hono/html'
import { fileTicket, maxTextCharacters, type TicketFault } from '../../accounts/support/support.ts'
import { forbiddenAsData, maskForbidden } from '../../domain/forbidden-text.ts'
import { field } from '../components/field.ts'
import type { Html } from '../components/html.ts'
import { csrfInput, page } from '../components/layout.ts'
import type { PageRoute } from '../http/route.ts'
import type { Visit } from '../http/visit.ts'

export const supportRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/support', access: 'public', handle: (visit) => showForm(visit) },
  { method: 'POST', path: '/support', access: 'public', handle: file },
]

const shapes = JSON.stringify(forbiddenAsData())

async function file(visit: Visit): Promise<Response> {
  const { deps, form, signedIn, address } = visit
  deps.limiters.mails.take(address)
  const filed = await fileTicket(deps.support, {
    accountId: signedIn?.account.id ?? null,
    email: form.text('email'),
    requestId: form.text('request_id'),
    text: form.text('text'),
  })
  if ('field' in filed) return showForm(visit, filed)
  return page(visit, {
    title: 'We have your message',
    lead: html`We will reply to <strong>${filed.replyTo}</strong>.`,
    narrow: true,
    body: html`<p>Your ticket number is <code>${filed.id}</code>. You do not need to do anything else.</p>
      <p><a class="button secondary" href="/status">Service status</a></p>`,
  })
}

const sentences: Readonly<Record<TicketFault['field'], string>> = {
  email: 'Enter a valid email address.',
  request_id: 'Request IDs start with req_. Leave this empty if you do not have one.',
  text: `Write between 10 and ${maxTextCharacters} characters.`,
}

function showForm(visit: Visit, fault?: TicketFault): Promise<Response> {
  const { form, signedIn } = visit
  const problemOf = (name: TicketFault['field']): string | undefined =>
    fault?.field === name && fault.found === undefined ? sentences[name] : undefined
  const typed = (name: string): string =>
    fault === undefined ? '' : maskForbidden(form.text(name).slice(0, maxTextCharacters))
  return page(visit, {
    title: 'Support',
    lead: 'Tell us what you did, what happened, and the request ID. An error code’s page often has the solution.',
    status: fault === undefined ? 200 : 422,
    problem: fault === undefined ? undefined : fault.found === undefined ? sentences[fault.field] : found(fault.found),
    narrow: true,
    body: html`<p class="warning">
        Do not include prompts, answers, keys, tokens, cookies, or customer data. We never need them, and we do not
        accept messages that contain them.
      </p>
      <form method="post" action="/support" data-forbidden="${shapes}">
        ${csrfInput(signedIn)}
        ${field({ name: 'email', label: 'Your email address', type: 'email', autocomplete: 'email', value: typed('email'), problem: problemOf('email') })}
        ${field({
          name: 'request_id',
          label: 'Request ID',
          hint: html`Starts with <code>req_</code>. It is in the header <code>X-Request-Id</code> and in every error.`,
          optional: true,
          maxCharacters: 60,
          value: typed('request_id'),
          problem: problemOf('request_id'),
        })}
        ${textField(typed('text'), problemOf('text'))}
        <button>Send</button>
      </form>
      <p class="side">
        <a href="/docs/errors">All errors</a> · <a href="/status">Status</a> · <a href="/docs">Documentation</a> ·
        <a href="/leaked-key">I found a key</a> · <a href="/account/managed-access">Managed access</a>
      </p>`,
  })
}

function textField(value: string, problem: string | undefined): Html {
  return html`<div class="field">
    <label for="text">What happened</label>
    ${problem === undefined ? '' : html`<span class="wrong" id="text-wrong">${problem}</span>`}
    <span class="wrong" id="text-found" role="status"></span>
    <textarea id="text" name="text" rows="8" maxlength="${maxTextCharacters}" required aria-describedby="text-found">
${value}</textarea>
  </div>`
}

function found(kinds: readonly string[]): string {
  return `Your message was not sent: it appears to contain ${kinds.join(', ')}. We replaced that text with asterisks below. Check the message and send it again.`
}
