import { html } from 'hono/html'
import type { WebhookDelivery } from '../../accounts/alerts/alert-ports.ts'
import { type DeliveryText, deliveryText, eventType } from '../../accounts/alerts/delivery-text.ts'
import type { Html } from './html.ts'
import { writeCount, writeMinute } from './time.ts'

const tones: Readonly<Record<DeliveryText['word'], string>> = { received: 'good', waiting: 'warn', failed: 'bad' }

/** The latest messages to one webhook, and what became of each. */
export function webhookDeliveries(deliveries: readonly WebhookDelivery[], nowMs: number): Html {
  if (deliveries.length === 0)
    return html`<p class="empty">No messages yet. Send a test to see whether your program receives it.</p>`
  return html`<h3>Latest messages</h3>
    <ul class="rows">
      ${deliveries.map((delivery) => row(delivery, nowMs))}
    </ul>`
}

function row(delivery: WebhookDelivery, nowMs: number): Html {
  const { word, why } = deliveryText(delivery, nowMs)
  const { atMs, attempts, result, dueAtMs } = delivery
  const next = word === 'waiting' && result !== null && dueAtMs !== null
  return html`<li>
    <div>
      <span class="tag ${tones[word]}">${word}</span> ${why ?? ''}<br />
      <span class="faint"
        >${writeMinute(atMs)} · <code>${eventType(delivery)}</code> ·
        ${writeCount(attempts, 'attempt')}${next ? html` · next attempt ${writeMinute(dueAtMs)}` : ''}</span
      >
    </div>
  </li>`
}
