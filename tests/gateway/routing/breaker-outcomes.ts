import type { UpstreamError } from '../../../src/domain/upstream.ts'
import type { BreakerKey } from '../../../src/gateway/routing/backend-breakers.ts'
import type { CircuitBreakers } from '../../../src/gateway/routing/circuit-breakers.ts'

/** Who asks for plain text, unless a test says otherwise. */
export const someAsker: BreakerKey = { accountId: 'acc_1', contentKind: () => 'plain' }

/** One attempt at a backend that fails before it answers. */
export function failOnce(breakers: CircuitBreakers, backendId: string, error: UpstreamError, asker = someAsker): void {
  breakers.begin(backendId, asker).ended(error)
}

/** One attempt at a backend that answers completely. */
export function answerOnce(breakers: CircuitBreakers, backendId: string, asker = someAsker): void {
  const attempt = breakers.begin(backendId, asker)
  attempt.sawAnswer()
  attempt.ended()
}
