import type { HoldKind } from './backend-controls.ts'
import type { OpenReason } from './backend-state.ts'
import type { ErrorCode, ErrorFacts } from './errors.ts'
import type { ClientFormatId, FormatId } from './format-id.ts'
import type { Plan } from './plans.ts'
import type { RoutingFilter, RoutingSort } from './routing-policy.ts'

/** The request of a dry run, described by its properties. */
export interface RoutingQuestion {
  readonly profile: string
  readonly format: ClientFormatId
  readonly stream: boolean
  readonly images: boolean
  readonly tools: boolean
  /** The approximate number of input tokens, at most `maxQuestionTokens`. */
  readonly tokens: number
}

/** The caller of a dry run. An empty account id stands for a plan without an account. */
export interface RoutingCaller {
  readonly accountId: string
  readonly plan: Plan
}

/** The maximum number of input tokens of a dry run. */
export const maxQuestionTokens = 1_000_000

/**
 * Why a backend that would be asked may fail: its context window looks too small, it recently rejected a feature of the
 * request, or its circuit breaker is open.
 */
export type RoutingDoubt = 'window_small' | 'refused_before' | 'open'

/** A backend that would be asked. */
export interface PlannedBackend {
  readonly backend: string
  readonly model: string
  readonly format: FormatId
  /** `relay`: unchanged. `translation`: in the backend's format. */
  readonly lane: 'relay' | 'translation'
  readonly simulated: boolean
  readonly doubts: readonly RoutingDoubt[]
  /** What its choice depends on, in milliseconds: lower is better. Absent if the configured order decides. */
  readonly score?: number
  /** The probability to be asked first, from 0 to 1. Absent if the configured order decides. */
  readonly share?: number
}

/** Why a backend of the profile would not be asked. */
export type ExclusionReason =
  | OpenReason
  | HoldKind
  /** A requirement of the profile or the request (contract 7.25). */
  | RoutingFilter
  /** Its credential belongs to another account. */
  | 'another_account'
  | 'managed_not_approved'
  | 'managed_off'
  /** It is simulated, and a real backend is available. */
  | 'simulated'
  /** The configuration says that it lacks a capability that the request needs. */
  | 'not_capable'
  /** Its format cannot express the request. */
  | 'cannot_say'
  /** A backend with a larger context window must follow one whose window was too small. */
  | 'window_small'
  /** The maximum number of backends comes before it (contract 7.5). */
  | 'enough_asked'

export interface ExcludedBackend {
  readonly backend: string
  readonly reason: ExclusionReason
  /** When the reason ends by itself, epoch milliseconds; undefined if it does not. */
  readonly untilMs?: number | undefined
}

/** The members of a fusion. */
export interface PlannedPanel {
  /** The panel. A member that is asked several times is listed several times. */
  readonly asked: readonly string[]
  /** The members that replace failed or slow ones, in order. */
  readonly reserves: readonly string[]
  /** The candidates for judge and writer, in order. */
  readonly writers: readonly string[]
}

/** An error, by the parts that its message needs. */
interface PlannedRefusal {
  readonly code: ErrorCode
  readonly param: string | undefined
  readonly words?: ErrorFacts['words']
  readonly action?: ErrorFacts['action']
}

/** Where a request would go at this moment. */
export interface RoutingPlan {
  /** The requested profile by its full name, as far as it is known. */
  readonly profile: string
  /** Why the request would be rejected before a backend is asked; undefined if it would not. */
  readonly refusal: PlannedRefusal | undefined
  /** How the profile orders its backends; undefined if the request is rejected before that matters. */
  readonly sort: RoutingSort | undefined
  readonly panel: PlannedPanel | undefined
  /**
   * In the order in which they would be asked, each after the previous one failed. With a panel: only if one model
   * answers alone.
   */
  readonly asked: readonly PlannedBackend[]
  readonly leftOut: readonly ExcludedBackend[]
}
