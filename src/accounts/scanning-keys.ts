import type { Clock } from '../domain/clock.ts'
import { checkScanningSignature, type ScanningKey, type SignedMessage } from '../domain/secret-scanning.ts'

/** How long fetched keys are believed, and how soon they are fetched again for a key that they have not. */
const keptMs = 3_600_000
const refetchMs = 60_000
/** After a fetch that failed: until then no message makes another. */
const pauseMs = 5_000

export interface ScannerNeeds {
  /**
   * Fetches the public keys anew (https://api.github.com/meta/public_keys/secret_scanning, read by `readScanningKeys`),
   * within a time of its own. A throw means that they cannot be had just now.
   */
  readonly fetchKeys: () => Promise<readonly ScanningKey[]>
  readonly clock: Pick<Clock, 'nowMs'>
}

/** Knows the scanner's public keys, and whether a message is the scanner's. Made-up key ids make it fetch once a minute. */
export class Scanner {
  readonly #needs: ScannerNeeds
  #keys: readonly ScanningKey[] = []
  #fetchedAtMs = Number.NEGATIVE_INFINITY
  #failedAtMs = Number.NEGATIVE_INFINITY
  #fetching: Promise<void> | undefined

  constructor(needs: ScannerNeeds) {
    this.#needs = needs
  }

  /** Whether a message is the scanner's. @throws what `fetchKeys` throws: then it is not known, and is to be sent again */
  async isAuthentic(message: SignedMessage): Promise<boolean> {
    if (this.#ageMs() > keptMs) await this.#fetch()
    const kind = checkScanningSignature(message, this.#keys)
    if (kind !== 'unknown_key' || this.#ageMs() < refetchMs) return kind === 'authentic'
    await this.#fetch()
    return checkScanningSignature(message, this.#keys) === 'authentic'
  }

  #ageMs(): number {
    return this.#needs.clock.nowMs() - this.#fetchedAtMs
  }

  #fetch(): Promise<void> {
    const { clock } = this.#needs
    if (clock.nowMs() - this.#failedAtMs < pauseMs) return Promise.reject(new Error("the scanner's keys cannot be had"))
    this.#fetching ??= this.#needs
      .fetchKeys()
      .then(
        (keys) => {
          this.#keys = keys
          this.#fetchedAtMs = clock.nowMs()
        },
        (error: unknown) => {
          this.#failedAtMs = clock.nowMs()
          throw error
        },
      )
      .finally(() => (this.#fetching = undefined))
    return this.#fetching
  }
}
