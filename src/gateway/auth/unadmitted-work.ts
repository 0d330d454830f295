import { ServiceError } from '../../domain/errors.ts'
import { BoundedMap } from '../../runtime/bounded-map.ts'
import type { Clock } from '../../runtime/clock.ts'
import { minuteMs } from '../../runtime/minute-log.ts'

/**
 * The minimum limit of bytes per minute that are read, parsed, or decrypted for one account's unadmitted requests
 * (contract 29.5).
 */
const minBytesPerMinute = 96 * 1024 * 1024
/** The limit also allows at least this many bodies of the maximum size per minute. */
const minBodiesPerMinute = 20
/** Cost of a request in addition to its bytes. */
const bytesPerRequest = 16 * 1024
/** Maximum number of accounts counted at once. */
const maxAccounts = 50_000

interface SpentBytes {
  readonly window: number
  bytes: number
}

/**
 * Meters the work that accounts cause before their requests are admitted (contract 29.5). A rejected request counts
 * toward neither the minute nor the month, so without this limit bodies could be parsed for free at any rate. Uses
 * fixed minutes. Admission refunds what was spent on a request, because the plan limits it from there on.
 */
export class UnadmittedWork {
  readonly #bytesPerMinute: number
  readonly #clock: Clock
  readonly #spent = new BoundedMap<string, SpentBytes>(maxAccounts)

  constructor(maxBodyBytes: number, clock: Clock) {
    this.#bytesPerMinute = Math.max(minBytesPerMinute, minBodiesPerMinute * maxBodyBytes)
    this.#clock = clock
  }

  /** Starts one request of an account. @throws ServiceError `rate_limit_exceeded` */
  begin(accountId: string): RequestWork {
    const work = new RequestWork(this, accountId)
    work.spend(bytesPerRequest)
    return work
  }

  /** `bytes` is negative for a refund. @throws ServiceError `rate_limit_exceeded` */
  spend(accountId: string, bytes: number): void {
    const nowMs = this.#clock.monotonicMs()
    const window = Math.floor(nowMs / minuteMs)
    const counted = this.#countedIn(accountId, window)
    const spent = Math.max(0, counted.bytes + bytes)
    counted.bytes = spent
    if (bytes <= 0 || spent <= this.#bytesPerMinute) return
    const endsAtMs = (window + 1) * minuteMs
    const seconds = Math.min(60, Math.max(1, Math.ceil((endsAtMs - nowMs) / 1000)))
    const limit = `${Math.floor(this.#bytesPerMinute / 1024 / 1024)} MiB of rejected requests`
    throw new ServiceError('rate_limit_exceeded', {
      retryAfterSeconds: seconds,
      words: { limit, scope: 'for one account', seconds },
      window: {
        name: 'refused',
        limit: this.#bytesPerMinute,
        unit: 'content-bytes',
        endsAt: Math.ceil((this.#clock.nowMs() + endsAtMs - nowMs) / 1000),
      },
    })
  }

  /** Changes the map once per account and minute: frequent deletion makes a map replace its table over and over. */
  #countedIn(accountId: string, window: number): SpentBytes {
    const known = this.#spent.get(accountId)
    if (known?.window === window) return known
    const counted = { window, bytes: 0 }
    this.#spent.setLast(accountId, counted)
    return counted
  }
}

/** What one request has cost before admission. */
export class RequestWork {
  readonly #all: Pick<UnadmittedWork, 'spend'>
  readonly accountId: string
  #bytes = 0

  constructor(all: Pick<UnadmittedWork, 'spend'>, accountId: string) {
    this.#all = all
    this.accountId = accountId
  }

  /**
   * Counts bytes that were read, parsed, or decrypted for the request.
   * @throws ServiceError `rate_limit_exceeded` if the account is over its limit
   */
  spend(bytes: number): void {
    this.#bytes += bytes
    this.#all.spend(this.accountId, bytes)
  }

  /** Refunds the cost when the request is admitted. */
  admitted(): void {
    this.#all.spend(this.accountId, -this.#bytes)
    this.#bytes = 0
  }
}
