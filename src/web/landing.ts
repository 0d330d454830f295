import type { WebParts } from './web-parts.ts'

/** Where somebody with an account makes the key that "Get a key" promises. */
export const keysPath = '/account/keys'

/**
 * The page that follows a sign-in that names none: what the account's requests did, or how to send the first one where
 * nothing is recorded of any.
 */
export async function landingPath(parts: Pick<WebParts, 'latestRequest'>, accountId: string): Promise<string> {
  return (await parts.latestRequest(accountId)) === undefined ? '/connect' : '/activity'
}
