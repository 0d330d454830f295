import type { Webhook, WebhookDelivery } from '../../accounts/alerts/alert-ports.ts'
import { deliveryText, eventType } from '../../accounts/alerts/delivery-text.ts'
import {
  addWebhook,
  attemptedDelivery,
  removeWebhook,
  rotateWebhook,
  shownDeliveries,
  testWebhook,
  type WebhookWithSecret,
} from '../../accounts/alerts/webhooks.ts'
import { accountOption, type Command, type Invocation, type Result } from '../command.ts'
import { exitCodes } from '../failures.ts'
import { writeTable } from '../terminal/table.ts'

/** A running service looks for messages every 5 s, and an attempt takes at most 10 s. */
const testWaitMs = 16_000

export const webhooksAdd: Command = {
  name: 'webhooks add',
  summary: 'Add a webhook: a URL that receives the budget alerts for an account. Prints the signing secret, once.',
  arguments: ['URL'],
  options: [accountOption],
  example: 'webhooks add https://hooks.example.com/svc-router',
  run(invocation) {
    const url = invocation.argument(0, 'the URL', 'webhooks add https://hooks.example.com/svc-router')
    return invocation.withStore(async ({ webhooks, account }) => {
      const added = await addWebhook(webhooks(), (await account()).id, url)
      return withSecret(added, [
        `The webhook ${added.webhook.id} gets the alerts for all budgets of the account. The secret is not shown again.`,
        `Next: ${invocation.command(`webhooks test ${added.webhook.id}`)}`,
      ])
    })
  },
}

export const webhooksList: Command = {
  name: 'webhooks list',
  summary: `List the webhooks of an account and the latest ${shownDeliveries} messages to them.`,
  arguments: [],
  options: [accountOption],
  example: 'webhooks list --json',
  run: (invocation) =>
    invocation.withStore(async ({ webhooks, account }) => {
      const { store, clock } = webhooks()
      const { id } = await account()
      const known = await store.listWebhooks(id)
      const deliveries = await store.listWebhookDeliveries(id, undefined, shownDeliveries)
      const nowMs = clock.nowMs()
      const rows = known.map((webhook) => [webhook.id, webhook.url, new Date(webhook.createdAtMs).toISOString()])
      const tables = [
        ...(rows.length === 0 ? [] : [writeTable([['ID', 'URL', 'ADDED'], ...rows])]),
        ...(deliveries.length === 0 ? [] : [writeDeliveries(deliveries, nowMs)]),
      ]
      return {
        text: tables.join('\n\n'),
        json: known.map((webhook) => ({
          ...webhookJson(webhook),
          deliveries: deliveries.filter(({ target }) => target === webhook.id).map((one) => deliveryJson(one, nowMs)),
        })),
        talk:
          known.length === 0
            ? [`No webhooks yet. Next: ${invocation.command('webhooks add https://hooks.example.com/svc-router')}`]
            : [],
      }
    }),
}

export const webhooksTest: Command = {
  name: 'webhooks test',
  summary: 'Send a test message from the running service to a webhook, and show whether it was received.',
  arguments: ['ID'],
  options: [accountOption],
  example: 'webhooks test ID',
  run(invocation) {
    const webhookId = idIn(invocation)
    return invocation.withStore(async ({ webhooks, account }) => {
      const deps = webhooks()
      const { id: accountId } = await account()
      const deliveryId = await testWebhook(deps, accountId, webhookId)
      const { clock } = invocation.ports
      const found = await attemptedDelivery({ ...deps, clock }, { accountId, webhookId }, deliveryId, testWaitMs)
      if (found === undefined)
        return {
          text: 'waiting',
          json: { id: deliveryId, webhook: webhookId, state: 'waiting' },
          talk: [
            'Nothing has sent the test yet. A running service sends it.',
            `See it later: ${invocation.command('webhooks list')}`,
          ],
          exitCode: exitCodes.failure,
        }
      const { word, why } = deliveryText(found, clock.nowMs())
      return {
        text: word,
        json: deliveryJson(found, clock.nowMs()),
        talk: why === undefined ? [] : [`The test was not received: ${why}.`],
        ...(word !== 'received' && { exitCode: exitCodes.failure }),
      }
    })
  },
}

export const webhooksRotate: Command = {
  name: 'webhooks rotate',
  summary: 'Replace the secret of a webhook and print the new one, once. For a day, messages are signed with both.',
  arguments: ['ID'],
  options: [accountOption],
  example: 'webhooks rotate ID',
  run(invocation) {
    const webhookId = idIn(invocation)
    return invocation.withStore(async ({ webhooks, account }) => {
      const rotated = await rotateWebhook(webhooks(), (await account()).id, webhookId)
      const until = new Date(rotated.webhook.previousUntilMs ?? 0).toISOString()
      return withSecret(rotated, [`Until ${until}, messages are signed with the former secret, too.`])
    })
  },
}

export const webhooksRemove: Command = {
  name: 'webhooks remove',
  summary: 'Remove a webhook from an account, and delete the messages that are waiting for it.',
  arguments: ['ID'],
  options: [accountOption],
  example: 'webhooks remove ID',
  run(invocation) {
    const webhookId = idIn(invocation)
    return invocation.withStore(async ({ webhooks, account }) => {
      const { id, accountId, url } = await removeWebhook(webhooks(), (await account()).id, webhookId)
      return { text: id, json: { id, account: accountId, removed: true }, talk: [`The webhook ${url} is removed.`] }
    })
  },
}

function idIn(invocation: Invocation): string {
  return invocation.argument(0, 'the ID of the webhook', 'webhooks list')
}

function withSecret({ webhook, secret }: WebhookWithSecret, talk: readonly string[]): Result {
  return { text: secret.reveal(), json: { ...webhookJson(webhook), secret: secret.reveal() }, talk }
}

function writeDeliveries(deliveries: readonly WebhookDelivery[], nowMs: number): string {
  return writeTable([
    ['MESSAGE AT', 'WEBHOOK', 'EVENT', 'RESULT', 'ATTEMPTS'],
    ...deliveries.map((delivery) => {
      const { word, why } = deliveryText(delivery, nowMs)
      const result = why === undefined ? word : `${word}: ${why}`
      const at = new Date(delivery.atMs).toISOString()
      return [at, delivery.target, eventType(delivery), result, String(delivery.attempts)]
    }),
  ])
}

function webhookJson({ id, accountId, url, createdAtMs, previousUntilMs }: Webhook) {
  return { id, account: accountId, url, created_at_ms: createdAtMs, former_secret_until_ms: previousUntilMs }
}

function deliveryJson(delivery: WebhookDelivery, nowMs: number) {
  const { id, eventId, target, attempts, result, atMs, attemptedAtMs, dueAtMs } = delivery
  return {
    id,
    event: eventId,
    type: eventType(delivery),
    webhook: target,
    state: deliveryText(delivery, nowMs).word,
    attempts,
    result,
    created_at_ms: atMs,
    attempted_at_ms: attemptedAtMs,
    next_attempt_at_ms: dueAtMs,
  }
}
