import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { isObject, parseObject } from './json.ts'

/** The headers of a message of GitHub's secret scanning, in small letters. */
export const scanningHeaders = {
  keyId: 'github-public-key-identifier',
  signature: 'github-public-key-signature',
} as const

/** Bounds on what is taken from others. */
const maxKeys = 20
/** More than a body of a megabyte holds: none is passed over. */
const maxMatches = 30_000
const maxTypeCharacters = 200
const maxUrlCharacters = 2000
const maxSignatureCharacters = 200

/** A public key of the scanner, P-256 as PEM. */
export interface ScanningKey {
  readonly id: string
  readonly pem: string
}

/** What came with a message: its body as it arrived, byte for byte, and two headers. */
export interface SignedMessage {
  readonly body: Uint8Array
  readonly keyId: string | undefined
  readonly signature: string | undefined
}

/** What of ours may have been found, and where; `url` is somebody else's text and may be missing. */
export interface ScanningMatch {
  readonly text: string
  /** The name under which our pattern was registered; empty where none is said. */
  readonly type: string
  readonly url: string | undefined
}

/**
 * Whether a message is the scanner's: ECDSA with P-256 and SHA-256 over the raw body, by the key that it names.
 * `unknown_key` where none of `keys` is that one: they may have changed, and are worth fetching again.
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

/** Reads the scanner's list of public keys; those that are none of its kind are left out. */
export function readScanningKeys(text: string): readonly ScanningKey[] {
  const listed = parseObject(text)?.['public_keys']
  if (!Array.isArray(listed)) return []
  return listed.slice(0, maxKeys).flatMap((entry: unknown) => {
    if (!isObject(entry)) return []
    const { key_identifier: id, key: pem } = entry
    return typeof id === 'string' && typeof pem === 'string' && readKey(pem) !== undefined ? [{ id, pem }] : []
  })
}

/** Reads the matches of a message whose signature was checked; undefined where it is none. */
export function readScanningMatches(body: Uint8Array): readonly ScanningMatch[] | undefined {
  const listed = parseList(body)
  return listed?.slice(0, maxMatches).flatMap((entry) => {
    if (!isObject(entry) || typeof entry['token'] !== 'string') return []
    const { token: text, type, url } = entry
    const isType = typeof type === 'string' && type.length <= maxTypeCharacters
    return [{ text, type: isType ? type : '', url: httpsUrl(url) }]
  })
}

/** What the scanner takes in place of a token: its SHA-256 in hex. */
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
