/** How an operator takes a backend out of use: `drained` temporarily, `quarantined` because it is not trusted. */
export type HoldKind = 'drained' | 'quarantined'

/** Why a backend is held. A fixed list, so that no free text reaches the audit log (contract 24.10). */
export const holdReasons = ['asked', 'maintenance', 'failing', 'credential', 'cost'] as const
export type HoldReason = (typeof holdReasons)[number]

/** The latest control of a backend as it is stored: a hold, or the time of its release. */
export interface BackendControl {
  readonly backendId: string
  readonly kind: HoldKind | 'released'
  readonly atMs: number
  /** `cli`, or the id of the operator. */
  readonly by: string
  /** Null for a release. */
  readonly reason: HoldReason | null
}

/** A hold, as routing sees it. */
export interface Hold {
  readonly kind: HoldKind
  readonly sinceMs: number
}

/**
 * The active holds by backend. If a backend is both drained and quarantined, the result is the drain, because it was
 * planned.
 */
export function holdsOf(controls: readonly BackendControl[]): ReadonlyMap<string, Hold> {
  const holds = new Map<string, Hold>()
  for (const { backendId, kind, atMs } of controls) {
    if (kind === 'released' || holds.get(backendId)?.kind === 'drained') continue
    holds.set(backendId, { kind, sinceMs: atMs })
  }
  return holds
}
