import { stateOf, type Incident } from '../../domain/incidents.ts'
import {
  indicatorWords,
  shareOver,
  type ComponentState,
  type ServiceStatus,
  type StatusComponent,
} from '../../domain/service-status.ts'

/** The status page as JSON. */
export function statusJson({ atMs, indicator, components, incidents }: ServiceStatus): object {
  return {
    object: 'status',
    at: new Date(atMs).toISOString(),
    status: { indicator, description: indicatorWords[indicator] },
    components: components.map(({ kind, name, state, note, days }) => ({
      kind,
      name,
      state,
      ...(note !== undefined && { note }),
      ...(days.length > 0 && {
        answered: shareOver(days) ?? null,
        days: days.flatMap(({ day, share }) => (share === undefined ? [] : [{ day, answered: share }])),
      }),
    })),
    incidents: incidents.map((incident) => ({ ...incidentJson(incident), state: stateOf(incident) })),
  }
}

const statuses: Readonly<Record<ComponentState, string>> = {
  operational: 'operational',
  degraded: 'degraded_performance',
  down: 'major_outage',
  maintenance: 'under_maintenance',
}

/** The same in the format of hosted status pages. */
export function summaryJson({ atMs, indicator, components, incidents }: ServiceStatus, appUrl: string): object {
  const at = new Date(atMs).toISOString()
  const pageId = 'svc-router'
  return {
    page: { id: pageId, name: 'svc-router', url: `${appUrl}/status`, time_zone: 'Etc/UTC', updated_at: at },
    components: components.map((part, index) => ({
      id: idOf(part),
      name: part.name,
      status: statuses[part.state],
      created_at: null,
      updated_at: at,
      position: index + 1,
      description: part.note ?? null,
      showcase: false,
      start_date: null,
      group_id: null,
      page_id: pageId,
      group: false,
      only_show_if_degraded: false,
    })),
    incidents: incidents
      .filter((incident) => stateOf(incident) !== 'resolved')
      .map((incident) => ({
        ...incidentJson(incident),
        status: stateOf(incident),
        page_id: pageId,
        shortlink: `${appUrl}/status`,
        components: [],
      })),
    scheduled_maintenances: [],
    status: { indicator, description: indicatorWords[indicator] },
  }
}

function idOf({ kind, name }: StatusComponent): string {
  return `${kind}-${name.replaceAll(/[^\w-]/g, '-')}`
}

function incidentJson(incident: Incident): object {
  const { id, title, impact, createdAtMs, updates } = incident
  const resolvedAtMs = stateOf(incident) === 'resolved' ? updates[0]?.atMs : undefined
  return {
    id,
    name: title,
    impact,
    created_at: new Date(createdAtMs).toISOString(),
    updated_at: new Date(updates[0]?.atMs ?? createdAtMs).toISOString(),
    resolved_at: resolvedAtMs === undefined ? null : new Date(resolvedAtMs).toISOString(),
    incident_updates: updates.map(({ id: updateId, state, text, atMs }) => ({
      id: updateId,
      incident_id: id,
      status: state,
      body: text,
      created_at: new Date(atMs).toISOString(),
      display_at: new Date(atMs).toISOString(),
    })),
  }
}
