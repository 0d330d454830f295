import { errorMessage } from '../../domain/error-text.ts'
import type { ServiceError } from '../../domain/errors.ts'
import type { Links } from '../../domain/links.ts'
import type { StreamFailure } from '../../formats/stream-failure.ts'

/** The failure that ends a stream after it has started (contract 10). */
export function describeFailure(error: ServiceError, links: Links, requestId: string): StreamFailure {
  const { code, entry, facts } = error
  const { type, source, retryable } = entry
  const message = errorMessage(error, links)
  return { code, type, message, param: facts.param ?? null, source, retryable, requestId }
}
