import { AccountsError, type AccountsErrorCode } from '../../accounts/accounts-error.ts'
import { BillingFailure } from '../../accounts/billing/ports.ts'
import type { EventLog } from '../../domain/events.ts'
import { describeBug, errorName } from '../../runtime/describe-bug.ts'
import { StoreUnavailable } from '../../runtime/store-unavailable.ts'

/** The content of an error page. */
interface ErrorPage {
  readonly status: number
  readonly title: string
  readonly text: string
}

/** All error pages. */
const errorPages = {
  not_found: {
    status: 404,
    title: 'Page not found',
    text: 'This page does not exist, or it belongs to another account. If one of our links led you here, tell us which one.',
  },
  signed_out: {
    status: 401,
    title: 'You are signed out',
    text: 'Your session has ended. Sign in and try again.',
  },
  wrong_method: {
    status: 405,
    title: 'Method not allowed',
    text: 'This page does not support the method that your browser used. Go back and use the buttons on the page.',
  },
  too_large: {
    status: 413,
    title: 'The form is too large',
    text: 'You sent more data than this form accepts. Go back and send less.',
  },
  wrong_type: {
    status: 415,
    title: 'Unsupported form',
    text: 'The data was not sent in the format that our pages use. Go back and use the form.',
  },
  wrong_host: {
    status: 421,
    title: 'Wrong address',
    text: 'This app is not available at the host name that your browser used. Use the address that the operator of the service gave you.',
  },
  not_our_form: {
    status: 403,
    title: 'This form is out of date',
    text: 'It was not sent from one of our pages, or you have signed in or out since you opened it. Nothing was changed. Go back, reload the page, and send the form again.',
  },
  too_many: {
    status: 429,
    title: 'Too many attempts',
    text: 'There were too many attempts from your network or account. Wait ten minutes, then try again.',
  },
  unavailable: {
    status: 503,
    title: 'Temporarily unavailable',
    text: 'A service that this page depends on is not responding. Try again in a minute.',
  },
  broken: {
    status: 500,
    title: 'Something went wrong',
    text: 'This is a bug on our side. We logged it with the ID below. Try again, and send us the ID if the error persists.',
  },
} as const satisfies Readonly<Record<string, ErrorPage>>

export type PageErrorCode = keyof typeof errorPages

/** An expected error with its own page. */
export class PageError extends Error {
  override readonly name = 'PageError'
  readonly code: PageErrorCode

  constructor(code: PageErrorCode) {
    super(code)
    this.code = code
  }
}

/** Control plane errors that are shown as "page not found". */
const unknownCodes: readonly AccountsErrorCode[] = [
  'account_unknown',
  'budget_unknown',
  'key_unknown',
  'upstream_unknown',
  'webhook_unknown',
  'upgrade_unknown',
  'managed_request_unknown',
  'operator_unknown',
  'token_unknown',
  'incident_unknown',
]

/** The parts of a `Visit` that an error needs. */
interface FailedVisit {
  readonly deps: { readonly log: EventLog }
  readonly requestId: string
}

/** The error page for anything thrown. An unexpected error is a bug: it is logged, and nothing about it is shown. */
export function describeError({ deps, requestId }: FailedVisit, thrown: unknown): ErrorPage {
  const code = codeOf(thrown)
  if (thrown instanceof StoreUnavailable) deps.log({ event: 'store_failing', reason: errorName(thrown) })
  if (code === 'broken') deps.log({ event: 'internal_error', requestId, ...describeBug(thrown) })
  return errorPages[code]
}

function codeOf(thrown: unknown): PageErrorCode {
  if (thrown instanceof PageError) return thrown.code
  if (thrown instanceof AccountsError && unknownCodes.includes(thrown.code)) return 'not_found'
  // The payment provider does not respond, or it rejects our requests, which only the operator can fix.
  if (thrown instanceof BillingFailure || thrown instanceof StoreUnavailable) return 'unavailable'
  return 'broken'
}
