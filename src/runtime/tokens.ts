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

/** Six digits. Every code is equally likely. */
export function mintCode(random: RandomBytes): Secret {
  for (;;) {
    const number = Buffer.from(random(4)).readUInt32BE()
    // Values above the last full million would make low codes more likely.
    if (number < Math.floor(2 ** 32 / codes) * codes)
      return new Secret(String(number % codes).padStart(codeDigits, '0'))
  }
}

/**
 * The stored form of a token or code: an HMAC with the pepper, bound to the purpose, so that a copy of the database
 * does not allow sign-in.
 */
export function tokenDigest(purpose: string, token: string, pepper: Secret): string {
  return createHmac('sha256', pepper.reveal()).update(`${purpose}\n${token}`).digest('base64url')
}

/** Compares two digests in constant time. */
export function isSameDigest(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
