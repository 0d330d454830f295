import { createHmac } from 'node:crypto'
import type { Secret } from '../domain/secret.ts'

/** The name of the field that carries the token. */
export const csrfField = 'csrf'
/** The header that carries it where a script of ours asks. */
export const csrfHeader = 'x-csrf-token'

/** What proves that a form came from a page of this session: whoever knows it still does not know the session's token. */
export function csrfTokenFor(sessionToken: Secret): string {
  return createHmac('sha256', sessionToken.reveal()).update('csrf').digest('base64url')
}

/**
 * Whether a request that changes something was sent by one of our own pages, as browsers say it: by `Sec-Fetch-Site`,
 * which no page can forge, or by `Origin` where a browser is too old for that. Who says neither is no browser.
 */
export function isFromOwnPage(headers: Headers, ownOrigin: string): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== null) return site === 'same-origin'
  return headers.get('origin') === ownOrigin
}
