import type { UpstreamError } from '../../../src/domain/upstream.ts'
import type { BreakerKey } from '../../../src/gateway/routing/backend-breakers.ts'
import type { CircuitBreakers } from '../../../src/gateway/routing/circuit-breakers.ts'

/** The default key, for plain text. */
export const someBreakerKey: BreakerKey = { accountId: 'acc_1', contentKind: () => 'plain' }

/** Records an attempt that fails before the backend answers. */
export function failOnce(
  breakers: CircuitBreakers,
  backendId: string,
  error: UpstreamError,
  breakerKey = someBreakerKey,
): void {
  breakers.begin({ id: backendId }, breakerKey).ended(error)
}

/** Records an attempt that the backend answers completely. */
export function answerOnce(breakers: CircuitBreakers, backendId: string, breakerKey = someBreakerKey): void {
  const attempt = breakers.begin({ id: backendId }, breakerKey)
  attempt.sawAnswer()
  attempt.ended()
}
