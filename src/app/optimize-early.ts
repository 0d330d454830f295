import { setFlagsFromString } from 'node:v8'
import type { EventLog } from '../domain/events.ts'

/**
 * Calls of a function before its first and its last optimization, instead of 400 and 3,000, and calls with values of the
 * same types before each, instead of 500.
 */
const earlyFlags = [
  '--invocation-count-for-maglev=100',
  '--invocation-count-for-turbofan=200',
  '--minimum-invocations-after-ic-update=100',
]

/**
 * How many requests end before V8 optimizes early. Sooner, the compilers would take CPU from the first requests, while
 * all code is cold.
 */
const requestsFirst = 1_000

/**
 * Makes V8 optimize functions early, in all threads: by default, it has fully optimized little of a request's code after
 * 20,000 requests (decision 55).
 */
export function optimizeEarly(): void {
  for (const flag of earlyFlags) setFlagsFromString(flag)
}

/** Returns a log that passes every event on and calls `optimize` after the first 1,000 requests. */
export function optimizeAfterRequests(log: EventLog, optimize = optimizeEarly): EventLog {
  let requests = 0
  return (event) => {
    if (event.event === 'request' && ++requests === requestsFirst) optimize()
    log(event)
  }
}
