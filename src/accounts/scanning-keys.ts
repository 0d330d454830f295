import type { Clock } from '../domain/clock.ts'
import { checkScanningSignature, type ScanningKey, type SignedMessage } from '../domain/secret-scanning.ts'

/** How long fetched keys are believed, and how soon they are fetched again for a key that they have not (contract 26.3). */
const keptMs = 3_600_000
const refetchMs = 120_000
/** After a fetch that failed no message makes another for so long, doubled with each further failure. */
const firstPauseMs = 5_000
const longestPauseMs = refetchMs

export interface ScannerNeeds {
  /**
   * Fetches the public keys anew (the scanner's own endpoint, read by `readScanningKeys`), within a time of its own. A
   * throw means that they cannot be had just now; no keys at all mean the same.
   */
  readonly fetchKeys: () => Promise<readonly ScanningKey[]>
  readonly clock: Pick<Clock, 'monotonicMs'>
}

/** The scanner's keys cannot be had, so nothing is known of a message: it is to be sent again after `retryAfterMs`. */
export class ScanningKeysUnavailable extends Error {
  override readonly name = 'ScanningKeysUnavailable'
  readonly retryAfterMs: number

  constructor(retryAfterMs: number) {
    super("the scanner's keys cannot be had")
    this.retryAfterMs = retryAfterMs
  }
}

/**
 * Knows the scanner's public keys, and whether a message is the scanner's. Whatever is sent, keys are asked for at most
 * 36 times an hour, for the endpoint answers 60 times; and never for a message that is not signed at all.
 */
export class Scanner {
  readonly #needs: ScannerNeeds
  #keys: readonly ScanningKey[] = []
  #fetchedAtMs = Number.NEGATIVE_INFINITY
  #pausedUntilMs = Number.NEGATIVE_INFINITY
  #failures = 0
  #fetching: Promise<void> | undefined

  constructor(needs: ScannerNeeds) {
    this.#needs = needs
  }

  /** Whether a message is the scanner's. @throws ScanningKeysUnavailable */
  async isAuthentic(message: SignedMessage): Promise<boolean> {
    if (message.keyId === undefined || message.signature === undefined) return false
    if (this.#ageMs() > keptMs) await this.#fetch()
    const kind = checkScanningSignature(message, this.#keys)
    if (kind !== 'unknown_key' || this.#ageMs() < refetchMs) return kind === 'authentic'
    await this.#fetch()
    return checkScanningSignature(message, this.#keys) === 'authentic'
  }

  #ageMs(): number {
    return this.#needs.clock.monotonicMs() - this.#fetchedAtMs
  }

  #fetch(): Promise<void> {
    const leftMs = this.#pausedUntilMs - this.#needs.clock.monotonicMs()
    if (leftMs > 0) return Promise.reject(new ScanningKeysUnavailable(leftMs))
    this.#fetching ??= this.#fetchOnce().finally(() => (this.#fetching = undefined))
    return this.#fetching
  }

  async #fetchOnce(): Promise<void> {
    const { clock, fetchKeys } = this.#needs
    const keys = await fetchKeys().catch(() => [])
    if (keys.length === 0) {
      const pauseMs = Math.min(firstPauseMs * 2 ** this.#failures, longestPauseMs)
      this.#failures += 1
      this.#pausedUntilMs = clock.monotonicMs() + pauseMs
      throw new ScanningKeysUnavailable(pauseMs)
    }
    this.#keys = keys
    this.#fetchedAtMs = clock.monotonicMs()
    this.#failures = 0
  }
}
