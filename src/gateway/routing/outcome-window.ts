import { BoundedMap } from '../../runtime/bounded-map.ts'

/** Outcomes stored per account, the newest ones (contract 8.2). */
const outcomesPerAccount = 16
/** An account's outcomes are dropped after this long without a request from it. */
const windowMs = 30_000
/** Accounts stored per backend; the one updated longest ago is evicted first. */
const maxAccounts = 256

interface Recent {
  /** One bit per outcome, the newest lowest; 1 is a failure. */
  bits: number
  count: number
  atMs: number
}

/** The state of a window: the number of failures, and the error rate from 0 to 1. */
export interface WindowReading {
  readonly failures: number
  readonly rate: number
}

/**
 * A sliding window over the newest outcomes of one backend. The error rate is the mean of the accounts' rates, so
 * that one account's failures, however many, never outvote accounts whose requests succeed (contract 8.2, 29.1).
 */
export class OutcomeWindow {
  readonly #byAccount = new BoundedMap<string, Recent>(maxAccounts)

  record(account: string, isFailure: boolean, nowMs: number): void {
    let recent = this.#byAccount.get(account)
    if (recent === undefined || nowMs - recent.atMs > windowMs) {
      recent = { bits: 0, count: 0, atMs: nowMs }
      this.#byAccount.setLast(account, recent)
    }
    recent.bits = ((recent.bits << 1) | Number(isFailure)) & ((1 << outcomesPerAccount) - 1)
    recent.count = Math.min(recent.count + 1, outcomesPerAccount)
    recent.atMs = nowMs
  }

  read(nowMs: number): WindowReading {
    let failures = 0
    let rates = 0
    let accounts = 0
    for (const { bits, count, atMs } of this.#byAccount.values()) {
      if (nowMs - atMs > windowMs) continue
      const failed = countBits(bits)
      failures += failed
      rates += failed / count
      accounts += 1
    }
    return { failures, rate: accounts === 0 ? 0 : rates / accounts }
  }

  /** How many accounts it has outcomes of. */
  accounts(nowMs: number): number {
    let accounts = 0
    for (const { atMs } of this.#byAccount.values()) accounts += Number(nowMs - atMs <= windowMs)
    return accounts
  }

  clear(): void {
    this.#byAccount.clear()
  }
}

function countBits(bits: number): number {
  let count = 0
  for (let left = bits; left !== 0; left &= left - 1) count += 1
  return count
}
