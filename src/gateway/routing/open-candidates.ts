import type { Conversation } from '../../domain/conversation.ts'
import { inOrder, type RequestRouting } from '../../domain/routing-policy.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Measure, SessionTurn } from '../cache/session-turn.ts'
import type { Backend, ModelRequest } from '../ports.ts'
import type { BreakerKey } from './backend-breakers.ts'
import { BackendChoice } from './backend-choice.ts'
import { loadOf } from './backend-score.ts'
import type { BackendStatistics } from './backend-statistics.ts'
import type { CandidatesOptions } from './candidates.ts'
import type { CircuitBreakers } from './circuit-breakers.ts'
import { promptKindOf, tokensIn, type PromptKind } from './prompt-kind.ts'

/** How often a backend is assumed to reject a call if it has as many as it is known to accept. */
const rejectionRate = 0.25

/** A request and the backends among which one is chosen for it. */
export interface RoutedRequest {
  readonly request: Pick<ModelRequest, 'bytes'>
  readonly conversation: Conversation
  readonly backends: readonly Backend[]
  /** Those that probably cannot answer. */
  readonly doubtful?: ReadonlySet<Backend> | undefined
  /** How to choose among them; by default in their order. */
  readonly routing?: RequestRouting | undefined
  /** The request as a turn of its session; absent if no cache holds its beginning. */
  readonly session?: SessionTurn | undefined
}

interface CandidatesDeps {
  readonly clock: Clock
  readonly breakers: CircuitBreakers
  readonly statistics: BackendStatistics
  /** From 0 to 1; absent in a dry run. */
  readonly random?: () => number
}

/** What the candidates of a request are made from: the same for requests and dry runs. */
export function candidatesOptions(
  { clock, breakers, statistics, random }: CandidatesDeps,
  { request, conversation, backends, doubtful, routing = inOrder, session }: RoutedRequest,
  breakerKey: BreakerKey,
): CandidatesOptions {
  const kind = promptKindOf(request.bytes.length, conversation)
  const choice =
    routing.sort === 'order'
      ? undefined
      : new BackendChoice(
          statistics,
          {
            routing,
            kind,
            promptTokens: tokensIn(request.bytes.length),
            nowMs: clock.monotonicMs(),
            unanswered: ({ id }) => breakers.unanswered(id),
          },
          random,
        )
  const isPinned = session !== undefined && routing.sticky !== false
  const pin = isPinned ? pinOf(session, routing, measureWith(statistics, clock, kind)) : undefined
  return { backends, doubtful, routing, breakers, breakerKey, statistics, pin, choice }
}

/** Keeps a session at the backend that holds its cache (contract 45.2). */
function pinOf(session: SessionTurn, { sort }: RequestRouting, measure: Measure): CandidatesOptions['pin'] {
  return (backends) => session.choose(backends, sort, measure)
}

/** What a choice between caches depends on besides their prices. */
export function measureWith(statistics: BackendStatistics, clock: Clock, kind: PromptKind): Measure {
  return ({ id }) => {
    const { firstContentMs, inFlight, limit, errorRate, failuresInARow } = statistics.read(
      id,
      kind,
      clock.monotonicMs(),
    )
    return {
      seconds: firstContentMs === undefined ? undefined : (firstContentMs * loadOf(inFlight, limit)) / 1000,
      failureRate: Math.max(errorRate, 1 - 0.5 ** failuresInARow, statistics.isFull(id) ? rejectionRate : 0),
    }
  }
}
