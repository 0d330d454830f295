import { brokenBackend, failedBackends, type RequestRecord } from '../domain/requests.ts'
import type { Clock } from '../runtime/clock.ts'
import { hourMs } from '../runtime/durations.ts'
import type { Workspace } from './command.ts'

/** How many of the latest request records are examined. */
const maxLooked = 2_000

/** What backends did recently. */
export interface RecentResults {
  of(backend: string): { readonly answered: number; readonly failed: number }
  /** What the counts cover, for the line below a table. */
  readonly caption: string
}

/** Counts the results of the last hour by the request records, which do not depend on the nodes that run now. */
export async function recentResults(requests: Workspace['requests'], clock: Clock): Promise<RecentResults> {
  const sinceMs = clock.nowMs() - hourMs
  const looked = await requests.list(maxLooked, undefined)
  const recent = looked.filter(({ admittedAtMs }) => admittedAtMs >= sinceMs)
  return {
    of: (backend) => countResults(recent, backend),
    caption:
      recent.length === maxLooked
        ? `ANSWERED and FAILED count the latest ${maxLooked} requests.`
        : 'ANSWERED and FAILED count the requests of the last hour.',
  }
}

function countResults(records: readonly RequestRecord[], backend: string): ReturnType<RecentResults['of']> {
  const attempts = records.flatMap((record) => record.attempts).filter((attempt) => attempt.backend === backend)
  const answered = attempts.filter(({ outcome }) => outcome === 'answered').length
  const broken = records.filter((record) => brokenBackend(record) === backend).length
  const failed = records.flatMap((record) => failedBackends(record) ?? []).filter((failing) => failing === backend)
  return { answered: answered - broken, failed: failed.length }
}
