import { brokenBackend, failedBackends, type RequestRecord } from '../domain/requests.ts'
import type { Clock } from '../runtime/clock.ts'
import { hourMs } from '../runtime/durations.ts'
import type { Workspace } from './command.ts'

/** How many of the latest request records are examined. */
const maxLooked = 2_000

/** How often a backend answered and failed. */
export interface ResultCounts {
  readonly answered: number
  readonly failed: number
}

/** What backends did recently. */
export interface RecentResults {
  of(backend: string): ResultCounts
  /** What the counts cover, for the line below a table. */
  readonly caption: string
}

/** Counts the results of the last hour by the request records, which do not depend on the nodes that run now. */
export async function recentResults(requests: Workspace['requests'], clock: Clock): Promise<RecentResults> {
  const sinceMs = clock.nowMs() - hourMs
  const looked = await requests.list(maxLooked, undefined)
  const recent = looked.filter(({ admittedAtMs }) => admittedAtMs >= sinceMs)
  const counts = countResults(recent)
  return {
    of: (backend) => counts.get(backend) ?? { answered: 0, failed: 0 },
    caption:
      recent.length === maxLooked
        ? `ANSWERED and FAILED count the latest ${maxLooked} requests.`
        : 'ANSWERED and FAILED count the requests of the last hour.',
  }
}

/** By backend. An answer that broke off did not answer. */
function countResults(records: readonly RequestRecord[]): ReadonlyMap<string, ResultCounts> {
  const counts = new Map<string, ResultCounts>()
  const add = (backend: string, answered: number, failed: number): void => {
    const known = counts.get(backend)
    counts.set(backend, { answered: (known?.answered ?? 0) + answered, failed: (known?.failed ?? 0) + failed })
  }
  for (const record of records) {
    for (const { backend, outcome } of record.attempts) if (outcome === 'answered') add(backend, 1, 0)
    for (const backend of failedBackends(record) ?? []) add(backend, 0, 1)
    const broken = brokenBackend(record)
    if (broken !== undefined) add(broken, -1, 0)
  }
  return counts
}
