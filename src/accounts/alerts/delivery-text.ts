import { maxDeliveryAgeMs } from '../../domain/alerts.ts'
import type { WebhookDelivery } from './alert-ports.ts'

const reasons: Readonly<Record<string, string>> = {
  unreachable: 'no connection, or the address is not public',
  timeout: 'no complete answer within 10 seconds',
  reset: 'the connection broke',
  broken: 'the answer was not HTTP, or too long',
  not_sent: 'this service could not send it',
  suspended: 'the account was suspended',
  removed: 'the webhook was removed',
  secret_unreadable: 'the secret cannot be decrypted; rotate it',
}

/** What became of a message: for tables. */
export interface DeliveryText {
  readonly word: 'received' | 'waiting' | 'failed'
  /** Why it was not received; undefined if it was, or if nobody has tried. */
  readonly why: string | undefined
}

/** What became of a message. A redirect or an error is named by its status. */
export function deliveryText({ state, result, atMs }: WebhookDelivery, nowMs: number): DeliveryText {
  if (state === 'delivered') return { word: 'received', why: undefined }
  const isOver = state === 'failed' || nowMs - atMs > maxDeliveryAgeMs
  const why = result === null ? undefined : (reasons[result] ?? `status ${result}`)
  return { word: isOver ? 'failed' : 'waiting', why }
}

/** The type of an event from its body, such as `budget.alert`. */
export function eventType({ body }: Pick<WebhookDelivery, 'body'>): string {
  return String((JSON.parse(body) as { type: unknown }).type)
}
