/** What keeps requests away from a backend because an operator said so: `drained` for a while, `quarantined` as not to be trusted. */
export type HoldKind = 'drained' | 'quarantined'

/** Why a backend is held, in one word: what people write gets into no audit log. */
export const holdReasons = ['asked', 'maintenance', 'failing', 'credential', 'cost'] as const
export type HoldReason = (typeof holdReasons)[number]

/** What an operator last said of a backend, as it is kept: a hold that stands, or the moment of its last release. */
export interface BackendControl {
  readonly backendId: string
  readonly kind: HoldKind | 'released'
  readonly atMs: number
  /** `cli`, or the operator's id. */
  readonly by: string
  /** Null for a release. */
  readonly reason: HoldReason | null
}

/** A hold as it is asked where backends are chosen. */
export interface Hold {
  readonly kind: HoldKind
  readonly sinceMs: number
}

/** The holds among what is kept, by backend. Of a backend that is held twice the drain is told: it is what was planned. */
export function holdsOf(controls: readonly BackendControl[]): ReadonlyMap<string, Hold> {
  const holds = new Map<string, Hold>()
  for (const { backendId, kind, atMs } of controls) {
    if (kind === 'released' || holds.get(backendId)?.kind === 'drained') continue
    holds.set(backendId, { kind, sinceMs: atMs })
  }
  return holds
}
