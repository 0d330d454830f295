import { createHmac, timingSafeEqual } from 'node:crypto'
import type { RandomBytes } from './random.ts'
import { Secret } from './secret.ts'

const tokenBytes = 32
const codeDigits = 6
const codes = 10 ** codeDigits

/** A token of 256 random bits, in base64url: 43 characters. */
export function mintToken(random: RandomBytes): Secret {
  return new Secret(Buffer.from(random(tokenBytes)).toString('base64url'))
}

/** Six digits, every code as likely as any other. */
export function mintCode(random: RandomBytes): Secret {
  for (;;) {
    const number = Buffer.from(random(4)).readUInt32BE()
    // What is left over above the last full million would make the low codes likelier.
    if (number < Math.floor(2 ** 32 / codes) * codes)
      return new Secret(String(number % codes).padStart(codeDigits, '0'))
  }
}

/**
 * What is kept instead of a token or code: an HMAC under the pepper, bound to what it is for, so that a copy of the
 * database opens nothing.
 */
export function tokenDigest(purpose: string, token: string, pepper: Secret): string {
  return createHmac('sha256', pepper.reveal()).update(`${purpose}\n${token}`).digest('base64url')
}

/** Whether two digests are the same, in a time that does not tell where they differ. */
export function isSameDigest(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
