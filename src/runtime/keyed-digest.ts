import { hash, hkdfSync } from 'node:crypto'

const keyBytes = 16
/** Characters of a digest: 132 bits in base64url. */
const digestCharacters = 22

/**
 * Digests that cannot be computed without the service's secret, so that nobody can test a guess of a text against what is
 * stored.
 */
export class KeyedDigest {
  readonly #key: string

  constructor(secret: Uint8Array) {
    const key = hkdfSync('sha256', secret, '', 'svc-router session digests', keyBytes)
    this.#key = Buffer.from(key).toString('base64url')
  }

  /** 22 characters. */
  of(text: string): string {
    return hash('sha256', `${this.#key}\n${text}`, 'base64url').slice(0, digestCharacters)
  }
}
