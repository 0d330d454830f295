/** The results of a profile or backend on one day. */
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
  /** Whether its last update resolved it. */
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

/** An operator's decision about a backend, by its configured name. */
export interface BackendControlRow {
  backend_id: string
  kind: string
  at_ms: number
  set_by: string
  reason: string | null
}

/** A plan, backend, or profile that operators declared, in the form of the configuration file. */
export interface SettingRow {
  kind: string
  name: string
  /** JSON. */
  value: string
  /** Whether a file declared it. */
  managed: number
}

/** An account that a file declares or, with the name of a key, one of its keys. */
export interface DeclaredRow {
  account_id: string
  /** Empty for the account itself. */
  key_name: string
}
