import { isSameDigest, mintToken, tokenDigest } from '../domain/tokens.ts'
import type { IdentityPlane } from './identity.ts'

/** How long a user has to answer a challenge with a passkey (contract 19.7). */
export const challengeLifeMs = 5 * 60_000
const shape = /^(\d{13,15})\.[\w-]{43}\.([\w-]{43})$/

/**
 * Creates a challenge for a passkey to sign, bound to its purpose. It carries its own expiry and proof that this
 * service issued it, so showing a page writes nothing. base64url, as browsers expect.
 */
export function mintChallenge(plane: IdentityPlane, purpose: string): string {
  const head = `${Math.floor(plane.clock.nowMs()) + challengeLifeMs}.${mintToken(plane.random).reveal()}`
  return Buffer.from(`${head}.${macOf(plane, purpose, head)}`).toString('base64url')
}

/** Consumes a challenge; false if it is not ours, for another purpose, expired, or already used. */
export async function takeChallenge(plane: IdentityPlane, purpose: string, challenge: string): Promise<boolean> {
  const text = Buffer.from(challenge, 'base64url').toString('latin1')
  const [, expires = '', mac = ''] = shape.exec(text) ?? []
  const right = macOf(plane, purpose, text.slice(0, -mac.length - 1))
  if (mac === '' || !isSameDigest(mac, right)) return false
  const nowMs = plane.clock.nowMs()
  return nowMs < Number(expires) && plane.store.useChallenge(mac, Number(expires), nowMs)
}

function macOf(plane: IdentityPlane, purpose: string, head: string): string {
  return tokenDigest(`challenge ${purpose}`, head, plane.pepper)
}
