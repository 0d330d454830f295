/** An alert that was sent. `window_ms` names the window: see `alertWindowMs`. */
export interface BudgetAlertRow {
  budget_id: string
  window_ms: number
  threshold: number
  account_id: string
  at_ms: number
}

/** One message about an alert to one receiver. */
export interface AlertDeliveryRow {
  id: string
  /** The same for all receivers and all attempts. */
  event_id: string
  account_id: string
  /** `AlertChannel` */
  channel: string
  /** An email address, the ID of a webhook, or nothing for the operator. */
  target: string
  body: string
  /** `DeliveryState` */
  state: string
  /** Including one that is under way. */
  attempts: number
  /** Of the last attempt that ended. */
  result: string | null
  created_at_ms: number
  attempted_at_ms: number | null
  /** When to make the next attempt; during an attempt, when another process may repeat it. */
  due_at_ms: number | null
}

/** A webhook of an account. */
export interface WebhookRow {
  id: string
  account_id: string
  url: string
  sealed_secret: string
  sealed_previous: string | null
  previous_until_ms: number | null
  created_at_ms: number
}
