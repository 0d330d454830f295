import type { Clock } from '../domain/clock.ts'
import { BoundedMap } from '../domain/bounded-map.ts'
import { ServiceError } from '../domain/errors.ts'
import { minuteMs } from '../domain/minute-log.ts'

/** Bytes of one account that are read, parsed, or opened in a minute for requests that are not admitted: at least this many, (contract 29.5) */
const minBytesPerMinute = 96 * 1024 * 1024
/** and as many of the largest bodies. */
const minBodiesPerMinute = 20
/** What a request costs besides its bytes. */
const bytesPerRequest = 16 * 1024
/** Accounts that are counted at once. */
const maxAccounts = 50_000

interface Spent {
  window: number
  bytes: number
}

/**
 * Meters what accounts make us do before a request is admitted (contract 29.5): a refused request counts toward neither the
 * minute nor the month, so without this its body could be parsed for free at any rate. Fixed minutes. What was spent on a
 * request is given back when it is admitted, because the plan limits it from there on.
 */
export class UnadmittedWork {
  readonly #bytesPerMinute: number
  readonly #clock: Clock
  readonly #spent = new BoundedMap<string, Spent>(maxAccounts)

  constructor(maxBodyBytes: number, clock: Clock) {
    this.#bytesPerMinute = Math.max(minBytesPerMinute, minBodiesPerMinute * maxBodyBytes)
    this.#clock = clock
  }

  /** Begins one request of an account. @throws ServiceError `rate_limit_exceeded` */
  begin(accountId: string): RequestWork {
    const work = new RequestWork((bytes) => this.#spend(accountId, bytes))
    work.spend(bytesPerRequest)
    return work
  }

  /** `bytes` is negative where they are given back. */
  #spend(accountId: string, bytes: number): void {
    const nowMs = this.#clock.monotonicMs()
    const window = Math.floor(nowMs / minuteMs)
    const known = this.#spent.get(accountId)
    const before = known?.window === window ? known.bytes : 0
    const spent = Math.max(0, before + bytes)
    this.#spent.setLast(accountId, { window, bytes: spent })
    if (bytes <= 0 || spent <= this.#bytesPerMinute) return
    const endsAtMs = (window + 1) * minuteMs
    const seconds = Math.min(60, Math.max(1, Math.ceil((endsAtMs - nowMs) / 1000)))
    const limit = `${Math.floor(this.#bytesPerMinute / 1024 / 1024)} MiB of refused`
    throw new ServiceError('rate_limit_exceeded', {
      retryAfterSeconds: seconds,
      words: { limit, plan: 'one account', seconds },
      window: {
        name: 'refused',
        limit: this.#bytesPerMinute,
        unit: 'content-bytes',
        endsAt: Math.ceil((this.#clock.nowMs() + endsAtMs - nowMs) / 1000),
      },
    })
  }
}

/** What one request has cost before it was admitted. */
export class RequestWork {
  readonly #spend: (bytes: number) => void
  #bytes = 0

  constructor(spend: (bytes: number) => void) {
    this.#spend = spend
  }

  /** Counts bytes that were read, parsed, or opened for it. @throws ServiceError `rate_limit_exceeded` where the account has had too many */
  spend(bytes: number): void {
    this.#bytes += bytes
    this.#spend(bytes)
  }

  /** It was admitted: what it cost is given back. */
  admitted(): void {
    this.#spend(-this.#bytes)
    this.#bytes = 0
  }
}
