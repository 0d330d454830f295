/** The state of an account's request for managed access. Only an operator can approve one (contract 23.5). */
export const managedRequestStates = ['requested', 'withdrawn', 'approved', 'rejected'] as const
export type ManagedRequestState = (typeof managedRequestStates)[number]

/** The states in which each action is possible: an account withdraws; an operator approves or rejects. */
export const managedTransitions = {
  withdrawn: ['requested', 'approved'],
  approved: ['requested'],
  rejected: ['requested', 'approved'],
} as const satisfies Readonly<Partial<Record<ManagedRequestState, readonly ManagedRequestState[]>>>
export type ManagedAction = keyof typeof managedTransitions

/** An account's request. At most one of an account is `requested` or `approved`. */
export interface ManagedRequest {
  /** `mar_…` */
  readonly id: string
  readonly accountId: string
  readonly state: ManagedRequestState
  readonly createdAtMs: number
  readonly decidedAtMs: number | null
}

/** An operator's record that a provider allows us to resell its service. */
export interface ResaleControl {
  /** The provider's name in the configuration. */
  readonly provider: string
  /** The id of the note, contract, or ticket that proves it, wherever the operator stores that. */
  readonly noteId: string
  readonly recordedAtMs: number
  /** `cli`, or the id of the operator. */
  readonly recordedBy: string
  readonly revokedAtMs: number | null
}

/** The operator's settings for managed access, as stored. */
export interface ManagedAccessState {
  readonly switchedOn: boolean
  /** Including revoked ones. */
  readonly controls: readonly ResaleControl[]
}

/** The result of the checks of contract 23.3. */
export interface ManagedReadiness {
  readonly switchedOn: boolean
  /** Providers with a resale record that is not revoked. */
  readonly providers: readonly string[]
  /** Whether a quota write was visible on a new connection just now. */
  readonly durableQuotas: boolean
  /** Whether an event was appended and verified just now. */
  readonly durableAudit: boolean
}

/** Whether managed access is on for a provider, which requires the switch and all three checks. */
export function isManagedOn(readiness: ManagedReadiness, provider: string): boolean {
  const { switchedOn, providers, durableQuotas, durableAudit } = readiness
  return switchedOn && durableQuotas && durableAudit && providers.includes(provider)
}
