import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { RandomBytes } from './random.ts'
import type { Secret } from './secret.ts'

const version = 'v1'
const algorithm = 'aes-256-gcm'
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16

/** A key that encrypts stored values: 32 random bytes, not in the database. Encrypted values contain `id`. */
export interface SealingKey {
  /** 1–32 letters, digits, `-` or `_`. */
  readonly id: string
  readonly key: Secret<Uint8Array>
}

/**
 * Why a value could not be decrypted: `malformed` (not in our form), `unknown_key` (encrypted with another key),
 * `not_authentic` (changed, or encrypted for another binding).
 */
export class SealError extends Error {
  override readonly name = 'SealError'
  readonly reason: 'malformed' | 'unknown_key' | 'not_authentic'

  constructor(reason: 'malformed' | 'unknown_key' | 'not_authentic') {
    super(reason)
    this.reason = reason
  }
}

/**
 * Encrypts texts for the database: AES-256-GCM, bound to their owner and purpose, so that none can be moved elsewhere.
 */
export interface Sealer {
  /** `v1.<key id>.<nonce>.<ciphertext and tag>`, base64url. `binding` names the owner, id, and purpose. */
  seal(binding: readonly string[], text: string): string
  /** @throws SealError if the text cannot be decrypted for that binding */
  open(binding: readonly string[], sealed: string): string
}

export interface SealingKeys {
  readonly current: SealingKey
  /** Decrypts values from before a rotation. Encrypts nothing. */
  readonly previous?: SealingKey | undefined
}

/** How many values were encrypted with another key, and how many could not be decrypted with any of the keys. */
export interface Resealed {
  readonly resealed: number
  readonly unreadable: number
}

/** @throws TypeError if a key has the wrong length or an invalid id */
export function createSealer({ current, previous, random }: SealingKeys & { readonly random: RandomBytes }): Sealer {
  for (const { id, key } of previous === undefined ? [current] : [current, previous]) {
    if (!/^[\w-]{1,32}$/.test(id)) throw new TypeError('The id of a sealing key has 1 to 32 letters, digits, - or _.')
    if (key.reveal().byteLength !== keyBytes) throw new TypeError(`A sealing key has ${keyBytes} bytes.`)
  }
  if (previous?.id === current.id) throw new TypeError('The current and the previous sealing key need different ids.')

  return {
    seal(binding, text) {
      const nonce = random(nonceBytes)
      const cipher = createCipheriv(algorithm, current.key.reveal(), nonce, { authTagLength: tagBytes })
      cipher.setAAD(bindingOf(current.id, binding))
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return [version, current.id, Buffer.from(nonce).toString('base64url'), sealed.toString('base64url')].join('.')
    },
    open(binding, sealed) {
      const { keyId, nonce, bytes } = parse(sealed)
      const sealingKey = [current, previous].find((candidate) => candidate?.id === keyId)
      if (sealingKey === undefined) throw new SealError('unknown_key')
      const decipher = createDecipheriv(algorithm, sealingKey.key.reveal(), nonce, { authTagLength: tagBytes })
      decipher.setAAD(bindingOf(keyId, binding))
      decipher.setAuthTag(bytes.subarray(bytes.length - tagBytes))
      try {
        const text = Buffer.concat([decipher.update(bytes.subarray(0, bytes.length - tagBytes)), decipher.final()])
        return text.toString('utf8')
      } catch {
        // The only possible error of node:crypto here is a wrong tag.
        throw new SealError('not_authentic')
      }
    },
  }
}

/** How every value begins that was encrypted with one key. */
export function sealedPrefix(keyId: string): string {
  return `${version}.${keyId}.`
}

/** As JSON, so that different bindings never have the same encoding. */
function bindingOf(keyId: string, binding: readonly string[]): Buffer {
  return Buffer.from(JSON.stringify([version, keyId, ...binding]))
}

function parse(sealed: string): { keyId: string; nonce: Buffer; bytes: Buffer } {
  const [head, keyId, nonceText, bytesText, ...rest] = sealed.split('.', 5)
  if (
    head !== version ||
    keyId === undefined ||
    nonceText === undefined ||
    bytesText === undefined ||
    rest.length > 0
  ) {
    throw new SealError('malformed')
  }
  const nonce = fromBase64url(nonceText)
  const bytes = fromBase64url(bytesText)
  if (nonce.length !== nonceBytes || bytes.length < tagBytes) throw new SealError('malformed')
  return { keyId, nonce, bytes }
}

/** Node accepts many spellings as base64url. Only its own is accepted here, so that each value has one text. */
function fromBase64url(text: string): Buffer {
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.toString('base64url') !== text) throw new SealError('malformed')
  return bytes
}
