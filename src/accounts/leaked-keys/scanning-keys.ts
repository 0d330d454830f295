import { checkScanningSignature, type ScanningKey, type SignedMessage } from '../../domain/secret-scanning.ts'
import type { Clock } from '../../runtime/clock.ts'

/** How long fetched keys are cached, and how soon they may be fetched again for an unknown key (contract 26.3). */
const cacheMs = 3_600_000
const refetchMs = 120_000
/** Pause after a failed fetch, during which messages do not trigger another; doubled with each further failure. */
const firstPauseMs = 5_000
const longestPauseMs = refetchMs

export interface ScannerDeps {
  /**
   * Fetches the public keys (the scanner's endpoint, read by `readScanningKeys`), with its own time limit. Throwing, or
   * returning no keys, means that they are unavailable now.
   */
  readonly fetchKeys: () => Promise<readonly ScanningKey[]>
  readonly clock: Pick<Clock, 'monotonicMs'>
}

/**
 * The scanner's keys are unavailable, so a message cannot be verified: it should be sent again after `retryAfterMs`.
 */
export class ScanningKeysUnavailable extends Error {
  override readonly name = 'ScanningKeysUnavailable'
  readonly retryAfterMs: number

  constructor(retryAfterMs: number) {
    super("the scanner's public keys cannot be fetched")
    this.retryAfterMs = retryAfterMs
  }
}

/**
 * Caches the scanner's public keys and verifies its messages. However many messages arrive, it fetches keys at most 36
 * times an hour (the endpoint allows 60), and never for an unsigned message.
 */
export class Scanner {
  readonly #deps: ScannerDeps
  #keys: readonly ScanningKey[] = []
  #fetchedAtMs = Number.NEGATIVE_INFINITY
  #pausedUntilMs = Number.NEGATIVE_INFINITY
  #failures = 0
  #fetching: Promise<void> | undefined

  constructor(deps: ScannerDeps) {
    this.#deps = deps
  }

  /** Whether a message comes from the scanner. @throws ScanningKeysUnavailable */
  async isAuthentic(message: SignedMessage): Promise<boolean> {
    if (message.keyId === undefined || message.signature === undefined) return false
    if (this.#ageMs() > cacheMs) await this.#fetch()
    const kind = checkScanningSignature(message, this.#keys)
    if (kind !== 'unknown_key' || this.#ageMs() < refetchMs) return kind === 'authentic'
    await this.#fetch()
    return checkScanningSignature(message, this.#keys) === 'authentic'
  }

  #ageMs(): number {
    return this.#deps.clock.monotonicMs() - this.#fetchedAtMs
  }

  #fetch(): Promise<void> {
    const leftMs = this.#pausedUntilMs - this.#deps.clock.monotonicMs()
    if (leftMs > 0) return Promise.reject(new ScanningKeysUnavailable(leftMs))
    this.#fetching ??= this.#fetchOnce().finally(() => (this.#fetching = undefined))
    return this.#fetching
  }

  async #fetchOnce(): Promise<void> {
    const { clock, fetchKeys } = this.#deps
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
