import { html } from 'hono/html'
import { BillingFailure } from '../accounts/billing/ports.ts'
import { AccountsError, type AccountsRefusal } from '../accounts/refusals.ts'
import { describeBug } from '../domain/bugs.ts'
import { page } from './layout.ts'
import type { Visit } from './visit.ts'

/** What a page that refuses says. */
interface RefusalPage {
  readonly status: number
  readonly title: string
  readonly text: string
}

/** Every page that refuses: one row each. */
const refusalPages = {
  not_found: {
    status: 404,
    title: 'There is no such page',
    text: 'Nothing is here, or it belongs to another account. If a link of ours brought you, tell us where it was.',
  },
  signed_out: {
    status: 401,
    title: 'You are signed out',
    text: 'Your session has ended. Sign in, and do it again.',
  },
  wrong_method: {
    status: 405,
    title: 'That cannot be done here',
    text: 'The page exists, but not for what your browser asked of it. Go back and use its buttons.',
  },
  too_large: {
    status: 413,
    title: 'That was too much at once',
    text: 'What was sent is larger than any form here. Go back and send less.',
  },
  wrong_type: {
    status: 415,
    title: 'That was not one of our forms',
    text: 'It was sent in a way that none of our pages uses. Go back and use the form.',
  },
  wrong_host: {
    status: 421,
    title: 'This app has another address',
    text: 'It does not answer under the name that your browser used. Use the address that it was set up for.',
  },
  not_our_form: {
    status: 403,
    title: 'This form is out of date',
    text: 'It was not sent by one of our pages, or you have signed in or out since it was opened. Nothing was changed. Go back, reload the page and send it again.',
  },
  too_many: {
    status: 429,
    title: 'That was too often',
    text: 'Too many tries came from your address or account. Wait ten minutes, then try again.',
  },
  unavailable: {
    status: 503,
    title: 'Not available just now',
    text: 'Something that this page needs does not answer. Try again in a minute.',
  },
  broken: {
    status: 500,
    title: 'Something went wrong',
    text: 'That was our fault. It is noted under the id below; try again, and tell us the id if it stays.',
  },
} as const satisfies Readonly<Record<string, RefusalPage>>

export type PageRefusalCode = keyof typeof refusalPages

/** An expected refusal that has a page of its own. */
export class PageRefusal extends Error {
  override readonly name = 'PageRefusal'
  readonly code: PageRefusalCode

  constructor(code: PageRefusalCode) {
    super(code)
    this.code = code
  }
}

/** What the control plane does not know is not there for this visitor either. */
const unknownCodes: readonly AccountsRefusal[] = [
  'account_unknown',
  'key_unknown',
  'upstream_unknown',
  'upgrade_unknown',
  'managed_request_unknown',
  'operator_unknown',
  'incident_unknown',
]

/** What is said of whatever was thrown. What was not expected is a bug: it is noted, and nothing of it is shown. */
export function describeRefusal(
  { parts, requestId }: Pick<Visit, 'parts' | 'requestId'>,
  thrown: unknown,
): RefusalPage {
  const code = codeOf(thrown)
  if (code === 'broken') parts.log({ event: 'internal_error', requestId, ...describeBug(thrown) })
  return refusalPages[code]
}

/** The page for whatever was thrown. */
export function refusalPage(
  visit: Pick<Visit, 'parts' | 'path' | 'query' | 'signedIn' | 'requestId'>,
  thrown: unknown,
): Promise<Response> {
  const { requestId } = visit
  const { status, title, text } = describeRefusal(visit, thrown)
  return page(
    { ...visit, query: new URLSearchParams() },
    {
      title,
      lead: text,
      status,
      narrow: true,
      body: html`<p><a class="button" href="/">To the start</a></p>
        <p class="faint">Request id: <code>${requestId}</code></p>`,
    },
  )
}

function codeOf(thrown: unknown): PageRefusalCode {
  if (thrown instanceof PageRefusal) return thrown.code
  if (thrown instanceof AccountsError && unknownCodes.includes(thrown.code)) return 'not_found'
  // Whoever takes the money does not answer; or it refuses us, which only the operator can mend.
  if (thrown instanceof BillingFailure) return 'unavailable'
  return 'broken'
}
