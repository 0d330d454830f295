import type { AuditRecord } from '../domain/audit.ts'
import type { Incident, IncidentUpdate } from '../domain/incidents.ts'
import type { UptimeCount } from '../domain/uptime.ts'

/** What is kept for the status page. Nothing of it concerns callers of the API, so nothing moves the revision; what operators write is appended to the audit log with it. */
export interface StatusStore {
  /** Adds these to what is counted for their days, in one transaction, and forgets days before `forgetBefore`. */
  addUptime(counts: readonly UptimeCount[], forgetBefore: string): Promise<void>
  /** From a day on. */
  listUptime(fromDay: string): Promise<readonly UptimeCount[]>
  addIncident(incident: Incident, record: AuditRecord): Promise<void>
  /** Adds to an incident; false where there is none of that id. */
  addIncidentUpdate(incidentId: string, update: IncidentUpdate, record: AuditRecord): Promise<boolean>
  /** Newest first, at most `limit`, those made since `sinceMs` and those that are not resolved. */
  listIncidents(sinceMs: number, limit: number): Promise<readonly Incident[]>
}
