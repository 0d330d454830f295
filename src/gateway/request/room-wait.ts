import type { Clock } from '../../runtime/clock.ts'
import type { Turn } from '../../runtime/fair-queue.ts'
import type { LoadShedder } from '../overload/load-shedder.ts'
import type { Backend } from '../ports.ts'
import type { BackendStatistics } from '../routing/backend-statistics.ts'
import type { Candidates } from '../routing/candidates.ts'
import type { FailoverOptions } from './failover-deps.ts'
import { isLimited } from './request-retries.ts'

/** The longest wait, milliseconds, and the largest share of the time that a request has. */
const longestMs = 2_000
const shareOfTime = 0.25

interface RoomWaitDeps {
  readonly clock: Clock
  readonly statistics: BackendStatistics
  readonly shedder?: LoadShedder | undefined
}

/**
 * Lets a request wait, once, for a backend that has as many open calls as it is known to accept, if no other one has
 * room: a session that prefers a full backend to others does not wait (contract 7.35, 45.6).
 */
export class RoomWait {
  readonly #deps: RoomWaitDeps
  readonly #options: FailoverOptions
  readonly #candidates: Candidates
  #hasWaited = false

  constructor(deps: RoomWaitDeps, options: FailoverOptions, candidates: Candidates) {
    this.#candidates = candidates
    this.#deps = deps
    this.#options = options
  }

  /** A place in the backend's queue; undefined if the request is to be sent at once. */
  begin({ id }: Backend): Turn | undefined {
    const { statistics, shedder, clock } = this.#deps
    if (!statistics.isFull(id) || this.#hasWaited || this.#candidates.hasRoom) return undefined
    const { request, accountId, totalMs } = this.#options
    // A client's own retry does not wait here either (contract 7.33).
    if (isLimited(request.isRetry, shedder)) return undefined
    this.#hasWaited = true
    return statistics.waitForRoom(id, accountId, Math.min(longestMs, totalMs * shareOfTime), clock)
  }
}
