import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { RandomBytes } from '../domain/random.ts'
import { Secret } from '../domain/secret.ts'

const version = 'v1'
const algorithm = 'aes-256-gcm'
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16
const longestSealed = 32 * 1024

/** The key that seals credentials: 32 random bytes that live outside the database. `id` names it in what it sealed. */
export interface SealingKey {
  /** 1–32 letters, digits, `-` or `_`. */
  readonly id: string
  readonly key: Secret<Uint8Array>
}

/**
 * Why a sealed credential did not open: `malformed` (not our text), `unknown_key` (sealed with a key that is not given),
 * `not_authentic` (changed, or sealed for another account or credential).
 */
export class VaultError extends Error {
  override readonly name = 'VaultError'
  readonly reason: 'malformed' | 'unknown_key' | 'not_authentic'

  constructor(reason: 'malformed' | 'unknown_key' | 'not_authentic') {
    super(reason)
    this.reason = reason
  }
}

/** Seals provider credentials for the database: AES-256-GCM, bound to their account and id (contract 7). */
export interface Vault {
  /** `v1.<key id>.<nonce>.<ciphertext and tag>`, base64url. */
  seal(accountId: string, credentialId: string, secret: Secret): string
  /** @throws VaultError where it does not open for that account and id */
  open(accountId: string, credentialId: string, sealed: string): Secret
}

/** `previous` opens what was sealed before a rotation and seals nothing. @throws TypeError for a key of another length or a bad id */
export function createVault(options: {
  current: SealingKey
  previous?: SealingKey | undefined
  random: RandomBytes
}): Vault {
  const { current, previous, random } = options
  for (const { id, key } of previous === undefined ? [current] : [current, previous]) {
    if (!/^[\w-]{1,32}$/.test(id)) throw new TypeError('The id of a sealing key has 1 to 32 letters, digits, - or _.')
    if (key.reveal().byteLength !== keyBytes) throw new TypeError(`A sealing key has ${keyBytes} bytes.`)
  }
  if (previous?.id === current.id) throw new TypeError('The current and the previous sealing key need different ids.')

  return {
    seal(accountId, credentialId, secret) {
      const nonce = random(nonceBytes)
      const cipher = createCipheriv(algorithm, current.key.reveal(), nonce, { authTagLength: tagBytes })
      cipher.setAAD(bindingOf(current.id, accountId, credentialId))
      const sealed = Buffer.concat([cipher.update(secret.reveal(), 'utf8'), cipher.final(), cipher.getAuthTag()])
      return [version, current.id, Buffer.from(nonce).toString('base64url'), sealed.toString('base64url')].join('.')
    },
    open(accountId, credentialId, sealed) {
      const { keyId, nonce, bytes } = parse(sealed)
      const sealingKey = [current, previous].find((candidate) => candidate?.id === keyId)
      if (sealingKey === undefined) throw new VaultError('unknown_key')
      const decipher = createDecipheriv(algorithm, sealingKey.key.reveal(), nonce, { authTagLength: tagBytes })
      decipher.setAAD(bindingOf(keyId, accountId, credentialId))
      decipher.setAuthTag(bytes.subarray(bytes.length - tagBytes))
      try {
        const text = Buffer.concat([decipher.update(bytes.subarray(0, bytes.length - tagBytes)), decipher.final()])
        return new Secret(text.toString('utf8'))
      } catch {
        // node:crypto has one reason only to fail here: the tag does not fit.
        throw new VaultError('not_authentic')
      }
    },
  }
}

/** As JSON, so that no two different triples read the same. */
function bindingOf(keyId: string, accountId: string, credentialId: string): Buffer {
  return Buffer.from(JSON.stringify([version, keyId, accountId, credentialId]))
}

function parse(sealed: string): { keyId: string; nonce: Buffer; bytes: Buffer } {
  const [head, keyId, nonceText, bytesText, ...rest] = sealed.length > longestSealed ? [] : sealed.split('.')
  if (
    head !== version ||
    keyId === undefined ||
    nonceText === undefined ||
    bytesText === undefined ||
    rest.length > 0
  ) {
    throw new VaultError('malformed')
  }
  const nonce = fromBase64url(nonceText)
  const bytes = fromBase64url(bytesText)
  if (nonce.length !== nonceBytes || bytes.length < tagBytes) throw new VaultError('malformed')
  return { keyId, nonce, bytes }
}

/** Node reads much as base64url; only what it would write itself is accepted, so that each value has one text. */
function fromBase64url(text: string): Buffer {
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.toString('base64url') !== text) throw new VaultError('malformed')
  return bytes
}
