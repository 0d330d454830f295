import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { isObject, parseObject } from './json.ts'

/** The headers of GitHub's secret scanning messages, in lower case. */
export const scanningHeaders = {
  keyId: 'github-public-key-identifier',
  signature: 'github-public-key-signature',
} as const

/** Limits for input from outside. */
const maxKeys = 20
/** More than fit into a body of a megabyte, so that no match is dropped. */
const maxMatches = 30_000
const maxTypeCharacters = 200
const maxUrlCharacters = 2000
const maxSignatureCharacters = 200

/** A public key of the scanner: P-256, as PEM. */
export interface ScanningKey {
  readonly id: string
  readonly pem: string
}

/** A message: its body byte for byte as received, and two headers. */
export interface SignedMessage {
  readonly body: Uint8Array
  readonly keyId: string | undefined
  readonly signature: string | undefined
}

/** A text that may be one of our keys, and where it was found. `url` comes from outside and may be missing. */
export interface ScanningMatch {
  readonly text: string
  /** The name under which our pattern is registered; empty if there is none. */
  readonly type: string
  readonly url: string | undefined
}

/**
 * Verifies that a message is from the scanner (contract 26.2): ECDSA with P-256 and SHA-256 over the raw body, with the
 * key that the message names. `unknown_key` if `keys` does not have that key: the scanner may have changed its keys, so
 * they should be fetched again.
 */
export function checkScanningSignature(
  { body, keyId, signature }: SignedMessage,
  keys: readonly ScanningKey[],
): 'authentic' | 'unknown_key' | 'refused' {
  if (keyId === undefined || signature === undefined || signature.length > maxSignatureCharacters) return 'refused'
  const named = keys.find(({ id }) => id === keyId)
  if (named === undefined) return 'unknown_key'
  const key = readKey(named.pem)
  if (key === undefined) return 'refused'
  return verify('sha256', body, key, Buffer.from(signature, 'base64')) ? 'authentic' : 'refused'
}

/** Parses the scanner's list of public keys. Keys of other kinds are dropped. */
export function readScanningKeys(text: string): readonly ScanningKey[] {
  const listed = parseObject(text)?.['public_keys']
  if (!Array.isArray(listed)) return []
  return listed.slice(0, maxKeys).flatMap((entry: unknown) => {
    if (!isObject(entry)) return []
    const { key_identifier: id, key: pem } = entry
    return typeof id === 'string' && typeof pem === 'string' && readKey(pem) !== undefined ? [{ id, pem }] : []
  })
}

/** Parses the matches of a verified message; undefined if it has none. */
export function readScanningMatches(body: Uint8Array): readonly ScanningMatch[] | undefined {
  const listed = parseList(body)
  return listed?.slice(0, maxMatches).flatMap((entry) => {
    if (!isObject(entry) || typeof entry['token'] !== 'string') return []
    const { token: text, type, url } = entry
    const isType = typeof type === 'string' && type.length <= maxTypeCharacters
    return [{ text, type: isType ? type : '', url: httpsUrl(url) }]
  })
}

/** The SHA-256 of a token in hex, which the scanner accepts instead of the token. */
export function tokenHash(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

function parseList(body: Uint8Array): readonly unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(body).toString('utf8'))
    return Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

function httpsUrl(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > maxUrlCharacters || !URL.canParse(value)) return undefined
  const url = new URL(value)
  return url.protocol === 'https:' && url.username === '' && url.password === '' ? url.href : undefined
}

function readKey(pem: string): KeyObject | undefined {
  try {
    const key = createPublicKey(pem)
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : undefined
  } catch {
    return undefined
  }
}
