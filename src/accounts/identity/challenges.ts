import { isSameDigest, mintToken, tokenDigest } from '../../runtime/tokens.ts'
import type { IdentityDeps } from './identity.ts'

/** How long a user has to answer a challenge with a passkey (contract 19.7). */
export const challengeLifeMs = 5 * 60_000
const shape = /^(\d{13,15})\.[\w-]{43}\.([\w-]{43})$/

/**
 * Creates a challenge for a passkey to sign, bound to its purpose. It carries its own expiry and proof that this
 * service issued it, so showing a page writes nothing. base64url, as browsers expect.
 */
export function mintChallenge(deps: IdentityDeps, purpose: string): string {
  const head = `${Math.floor(deps.clock.nowMs()) + challengeLifeMs}.${mintToken(deps.random).reveal()}`
  return Buffer.from(`${head}.${macOf(deps, purpose, head)}`).toString('base64url')
}

/** Consumes a challenge; false if it is not ours, for another purpose, expired, or already used. */
export async function takeChallenge(deps: IdentityDeps, purpose: string, challenge: string): Promise<boolean> {
  const text = Buffer.from(challenge, 'base64url').toString('latin1')
  const [, expires = '', mac = ''] = shape.exec(text) ?? []
  const right = macOf(deps, purpose, text.slice(0, -mac.length - 1))
  if (mac === '' || !isSameDigest(mac, right)) return false
  const nowMs = deps.clock.nowMs()
  return nowMs < Number(expires) && deps.store.useChallenge(mac, Number(expires), nowMs)
}

function macOf(deps: IdentityDeps, purpose: string, head: string): string {
  return tokenDigest(`challenge ${purpose}`, head, deps.pepper)
}
