import type { WebDeps } from '../web-deps.ts'

/** Where signed-in visitors create keys ("Get a key"). */
export const keysPath = '/account/keys'

/**
 * The default page after sign-in: the account's activity, or how to connect a client if no request is recorded yet
 * (contract 20.11).
 */
export async function landingPath(parts: Pick<WebDeps, 'latestRequest'>, accountId: string): Promise<string> {
  return (await parts.latestRequest(accountId)) === undefined ? '/connect' : '/activity'
}
