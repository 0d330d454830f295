import type { UpstreamError } from '../../../src/domain/upstream.ts'
import type { BreakerKey } from '../../../src/gateway/routing/backend-breakers.ts'
import type { CircuitBreakers } from '../../../src/gateway/routing/circuit-breakers.ts'

/** Who asks for plain text, unless a test says otherwise. */
export const someBreakerKey: BreakerKey = { accountId: 'acc_1', contentKind: () => 'plain' }

/** One attempt at a backend that fails before it answers. */
export function failOnce(
  breakers: CircuitBreakers,
  backendId: string,
  error: UpstreamError,
  breakerKey = someBreakerKey,
): void {
  breakers.begin(backendId, breakerKey).ended(error)
}

/** One attempt at a backend that answers completely. */
export function answerOnce(breakers: CircuitBreakers, backendId: string, breakerKey = someBreakerKey): void {
  const attempt = breakers.begin(backendId, breakerKey)
  attempt.sawAnswer()
  attempt.ended()
}
