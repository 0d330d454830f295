import { html } from 'hono/html'
import { fileTicket, maxTextCharacters, type TicketFault } from '../../accounts/support.ts'
import { forbiddenAsData, maskForbidden } from '../../domain/forbidden-text.ts'
import { field } from '../field.ts'
import { csrfInput, page, type Html } from '../layout.ts'
import type { Route } from '../route.ts'
import type { Visit } from '../visit.ts'

export const supportRoutes: readonly Route[] = [
  { method: 'GET', path: '/support', access: 'public', handle: (visit) => showForm(visit) },
  { method: 'POST', path: '/support', access: 'public', handle: file },
]

const shapes = JSON.stringify(forbiddenAsData())

async function file(visit: Visit): Promise<Response> {
  const { parts, form, signedIn, address } = visit
  parts.limiters.letters.take(address)
  const filed = await fileTicket(parts.support, {
    accountId: signedIn?.account.id ?? null,
    email: form.text('email'),
    requestId: form.text('request_id'),
    text: form.text('text'),
  })
  if ('field' in filed) return showForm(visit, filed)
  return page(visit, {
    title: 'We have your message',
    lead: html`The answer goes to <strong>${filed.replyTo}</strong>.`,
    narrow: true,
    body: html`<p>Its number is <code>${filed.id}</code>. There is nothing more to do.</p>
      <p><a class="button secondary" href="/status">Status of the service</a></p>`,
  })
}

const sentences: Readonly<Record<TicketFault['field'], string>> = {
  email: 'That is not an email address.',
  request_id: 'An id of a request starts with req_. Leave it empty if you have none.',
  text: `Say it in 10 to ${maxTextCharacters} characters.`,
}

function showForm(visit: Visit, fault?: TicketFault): Promise<Response> {
  const { form, signedIn } = visit
  const problemOf = (name: TicketFault['field']): string | undefined =>
    fault?.field === name && fault.found === undefined ? sentences[name] : undefined
  const typed = (name: string): string =>
    fault === undefined ? '' : maskForbidden(form.text(name).slice(0, maxTextCharacters))
  return page(visit, {
    title: 'Support',
    lead: 'Tell us what you did, what happened, and the id of the request. An error page often knows the answer.',
    status: fault === undefined ? 200 : 422,
    problem: fault === undefined ? undefined : fault.found === undefined ? sentences[fault.field] : found(fault.found),
    narrow: true,
    body: html`<p class="warning">
        Leave out prompts, answers, keys, tokens, cookies, and what your customers wrote. We never need them, and a
        message that holds any is not taken.
      </p>
      <form method="post" action="/support" data-forbidden="${shapes}">
        ${csrfInput(signedIn)}
        ${field({ name: 'email', label: 'Your email address', type: 'email', autocomplete: 'email', value: typed('email'), problem: problemOf('email') })}
        ${field({
          name: 'request_id',
          label: 'Request id',
          hint: html`Starts with <code>req_</code>: in the header <code>X-Request-Id</code> and in every error.`,
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
  return `Your message was not taken: it seems to hold ${kinds.join(', ')}. It is starred below; look through it and send it again.`
}
