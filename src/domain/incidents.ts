/** How bad it is, in the words that status pages use. */
export const impacts = ['none', 'minor', 'major', 'critical'] as const
export type Impact = (typeof impacts)[number]

/** How far it is mended. An incident is over once it is `resolved`. */
export const incidentStates = ['investigating', 'identified', 'monitoring', 'resolved'] as const
export type IncidentState = (typeof incidentStates)[number]

/** What an operator wrote about it at one moment. */
export interface IncidentUpdate {
  readonly id: string
  readonly state: IncidentState
  readonly text: string
  readonly atMs: number
}

/** Something that went wrong, as operators tell it. */
export interface Incident {
  readonly id: string
  readonly title: string
  readonly impact: Impact
  readonly createdAtMs: number
  /** Newest first, never empty. */
  readonly updates: readonly IncidentUpdate[]
}

/** Where it stands now. */
export function stateOf({ updates }: Incident): IncidentState {
  return updates[0]?.state ?? 'investigating'
}
