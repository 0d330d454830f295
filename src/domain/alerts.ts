import { hourMs } from '../runtime/durations.ts'

/** A message about an alert that could not be sent for this long is given up: nobody needs it any more (contract 46.15). */
export const maxDeliveryAgeMs = 24 * hourMs

/** What a webhook can be about; the payloads are in `accounts/alerts/alert-message.ts` (contract 46.14, 46.17). */
export const webhookEventTypes = ['budget.alert', 'webhook.test'] as const
export type WebhookEventType = (typeof webhookEventTypes)[number]
