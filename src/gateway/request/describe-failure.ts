import { errorMessage } from '../../domain/error-message.ts'
import type { ServiceError } from '../../domain/errors.ts'
import type { Links } from '../../domain/links.ts'
import type { StreamFailure } from '../../formats/stream-failure.ts'

/**
 * The failure that ends a stream after it has started (contract 10). `isStored`: its retries get the same end, so the same request
 * cannot succeed later (contract 4.3, 39.13).
 */
export function describeFailure(error: ServiceError, links: Links, requestId: string, isStored = false): StreamFailure {
  const { code, entry, facts } = error
  const { type, source } = entry
  const retryable = entry.retryable && !isStored
  const message = errorMessage(error, links)
  return { code, type, message, param: facts.param ?? null, source, retryable, requestId }
}
