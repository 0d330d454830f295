import type { AttemptObserver, Backend } from '../ports.ts'
import type { BreakerKey } from './backend-breakers.ts'
import type { BackendStatistics, MeasuredCall } from './backend-statistics.ts'
import type { BackendKey } from './by-backend.ts'
import type { CircuitBreakers } from './circuit-breakers.ts'
import { isPrompt, type PromptKind } from './prompt-kind.ts'
import type { Pace } from './slow-calls.ts'

/** Content is slow after this many times the time that 95% of answers stay below, */
const slowFactor = 2
/** but never before this share of the time that a silent backend has. */
const shareOfSilence = 0.25

interface AttemptDeps {
  readonly breakers: CircuitBreakers
  readonly statistics: BackendStatistics
}

interface BegunAttempt {
  readonly backend: BackendKey & Pick<Backend, 'timeouts'>
  readonly caller: BreakerKey
  readonly kind: PromptKind
  /** Whether it runs beside another one, as a hedge. */
  readonly isSecond: boolean
}

/** Starts to measure an attempt, and to count it in the backend's circuit breakers. */
export function beginAttempt({ breakers, statistics }: AttemptDeps, attempt: BegunAttempt): AttemptObserver {
  const { backend, caller, kind, isSecond } = attempt
  const call = { backend, accountId: caller.accountId, kind, isSecond }
  return statistics.begin(call, breakers.begin(backend, caller, paceOf(statistics, call, backend)))
}

/** What is slow depends on the backend's other answers, and on how long it may be silent (contract 8.11). */
function paceOf(
  statistics: BackendStatistics,
  call: MeasuredCall,
  { timeouts }: Pick<Backend, 'timeouts'>,
): Pace | undefined {
  if (!isPrompt(call.kind)) return undefined
  const leastMs = timeouts.headersMs * shareOfSilence
  return {
    leastMs,
    slowMs: () => {
      const usualMs = statistics.slowMs(call)
      return usualMs === undefined ? undefined : Math.max(leastMs, usualMs * slowFactor)
    },
  }
}
