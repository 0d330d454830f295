import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import type { SealingKey, SealingKeys } from './sealer.ts'
import { Secret } from './secret.ts'

const derivedBytes = 32

/** Keys that sign texts of one purpose. Each has the ID of the sealing key that it was derived from. */
export interface MacKeys {
  readonly current: SealingKey
  readonly previous: SealingKey | undefined
}

/** A signature: the ID of its key, and an HMAC-SHA-256 in base64url. */
export interface Signature {
  readonly keyId: string
  readonly mac: string
}

/** Derives keys from the sealing keys. Keys of different purposes never verify each other's signatures. */
export function deriveMacKeys({ current, previous }: SealingKeys, purpose: string): MacKeys {
  return { current: derive(current, purpose), previous: previous === undefined ? undefined : derive(previous, purpose) }
}

/** The signature of a text under one key. */
export function signText({ id, key }: SealingKey, text: string): Signature {
  return { keyId: id, mac: createHmac('sha256', key.reveal()).update(text).digest('base64url') }
}

/** The HMAC-SHA-256 of a text in hexadecimal, as receivers of webhooks check it. */
export function hexMac(secret: Secret, text: string): string {
  return createHmac('sha256', secret.reveal()).update(text).digest('hex')
}

/** Verifies a signature; `unknown_key` if none of these keys made it. */
export function checkSignature(
  keys: MacKeys,
  text: string,
  { keyId, mac }: Signature,
): 'authentic' | 'forged' | 'unknown_key' {
  const key = [keys.current, keys.previous].find((candidate) => candidate?.id === keyId)
  if (key === undefined) return 'unknown_key'
  const given = Buffer.from(mac)
  const right = Buffer.from(signText(key, text).mac)
  return given.length === right.length && timingSafeEqual(given, right) ? 'authentic' : 'forged'
}

function derive({ id, key }: SealingKey, purpose: string): SealingKey {
  return { id, key: new Secret(new Uint8Array(hkdfSync('sha256', key.reveal(), '', purpose, derivedBytes))) }
}
