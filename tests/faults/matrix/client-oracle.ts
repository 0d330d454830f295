import type { ClientCell } from './client-cells.ts'
import { textOf } from './faulty-backends.ts'
import type { ReadAnswer } from './read-answer.ts'

/** What becomes of a client's requests. */
export interface ClientResult {
  /** The complete answers that it reads. */
  readonly answers: readonly (ReadAnswer & { readonly status: number })[]
  /** For each record: the place of each backend, and the outcome. */
  readonly attempts: readonly (readonly string[])[]
  /** Calls of each backend. */
  readonly calls: readonly number[]
  /** Calls that were neither answered nor aborted. */
  readonly unfinishedCalls: number
  readonly units: number
  readonly minute: number
  /** The outcome and the charge of each request, as logged. */
  readonly log: readonly string[]
}

/** What the contract promises for a cell. Reads nothing of the service. */
export function expectedOfClient({ fault }: ClientCell): ClientResult {
  const { is } = fault
  if (is.is === 'unadmitted') {
    // Contract 6.1, 3.14: it uses nothing, and no backend is asked.
    const answers =
      is.error === undefined ? [] : [{ status: is.error.status, end: 'error', code: is.error.code, text: '' } as const]
    return { answers, attempts: [], calls: [0, 0, 0], unfinishedCalls: 0, units: 0, minute: 0, log: [] }
  }
  if (is.is === 'abandoned')
    // Contract 6.7, 9.10: charged once, and the upstream call is aborted.
    return { ...oneCharge, answers: [], attempts: [is.attempts], calls: callsOf(is.attempts), log: ['client_closed 1'] }
  if (is.is === 'late')
    // Contract 6.7, 6.19, 4.54.
    return {
      ...oneCharge,
      answers: [{ status: 504, end: 'error', code: 'upstream_timeout', text: '' }],
      attempts: [['0 cancelled']],
      calls: [1, 0, 0],
      log: ['upstream_timeout 1'],
    }
  // Contract 6.4: each is answered and charged once.
  const each = Array.from({ length: is.times })
  return {
    answers: each.map(() => ({ status: 200, end: 'complete', code: undefined, text: textOf(0) })),
    attempts: each.map(() => ['0 answered']),
    calls: [is.times, 0, 0],
    unfinishedCalls: 0,
    units: is.times,
    minute: is.times,
    log: each.map(() => 'answered 1'),
  }
}

const oneCharge = { unfinishedCalls: 0, units: 1, minute: 1 }

const callsOf = (attempts: readonly string[]): number[] =>
  [0, 1, 2].map((place) => attempts.filter((attempt) => attempt.startsWith(`${place} `)).length)
