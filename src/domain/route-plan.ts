import type { OpenReason } from './backend-state.ts'
import type { HoldKind } from './backend-controls.ts'
import type { ErrorCode } from './errors.ts'
import type { ClientFormatId, FormatId } from './format-id.ts'
import type { Plan } from './plans.ts'

/** What is asked of a dry run: a request that nobody sends, by its properties. */
export interface RouteQuestion {
  readonly profile: string
  readonly format: ClientFormatId
  readonly stream: boolean
  readonly images: boolean
  readonly tools: boolean
  /** About so many tokens of text, at most `maxQuestionTokens`. */
  readonly tokens: number
}

/** Who would ask. An account that nobody has, for a plan alone, is named by an empty id. */
export interface RouteCaller {
  readonly accountId: string
  readonly plan: Plan
}

/** The longest request that a dry run is made for. */
export const maxQuestionTokens = 1_000_000

/**
 * What may go wrong at a backend that is asked nevertheless: its window looks too small, it refused lately what such a
 * request needs, or its circuit breaker is open.
 */
export type RouteDoubt = 'window_small' | 'refused_before' | 'open'

/** A backend that would be asked. */
export interface PlannedBackend {
  readonly backend: string
  readonly model: string
  readonly format: FormatId
  /** `relay`: as it was sent. `translation`: in the words of the backend's format. */
  readonly lane: 'relay' | 'translation'
  readonly simulated: boolean
  readonly doubts: readonly RouteDoubt[]
}

/** Why a backend of the profile would not be asked. */
export type ExclusionReason =
  | OpenReason
  | HoldKind
  /** Its credential belongs to another account. */
  | 'another_account'
  | 'managed_not_approved'
  | 'managed_off'
  /** It only pretends, and something real serves. */
  | 'simulated'
  /** It is declared not to be able to do what is asked. */
  | 'not_capable'
  /** Its format has no words for what is asked. */
  | 'cannot_say'
  /** One with a larger window has to be asked after one whose window was too small. */
  | 'window_small'
  /** So many are asked before it that no further one is (contract 7.5). */
  | 'enough_asked'

export interface ExcludedBackend {
  readonly backend: string
  readonly reason: ExclusionReason
  /** When that ends by itself, epoch milliseconds; undefined where it does not. */
  readonly untilMs?: number | undefined
}

/** Who deliberates, where several models would. */
export interface PlannedPanel {
  /** Who is asked for an answer, each as often as it is named. */
  readonly asked: readonly string[]
  /** Who stands in for those that fail or are slow, in order. */
  readonly reserves: readonly string[]
  /** Who judges and writes, the first that can. */
  readonly writers: readonly string[]
}

/** Where a request would go, as things stand now. */
export interface RoutePlan {
  /** Why it would be refused before any backend is asked; undefined where it would not. */
  readonly refusal: { readonly code: ErrorCode; readonly param: string | undefined } | undefined
  readonly panel: PlannedPanel | undefined
  /** In the order in which they would be asked, each after the one before has failed; where there is a panel, only if one model answers alone. */
  readonly asked: readonly PlannedBackend[]
  readonly leftOut: readonly ExcludedBackend[]
}
