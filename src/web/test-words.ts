import { html } from 'hono/html'
import type { AttemptOutcome, UpstreamTest } from '../domain/upstream.ts'
import type { Html } from './layout.ts'

/** What came of a small call to a provider, and what to do about it. */
const words: Readonly<Record<AttemptOutcome, string>> = {
  answered: 'It answered.',
  rejected_credentials: 'It did not take the credential. Remove it and connect it again with one that works.',
  rejected_content: 'It refused the call. Check the name of the model.',
  context_too_long: 'It says that the smallest request is too long for this model. Check the name of the model.',
  not_capable: 'It cannot do what the smallest call asks for. Check the name of the model.',
  rate_limited: 'It is there, and allows no more calls just now. Check your limits there.',
  server_error: 'It answered that it is in trouble. Try again later.',
  unreachable: 'It could not be reached. Check the address.',
  reset: 'It closed the connection. Check the address.',
  timeout: 'It did not answer in time.',
  broken: 'What it answered is not the expected format. Check the address and the format.',
  not_found: 'It does not know this address or this model. Check the address and the name of the model.',
  not_sent: 'This service was too busy to call it. Try again.',
  cancelled: 'The call was given up.',
}

/** The result of a test as a line below the provider. */
export function writeTest({ outcome, status, ms }: UpstreamTest): Html {
  const isGood = outcome === 'answered'
  return html`<p role="status">
    <span class="tag ${isGood ? 'good' : 'bad'}">${isGood ? 'works' : 'does not work'}</span>
    ${words[outcome]} <span class="faint">${status === undefined ? '' : `HTTP ${status}, `}${Math.round(ms)} ms</span>
  </p>`
}
