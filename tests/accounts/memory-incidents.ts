import type { StatusStore } from '../../src/accounts/status/status-ports.ts'
import type { AuditRecord } from '../../src/domain/audit.ts'
import { stateOf, type Incident, type IncidentUpdate } from '../../src/domain/incidents.ts'
import { addUp, type UptimeCount } from '../../src/domain/uptime.ts'

/** A StatusStore in memory. */
export class MemoryIncidents implements StatusStore {
  incidents: Incident[] = []
  /** The audit records that were appended with them. */
  readonly records: AuditRecord[] = []
  uptime: readonly UptimeCount[] = []
  /** Thrown by the next write of counts. */
  failure: Error | undefined

  addUptime(counts: readonly UptimeCount[], forgetBefore: string): Promise<void> {
    const { failure } = this
    this.failure = undefined
    if (failure !== undefined) return Promise.reject(failure)
    this.uptime = addUp([...this.uptime, ...counts]).filter(({ day }) => day >= forgetBefore)
    return Promise.resolve()
  }

  listUptime(fromDay: string): Promise<readonly UptimeCount[]> {
    return Promise.resolve(this.uptime.filter(({ day }) => day >= fromDay))
  }

  addIncident(incident: Incident, record: AuditRecord): Promise<void> {
    this.records.push(record)
    this.incidents = [incident, ...this.incidents]
    return Promise.resolve()
  }

  addIncidentUpdate(incidentId: string, update: IncidentUpdate, record: AuditRecord): Promise<boolean> {
    const found = this.incidents.find(({ id }) => id === incidentId)
    if (found === undefined) return Promise.resolve(false)
    this.records.push(record)
    const changed = { ...found, updates: [update, ...found.updates] }
    this.incidents = this.incidents.map((incident) => (incident.id === incidentId ? changed : incident))
    return Promise.resolve(true)
  }

  listIncidents(sinceMs: number, limit: number): Promise<readonly Incident[]> {
    const shown = this.incidents.filter((each) => each.createdAtMs >= sinceMs || stateOf(each) !== 'resolved')
    return Promise.resolve(shown.slice(0, limit))
  }
}
