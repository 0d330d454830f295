import type { Conversation } from '../../domain/conversation.ts'
import { inOrder, type RequestRouting } from '../../domain/routing-policy.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Backend, ModelRequest } from '../ports.ts'
import type { BreakerKey } from './backend-breakers.ts'
import { BackendChoice } from './backend-choice.ts'
import { nothingCached } from './backend-score.ts'
import type { BackendStatistics } from './backend-statistics.ts'
import type { CandidatesOptions } from './candidates.ts'
import type { CircuitBreakers } from './circuit-breakers.ts'
import { promptKindOf, tokensIn } from './prompt-kind.ts'

/** A request and the backends among which one is chosen for it. */
export interface RoutedRequest {
  readonly request: Pick<ModelRequest, 'bytes'>
  readonly conversation: Conversation
  readonly backends: readonly Backend[]
  /** Those that probably cannot answer. */
  readonly doubtful?: ReadonlySet<Backend> | undefined
  /** How to choose among them; by default in their order. */
  readonly routing?: RequestRouting | undefined
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
  { request, conversation, backends, doubtful, routing = inOrder }: RoutedRequest,
  breakerKey: BreakerKey,
): CandidatesOptions {
  const shared = { backends, doubtful, routing, breakers, breakerKey, statistics }
  if (routing.sort === 'order') return { ...shared, choice: undefined }
  const { length } = request.bytes
  const context = {
    routing,
    kind: promptKindOf(length, conversation),
    promptTokens: tokensIn(length),
    nowMs: clock.monotonicMs(),
    cacheFactor: nothingCached,
  }
  return { ...shared, choice: new BackendChoice(statistics, context, random) }
}
