import { idMinter } from '../domain/ids.ts'
import type { Impact, Incident, IncidentState, IncidentUpdate } from '../domain/incidents.ts'
import { type ControlPlane, operatorOf, recordOf } from './control-plane.ts'
import { AccountsError } from './refusals.ts'
import type { StatusStore } from './status-ports.ts'

/** Length limits of an incident's title and text (contract 18.6). */
const maxTitleCharacters = 120
const maxTextCharacters = 2_000

/** What publishing incidents needs. */
export type IncidentPlane = Omit<ControlPlane<Pick<StatusStore, 'addIncident' | 'addIncidentUpdate'>>, 'pepper'>

/** Publishes an incident on the status page. @throws AccountsError `operator_only`, `incident_invalid` */
export async function openIncident(
  plane: IncidentPlane,
  given: { readonly title: string; readonly impact: Impact; readonly text: string },
): Promise<Incident> {
  operatorOf(plane.actor)
  const update = makeUpdate(plane, 'investigating', given.text)
  const incident = {
    id: mint(plane, 'inc_'),
    title: checked(given.title, maxTitleCharacters),
    impact: given.impact,
    createdAtMs: update.atMs,
    updates: [update],
  }
  await plane.store.addIncident(incident, recordOf(plane, { type: 'incident.opened', incidentId: incident.id }))
  return incident
}

/**
 * Adds an update to an incident; `resolved` ends it. @throws AccountsError `operator_only`, `incident_invalid`,
 * `incident_unknown`
 */
export async function updateIncident(
  plane: IncidentPlane,
  incidentId: string,
  state: IncidentState,
  text: string,
): Promise<IncidentUpdate> {
  operatorOf(plane.actor)
  const update = makeUpdate(plane, state, text)
  const type = state === 'resolved' ? 'incident.resolved' : 'incident.updated'
  const record = recordOf(plane, { type, incidentId })
  if (!(await plane.store.addIncidentUpdate(incidentId, update, record))) throw new AccountsError('incident_unknown')
  return update
}

function makeUpdate(plane: IncidentPlane, state: IncidentState, text: string): IncidentUpdate {
  return {
    id: mint(plane, 'upd_'),
    state,
    text: checked(text, maxTextCharacters),
    atMs: Math.floor(plane.clock.nowMs()),
  }
}

function checked(text: string, maxCharacters: number): string {
  const trimmed = text.trim()
  if (trimmed === '' || trimmed.length > maxCharacters) throw new AccountsError('incident_invalid')
  return trimmed
}

function mint({ clock, random }: IncidentPlane, prefix: string): string {
  return idMinter(prefix, () => clock.nowMs(), random)()
}
