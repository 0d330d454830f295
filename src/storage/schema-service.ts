/** How a profile or a backend did on one day. */
export interface UptimeRow {
  day: string
  kind: string
  name: string
  answered: number
  failed: number
}

export interface IncidentRow {
  id: string
  title: string
  impact: string
  created_at_ms: number
  /** Whether its last update says that it is resolved. */
  is_over: number
}

export interface IncidentUpdateRow {
  id: string
  incident_id: string
  state: string
  body: string
  at_ms: number
}

export interface TicketRow {
  id: string
  account_id: string | null
  reply_to: string
  request_id: string | null
  body: string
  created_at_ms: number
  closed_at_ms: number | null
}

/** What an operator said of a backend, by its name in the configuration. */
export interface BackendControlRow {
  backend_id: string
  kind: string
  at_ms: number
  set_by: string
  reason: string | null
}
