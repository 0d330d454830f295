/** Where an account's request for managed access stands. Nothing but a person who reviews it approves one (contract 23.5). */
export const managedRequestStates = ['requested', 'withdrawn', 'approved', 'rejected'] as const
export type ManagedRequestState = (typeof managedRequestStates)[number]

/** From which states each step may be taken: an account withdraws, an operator approves or rejects. */
export const managedTransitions = {
  withdrawn: ['requested', 'approved'],
  approved: ['requested'],
  rejected: ['requested', 'approved'],
} as const satisfies Readonly<Partial<Record<ManagedRequestState, readonly ManagedRequestState[]>>>
export type ManagedAction = keyof typeof managedTransitions

/** An account's request; it has at most one that is `requested` or `approved`. */
export interface ManagedRequest {
  /** `mar_…` */
  readonly id: string
  readonly accountId: string
  readonly state: ManagedRequestState
  readonly createdAtMs: number
  readonly decidedAtMs: number | null
}

/** That a provider allows what it sells us to be used for others, as an operator recorded it. */
export interface ResaleControl {
  /** The provider's name in the configuration. */
  readonly provider: string
  /** Names the note, contract or ticket that says so, wherever the operator keeps it. */
  readonly noteId: string
  readonly recordedAtMs: number
  /** `cli`, or the operator's id. */
  readonly recordedBy: string
  readonly revokedAtMs: number | null
}

/** The operator's side of managed access, as it is kept. */
export interface ManagedAccessState {
  readonly switchedOn: boolean
  /** Revoked ones too. */
  readonly controls: readonly ResaleControl[]
}

/** The live checks of contract 23.3, as they stand now. */
export interface ManagedReadiness {
  readonly switchedOn: boolean
  /** Providers with resale controls that are recorded and not revoked. */
  readonly providers: readonly string[]
  /** Whether a write to the quotas was found again behind a fresh connection just now. */
  readonly durableQuotas: boolean
  /** Whether an event was appended and verified just now. */
  readonly durableAudit: boolean
}

/** Whether managed access is on for a provider: the switch and all three checks, or not at all. */
export function isManagedOn(readiness: ManagedReadiness, provider: string): boolean {
  const { switchedOn, providers, durableQuotas, durableAudit } = readiness
  return switchedOn && durableQuotas && durableAudit && providers.includes(provider)
}
