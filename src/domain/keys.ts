import { createHmac } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { randomBase62, toBase62 } from '../runtime/ids.ts'
import type { RandomBytes } from '../runtime/random.ts'
import { Secret } from '../runtime/secret.ts'

/** The prefix of every key (contract 3.2). */
export const keyPrefix = 'sk_svc_'
/** The key id in records of playground requests, which a session authenticates. */
export const playgroundKeyId = 'playground'
const randomLength = 32
const checksumLength = 6
/** The length of a key, in characters. */
export const keyLength = keyPrefix.length + randomLength + checksumLength
const keyShape = /^sk_svc_[0-9A-Za-z]{38}$/

/** The state of a key. A `retiring` key works until its end and is then revoked; `revoked` is final (contract 3.10). */
export type KeyState = 'active' | 'disabled' | 'retiring' | 'revoked'

/** How long the old key keeps working after a rotation, in milliseconds (contract 3.9). */
export const rotationOverlapsMs = { now: 0, '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000 } as const
export type RotationOverlap = keyof typeof rotationOverlapsMs

/** Creates a key: the prefix, 32 random base62 characters, and a checksum of 6 (contract 3.2). */
export function mintKey(random: RandomBytes): Secret {
  const body = keyPrefix + randomBase62(randomLength, random)
  return new Secret(body + checksumOf(body))
}

/**
 * Whether a text has the shape and checksum of a key. No credential of a provider has them. Does not access the store
 * (contract 1.7, 3.3).
 */
export function isWellFormedKey(text: string): boolean {
  if (text.length !== keyLength || !keyShape.test(text)) return false
  return checksumOf(text.slice(0, -checksumLength)) === text.slice(-checksumLength)
}

/** A hint to recognize a key: `sk_svc_Ab12…9fQk`. */
export function keyHint(key: Secret): string {
  const text = key.reveal()
  return `${text.slice(0, keyPrefix.length + 4)}…${text.slice(-4)}`
}

/** The digest under which a key is stored: HMAC-SHA-256 with the pepper, in base64url (contract 3.4). */
export function keyDigest(key: string, pepper: Secret): string {
  return createHmac('sha256', pepper.reveal()).update(key).digest('base64url')
}

function checksumOf(body: string): string {
  return toBase62(crc32(body), checksumLength)
}

/** Names a pepper without revealing it: 12 characters. */
export function pepperId(pepper: Secret): string {
  return keyDigest('svc-router pepper id', pepper).slice(0, 12)
}
