import type { Impact, Incident, IncidentState, IncidentUpdate } from '../../domain/incidents.ts'
import { idMinter } from '../../runtime/ids.ts'
import { AccountsError } from '../accounts-error.ts'
import { type AccountsDeps, operatorOf, auditRecord } from '../control-plane.ts'
import type { StatusStore } from './status-ports.ts'

/** Length limits of an incident's title and text (contract 18.6). */
export const maxTitleCharacters = 120
export const maxTextCharacters = 2_000

/** What publishing incidents needs. */
export type IncidentDeps = Omit<AccountsDeps<Pick<StatusStore, 'addIncident' | 'addIncidentUpdate'>>, 'pepper'>

/** Publishes an incident on the status page. @throws AccountsError `operator_only`, `incident_invalid` */
export async function openIncident(
  deps: IncidentDeps,
  given: { readonly title: string; readonly impact: Impact; readonly text: string },
): Promise<Incident> {
  operatorOf(deps.actor)
  const update = makeUpdate(deps, 'investigating', given.text)
  const incident = {
    id: mint(deps, 'inc_'),
    title: checked(given.title, maxTitleCharacters),
    impact: given.impact,
    createdAtMs: update.atMs,
    updates: [update],
  }
  await deps.store.addIncident(incident, auditRecord(deps, { type: 'incident.opened', incidentId: incident.id }))
  return incident
}

/**
 * Adds an update to an incident; `resolved` ends it. @throws AccountsError `operator_only`, `incident_invalid`,
 * `incident_unknown`
 */
export async function updateIncident(
  deps: IncidentDeps,
  incidentId: string,
  state: IncidentState,
  text: string,
): Promise<IncidentUpdate> {
  operatorOf(deps.actor)
  const update = makeUpdate(deps, state, text)
  const type = state === 'resolved' ? 'incident.resolved' : 'incident.updated'
  const record = auditRecord(deps, { type, incidentId })
  if (!(await deps.store.addIncidentUpdate(incidentId, update, record))) throw new AccountsError('incident_unknown')
  return update
}

function makeUpdate(deps: IncidentDeps, state: IncidentState, text: string): IncidentUpdate {
  return {
    id: mint(deps, 'upd_'),
    state,
    text: checked(text, maxTextCharacters),
    atMs: Math.floor(deps.clock.nowMs()),
  }
}

function checked(text: string, maxCharacters: number): string {
  const trimmed = text.trim()
  if (trimmed === '' || trimmed.length > maxCharacters) throw new AccountsError('incident_invalid')
  return trimmed
}

function mint({ clock, random }: IncidentDeps, prefix: string): string {
  return idMinter(prefix, () => clock.nowMs(), random)()
}
