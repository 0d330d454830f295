/** The severity of an incident, in the usual words of status pages. */
export const impacts = ['none', 'minor', 'major', 'critical'] as const
export type Impact = (typeof impacts)[number]

/** The progress of an incident, which ends with `resolved`. */
export const incidentStates = ['investigating', 'identified', 'monitoring', 'resolved'] as const
export type IncidentState = (typeof incidentStates)[number]

/** One update that an operator wrote. */
export interface IncidentUpdate {
  readonly id: string
  readonly state: IncidentState
  readonly text: string
  readonly atMs: number
}

/** A problem that operators reported on the status page. */
export interface Incident {
  readonly id: string
  readonly title: string
  readonly impact: Impact
  readonly createdAtMs: number
  /** Newest first, never empty. */
  readonly updates: readonly IncidentUpdate[]
}

/** The current state of an incident. */
export function stateOf({ updates }: Incident): IncidentState {
  return updates[0]?.state ?? 'investigating'
}
