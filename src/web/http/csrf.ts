import { createHmac } from 'node:crypto'
import type { Secret } from '../../runtime/secret.ts'

/** The form field with the CSRF token. */
export const csrfField = 'csrf'
/** The header with the CSRF token, for our scripts. */
export const csrfHeader = 'x-csrf-token'

/** The CSRF token of a session. The session token cannot be derived from it. */
export function csrfTokenFor(sessionToken: Secret): string {
  return createHmac('sha256', sessionToken.reveal()).update('csrf').digest('base64url')
}

/**
 * Whether a state-changing request comes from one of our own pages, according to `Sec-Fetch-Site`, which pages cannot
 * forge, or `Origin` in older browsers. A client that sends neither is not a browser.
 */
export function isFromOwnPage(headers: Headers, ownOrigin: string): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== null) return site === 'same-origin'
  return headers.get('origin') === ownOrigin
}
