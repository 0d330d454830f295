import type { AttemptOutcome } from '../../../src/domain/upstream.ts'
import { textOf } from './faulty-backends.ts'
import type { UpstreamCell } from './upstream-cells.ts'

/** What a client, its account, and the operator see of a cell. */
export interface CellResult {
  readonly status: number
  /** How the answer ends: complete, as a broken stream, or as an error instead of an answer. */
  readonly end: 'complete' | 'broken' | 'error'
  /** The code of the error, if any. */
  readonly code: string | undefined
  /** All of the text, also of an answer that broke off. */
  readonly text: string
  /** `X-Svc-Router-Upstream`, as the place of the backend. */
  readonly upstream: number | undefined
  /** `X-Svc-Router-Retry-Count`. */
  readonly retryCount: number
  /** `Retry-After` in seconds. */
  readonly retryAfter: number | undefined
  /** `X-Should-Retry` of an error. */
  readonly mayRetry: boolean | undefined
  /** The attempts of the record: the place of the backend and the outcome. */
  readonly attempts: readonly `${number} ${AttemptOutcome}`[]
  /** Units of the month, and places in the minute. */
  readonly units: number
  readonly minute: number
  /** Backends whose breaker opened, with the reason. */
  readonly opened: readonly `${number} ${'rate' | 'credentials'}`[]
  /** Seconds for which each of them is left out; undefined if that is too short to be observed. */
  readonly openSeconds: number | undefined
  /** The line of the request, and the events of its configuration, as logged. */
  readonly log: {
    readonly outcome: string
    readonly attempts: number
    readonly charged: number
    readonly failed: readonly number[] | undefined
    readonly events: readonly string[]
  }
}

/** A request asks at most this many backends (contract 7.5). */
const mostAsked = 3
/** A time that a backend names is waited for if it is at most this long. */
const longestWaitSeconds = 2
/** Shorter times may be over when they are read. */
const shortestObservedSeconds = 5

type Failure = Extract<UpstreamCell['is'], { is: 'failure' }>

/** What the contract promises for a cell. Reads nothing of the service. */
export function expectedOf(cell: UpstreamCell): CellResult {
  const { is } = cell
  if (is.is === 'answer') return answered(0, [], [])
  if (is.is === 'break')
    // Contract 7.4, 6.5, 4.55, 10.2-10.4: nothing is retried, and one answer is charged.
    return {
      ...answered(0, [], []),
      end: 'broken',
      code: 'upstream_broken',
      text: 'alpha bravo ',
      log: { outcome: 'upstream_broken', attempts: 1, charged: 1, failed: [0], events: [] },
    }
  if (is.is === 'rejection')
    // Contract 7.13, 6.3, 4.28, 2.32: final, not charged, and no fault of the backend that answered with it (7.20).
    return {
      ...failed({
        status: is.status,
        code: 'content_rejected',
        mayRetry: false,
        attempts: ['0 rejected_content'],
        blamed: [],
      }),
      upstream: 0,
    }
  return afterFailures(cell, is)
}

/** Each attempt at the first `asked` backends, which all fail (contract 7.9, 7.33). */
function failedAttempts(backends: number, asked: number, is: Failure): CellResult['attempts'] {
  const isNamed = is.opens?.reason === 'rate' && is.opens.seconds <= longestWaitSeconds
  const attempts = Array.from({ length: asked }, (_, place) => {
    // The first backend is asked again after a short time: the next one has another model, or there is none.
    const times = is.again || (isNamed && place === 0) ? 2 : 1
    return Array<`${number} ${AttemptOutcome}`>(times).fill(`${place} ${is.outcome}`)
  }).flat()
  // Without another backend, also after a dropped connection.
  const isLast = asked === backends && attempts.length < mostAsked
  return isLast && is.outcome === 'reset' ? [...attempts, `${asked - 1} ${is.outcome}`] : attempts
}

function afterFailures({ faulty, backends }: UpstreamCell, is: Failure): CellResult {
  const asked = Math.min(faulty, mostAsked)
  const places = Array.from({ length: asked }, (_, place) => place)
  const attempts = failedAttempts(backends, asked, is)
  const opened = is.opens === undefined ? [] : places.map((place) => `${place} ${is.opens!.reason}` as const)
  const openSeconds =
    is.opens !== undefined && is.opens.seconds >= shortestObservedSeconds ? is.opens.seconds : undefined
  const events = is.logs === undefined ? [] : places.map((place) => `${is.logs} ${place}`)
  if (asked < Math.min(backends, mostAsked)) {
    const result = answered(asked, attempts, places)
    return { ...result, opened, openSeconds, log: { ...result.log, failed: attempts.map(placeIn), events } }
  }
  // A backend that was not asked has rejected nothing: contract 4.52 and 4.53 say "every provider" and "no provider".
  const all = asked === backends
  const rejected = all && is.outcome === 'rejected_credentials'
  const unknown = all && is.outcome === 'not_found'
  // Contract 4.6: when the service would try again. A healthy backend that is left can be tried at once.
  const seconds = all && is.opens?.reason === 'rate' ? is.opens.seconds : 1
  const error = rejected
    ? { status: 502, code: 'upstream_credentials_rejected', mayRetry: false }
    : unknown
      ? { status: 502, code: 'upstream_misconfigured', mayRetry: false }
      : { status: 503, code: 'server_is_overloaded', mayRetry: true, retryAfter: seconds }
  const result = failed({ ...error, attempts, blamed: attempts.map(placeIn) })
  return { ...result, retryCount: asked - 1, opened, openSeconds, log: { ...result.log, events } }
}

const placeIn = (attempt: string): number => Number(attempt.split(' ')[0])

/** Contract 6.4: answered after any number of failovers, charged once. */
function answered(place: number, earlier: CellResult['attempts'], failedPlaces: readonly number[]): CellResult {
  return {
    status: 200,
    end: 'complete',
    code: undefined,
    text: textOf(place),
    upstream: place,
    retryCount: place,
    retryAfter: undefined,
    mayRetry: undefined,
    attempts: [...earlier, `${place} answered`],
    units: 1,
    minute: 1,
    opened: [],
    openSeconds: undefined,
    log: {
      outcome: 'answered',
      attempts: earlier.length + 1,
      charged: 1,
      failed: failedPlaces.length === 0 ? undefined : failedPlaces,
      events: [],
    },
  }
}

interface Failed {
  readonly status: number
  readonly code: string
  readonly mayRetry: boolean
  readonly retryAfter?: number
  readonly attempts: CellResult['attempts']
  readonly blamed: readonly number[]
}

/** Contract 6.2: an error instead of an answer. It took a place in the minute and no unit. */
function failed({ status, code, mayRetry, retryAfter, attempts, blamed }: Failed): CellResult {
  return {
    status,
    end: 'error',
    code,
    text: '',
    upstream: undefined,
    retryCount: 0,
    retryAfter,
    mayRetry,
    attempts,
    units: 0,
    minute: 1,
    opened: [],
    openSeconds: undefined,
    log: {
      outcome: code,
      attempts: attempts.length,
      charged: 0,
      failed: blamed.length === 0 ? undefined : blamed,
      events: [],
    },
  }
}
