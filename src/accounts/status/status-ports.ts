import type { AuditRecord } from '../../domain/audit.ts'
import type { Incident, IncidentUpdate } from '../../domain/incidents.ts'
import type { UptimeCount } from '../../domain/uptime.ts'

/**
 * Stored data of the status page. None of it concerns API callers, so nothing increments the revision; operators'
 * writes also append to the audit log.
 */
export type StatusStore = UptimeQueries & IncidentQueries

export interface UptimeQueries {
  /** Adds these counts to their days in one transaction, and deletes days before `forgetBefore`. */
  addUptime(counts: readonly UptimeCount[], forgetBefore: string): Promise<void>
  /** Counts from that day on. */
  listUptime(fromDay: string): Promise<readonly UptimeCount[]>
}

export interface IncidentQueries {
  addIncident(incident: Incident, record: AuditRecord): Promise<void>
  /** Adds an update to an incident; false if the incident is unknown. */
  addIncidentUpdate(incidentId: string, update: IncidentUpdate, record: AuditRecord): Promise<boolean>
  /** Newest first, at most `limit`: incidents created since `sinceMs` and unresolved ones. */
  listIncidents(sinceMs: number, limit: number): Promise<readonly Incident[]>
}
