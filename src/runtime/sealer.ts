import { createCipheriv, createDecipheriv } from 'node:crypto'
import type { RandomBytes } from './random.ts'
import type { Secret } from './secret.ts'

const version = 'v1'
const algorithm = 'aes-256-gcm'
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16

/** A key that seals what is kept: 32 random bytes that live outside the database. `id` names it in what it sealed. */
export interface SealingKey {
  /** 1–32 letters, digits, `-` or `_`. */
  readonly id: string
  readonly key: Secret<Uint8Array>
}

/**
 * Why a sealed text did not open: `malformed` (not our text), `unknown_key` (sealed with a key that is not given),
 * `not_authentic` (changed, or sealed for something else).
 */
export class SealError extends Error {
  override readonly name = 'SealError'
  readonly reason: 'malformed' | 'unknown_key' | 'not_authentic'

  constructor(reason: 'malformed' | 'unknown_key' | 'not_authentic') {
    super(reason)
    this.reason = reason
  }
}

/** Seals texts for the database: AES-256-GCM, bound to whom and to what they belong, so that none can be moved elsewhere. */
export interface Sealer {
  /** `v1.<key id>.<nonce>.<ciphertext and tag>`, base64url. `binding` names owner, id and purpose. */
  seal(binding: readonly string[], text: string): string
  /** @throws SealError where it does not open for that binding */
  open(binding: readonly string[], sealed: string): string
}

export interface SealingKeys {
  readonly current: SealingKey
  /** Opens what was sealed before a rotation and seals nothing. */
  readonly previous?: SealingKey | undefined
}

/** @throws TypeError for a key of another length or a bad id */
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
        // node:crypto has one reason only to fail here: the tag does not fit.
        throw new SealError('not_authentic')
      }
    },
  }
}

/** As JSON, so that no two different bindings read the same. */
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

/** Node reads much as base64url; only what it would write itself is accepted, so that each value has one text. */
function fromBase64url(text: string): Buffer {
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.toString('base64url') !== text) throw new SealError('malformed')
  return bytes
}
