import { ServiceError } from '../../domain/errors.ts'
import type { EventLog } from '../../domain/events.ts'
import { errorName } from '../../runtime/describe-bug.ts'

/**
 * The result of a query. @throws ServiceError `store_unavailable` if the store fails, which is logged; the query's own
 * ServiceErrors
 */
export async function askStore<Result>(log: EventLog, query: () => Promise<Result>): Promise<Result> {
  try {
    return await query()
  } catch (cause) {
    if (cause instanceof ServiceError) throw cause
    log({ event: 'store_failing', reason: errorName(cause) })
    throw new ServiceError('store_unavailable', { retryAfterSeconds: 1, cause })
  }
}
