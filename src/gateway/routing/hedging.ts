import type { Conversation } from '../../domain/conversation.ts'
import type { Backend } from '../ports.ts'
import type { BreakerKey } from './backend-breakers.ts'
import type { BackendStatistics } from './backend-statistics.ts'
import type { CircuitBreakers } from './circuit-breakers.ts'
import type { HedgeBudget } from './hedge-budget.ts'
import type { RoutedRequest } from './open-candidates.ts'
import { isShortPrompt, type PromptKind } from './prompt-kind.ts'

/** The shortest wait before a second backend is asked, milliseconds. */
const shortestDelayMs = 800
/** A prompt of which more tokens than this are cached is not sent to a second backend. */
const mostWarmTokens = 16_000
/** A backend with more than this share of the calls that it accepts gets no second calls. */
const highLoad = 0.7

interface HedgingDeps {
  readonly breakers: CircuitBreakers
  readonly statistics: BackendStatistics
  /** Absent if no request is hedged. */
  readonly hedges?: HedgeBudget
}

/** Decides whether and when one request is sent to a second backend because the first is slow (contract 7.30). */
export class Hedging {
  readonly #deps: Required<HedgingDeps>
  readonly #backends: readonly Backend[]
  readonly #caller: BreakerKey
  readonly #kind: PromptKind

  constructor(deps: Required<HedgingDeps>, backends: readonly Backend[], caller: BreakerKey, kind: PromptKind) {
    this.#deps = deps
    this.#backends = backends
    this.#caller = caller
    this.#kind = kind
    deps.hedges.requestStarted(caller.accountId)
  }

  /** How long to wait for the first content of a backend, milliseconds; undefined if it is unknown what is slow. */
  delayMs(backend: Backend): number | undefined {
    const { accountId } = this.#caller
    const slowMs = this.#deps.statistics.slowMs({ backend, accountId, kind: this.#kind })
    return slowMs === undefined ? undefined : Math.max(shortestDelayMs, slowMs)
  }

  /** Whether a third of the backends are out of use: second calls would add to the load of the others. */
  get isUnderLoad(): boolean {
    return this.#backends.filter((backend) => !this.#isUsable(backend)).length * 3 >= this.#backends.length
  }

  /** Whether another backend may be asked besides the first. Takes the second call from the budget if so. */
  mayAsk(other: Backend, first: Backend): boolean {
    const { breakers, statistics, hedges } = this.#deps
    if (other.failureDomain === first.failureDomain || !this.#isUsable(other)) return false
    if (breakers.isTroubled(other.id) || statistics.loadOf(other.id) > highLoad) return false
    return hedges.take(this.#caller.accountId)
  }

  #isUsable({ id }: Backend): boolean {
    return this.#deps.breakers.availability(id, this.#caller).usable
  }
}

/** Undefined if a request is never sent to a second backend. */
export function hedgingFor(
  { breakers, statistics, hedges }: HedgingDeps,
  { conversation, backends, routing, session }: RoutedRequest,
  caller: BreakerKey,
  kind: PromptKind,
): Hedging | undefined {
  if (hedges === undefined || routing?.hedge !== true || backends.length < 2) return undefined
  if (!isHedgeable(conversation, kind)) return undefined
  // Another backend would have to compute all of it again (contract 45.10).
  if (session !== undefined && backends.some((one) => session.warmTokens(one) > mostWarmTokens)) return undefined
  return new Hedging({ breakers, statistics, hedges }, backends, caller, kind)
}

/**
 * Whether a second call is worth its price: not for long prompts, for reasoning, whose start says little, for whole
 * answers, or for an agent that returns results of its tools and so has a warm cache at one backend.
 */
function isHedgeable({ stream, turns }: Conversation, kind: PromptKind): boolean {
  return stream && isShortPrompt(kind) && turns.at(-1)?.role !== 'tool'
}
