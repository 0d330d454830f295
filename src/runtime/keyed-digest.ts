import { createCipheriv, createSecretKey, hash, hkdfSync, type KeyObject } from 'node:crypto'

const keyBytes = 16
/** One key digests many texts, so the nonce may be constant: the tag itself is never stored, see `of`. */
const nonce = Buffer.alloc(12)
/** Characters of a digest: 132 bits in base64url. */
const digestCharacters = 22

/**
 * Digests of prompts that cannot be computed without the service's secret, so that nobody can test a guess of a text
 * against what is stored. A universal hash (GHASH) compresses the text, which takes a twentieth of the time of SHA-256
 * for long prompts, and SHA-256 with a second key hides its result.
 */
export class KeyedDigest {
  readonly #hashKey: KeyObject
  readonly #macKey: string

  constructor(secret: Uint8Array) {
    const keys = Buffer.from(hkdfSync('sha256', secret, '', 'svc-router prompt digests', 2 * keyBytes))
    this.#hashKey = createSecretKey(keys.subarray(0, keyBytes))
    this.#macKey = keys.toString('base64url', keyBytes)
  }

  /** 22 characters, for the bytes of all parts together. */
  of(...parts: readonly Uint8Array[]): string {
    const cipher = createCipheriv('aes-128-gcm', this.#hashKey, nonce)
    for (const part of parts) cipher.setAAD(part)
    cipher.final()
    return this.ofText(cipher.getAuthTag().toString('base64url'))
  }

  /** The same for a short text, such as an ID. The result differs from that of `of`. */
  ofText(text: string): string {
    return hash('sha256', `${this.#macKey}\n${text}`, 'base64url').slice(0, digestCharacters)
  }

  /** 32 bits, to notice that a part changed. */
  shortOf(text: string): number {
    return Number.parseInt(hash('sha256', `${this.#macKey}\n\n${text}`, 'hex').slice(0, 8), 16)
  }
}
