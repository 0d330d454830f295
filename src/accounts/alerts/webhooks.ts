import { webhookBinding } from '../../domain/seal-bindings.ts'
import type { Clock } from '../../runtime/clock.ts'
import { dayMs } from '../../runtime/durations.ts'
import { idMinter, randomBase62 } from '../../runtime/ids.ts'
import { pause } from '../../runtime/pause.ts'
import { SealError, type Sealer } from '../../runtime/sealer.ts'
import { Secret } from '../../runtime/secret.ts'
import { AccountsError } from '../accounts-error.ts'
import { auditRecord, type AccountsDeps } from '../control-plane.ts'
import { testIdPrefix, writeTestEvent } from './alert-message.ts'
import type { Webhook, WebhookDelivery, WebhookQueries } from './alert-ports.ts'

/** Webhooks that an account can have (contract 46.16). */
export const maxWebhooksPerAccount = 4
/** How long the former secret also signs after a rotation. */
const secretOverlapMs = dayMs
/** Deliveries that pages and commands show. */
export const shownDeliveries = 20

const maxUrlCharacters = 1_000
const secretPrefix = 'whs_'
const secretCharacters = 40
/** How often the result of a test is looked for. */
const lookEveryMs = 250

export interface WebhookDeps extends AccountsDeps<WebhookQueries> {
  readonly sealer: Sealer
  /** Whether URLs must begin with https. */
  readonly requiresHttps: boolean
  /** The page that an event links to. */
  readonly webhooksUrl: string
}

/** A webhook with a new secret, which is shown once. */
export interface WebhookWithSecret {
  readonly webhook: Webhook
  readonly secret: Secret
}

/** Adds a webhook, which gets the alerts of all the account's budgets from now on. @throws AccountsError `webhook_url_invalid`, `webhook_limit` */
export async function addWebhook(deps: WebhookDeps, accountId: string, url: string): Promise<WebhookWithSecret> {
  const nowMs = Math.floor(deps.clock.nowMs())
  const id = idMinter('whk_', () => nowMs, deps.random)()
  const secret = newSecret(deps)
  const webhook: Webhook = {
    id,
    accountId,
    url: checkUrl(url, deps.requiresHttps),
    sealedSecret: deps.sealer.seal(webhookBinding(accountId, id), secret.reveal()),
    sealedPrevious: null,
    previousUntilMs: null,
    createdAtMs: nowMs,
  }
  const record = auditRecord(deps, { type: 'webhook.added', accountId, webhookId: id })
  if (!(await deps.store.addWebhook(webhook, maxWebhooksPerAccount, record))) throw new AccountsError('webhook_limit')
  return { webhook, secret }
}

/** Gives a webhook a new secret; the former one also signs for a day. @throws AccountsError `webhook_unknown` */
export async function rotateWebhook(deps: WebhookDeps, accountId: string, id: string): Promise<WebhookWithSecret> {
  const known = await findWebhook(deps, accountId, id)
  const secret = newSecret(deps)
  const webhook: Webhook = {
    ...known,
    sealedSecret: deps.sealer.seal(webhookBinding(accountId, id), secret.reveal()),
    sealedPrevious: known.sealedSecret,
    previousUntilMs: Math.floor(deps.clock.nowMs()) + secretOverlapMs,
  }
  const record = auditRecord(deps, { type: 'webhook.secret_rotated', accountId, webhookId: id })
  if (!(await deps.store.rotateWebhook(webhook, record))) throw new AccountsError('webhook_unknown')
  return { webhook, secret }
}

/** Removes a webhook and its messages. @throws AccountsError `webhook_unknown` */
export async function removeWebhook(deps: WebhookDeps, accountId: string, id: string): Promise<Webhook> {
  const webhook = await findWebhook(deps, accountId, id)
  const record = auditRecord(deps, { type: 'webhook.removed', accountId, webhookId: id })
  if (!(await deps.store.removeWebhook(accountId, id, record))) throw new AccountsError('webhook_unknown')
  return webhook
}

/**
 * Adds a test message, which the next free process sends. Returns its ID. @throws AccountsError `webhook_unknown`, `webhook_busy` if too many
 * messages of the account are waiting
 */
export async function testWebhook(deps: WebhookDeps, accountId: string, webhookId: string): Promise<string> {
  await findWebhook(deps, accountId, webhookId)
  const nowMs = deps.clock.nowMs()
  const mint = (prefix: string): string => idMinter(prefix, () => nowMs, deps.random)()
  const [id, eventId] = [mint('adl_'), mint(testIdPrefix)]
  const body = writeTestEvent(eventId, accountId, deps.webhooksUrl, nowMs)
  const delivery = { id, eventId, accountId, channel: 'webhook', target: webhookId, body, atMs: nowMs } as const
  if (!(await deps.store.addWebhookDelivery(delivery))) throw new AccountsError('webhook_busy')
  return id
}

/** Waits until a message was attempted; undefined if that takes longer than `limitMs`. */
export async function attemptedDelivery(
  { store, clock }: { readonly store: WebhookQueries; readonly clock: Clock },
  { accountId, webhookId }: { readonly accountId: string; readonly webhookId: string },
  id: string,
  limitMs: number,
): Promise<WebhookDelivery | undefined> {
  const endMs = clock.monotonicMs() + limitMs
  for (;;) {
    const deliveries = await store.listWebhookDeliveries(accountId, webhookId, shownDeliveries)
    const found = deliveries.find((delivery) => delivery.id === id)
    if (found !== undefined && found.result !== null) return found
    if (clock.monotonicMs() >= endMs) return undefined
    await pause(clock, lookEveryMs)
  }
}

/** The secrets that sign a message now: the current one, and for a day after a rotation the former one. @throws SealError */
export function signingSecrets(webhook: Webhook, sealer: Sealer, nowMs: number): readonly Secret[] {
  const { accountId, id, sealedSecret, sealedPrevious, previousUntilMs } = webhook
  const open = (sealed: string): Secret => new Secret(sealer.open(webhookBinding(accountId, id), sealed))
  const current = open(sealedSecret)
  if (sealedPrevious === null || previousUntilMs === null || nowMs >= previousUntilMs) return [current]
  try {
    return [current, open(sealedPrevious)]
  } catch (error) {
    // It was rotated because its sealing key is gone.
    if (error instanceof SealError) return [current]
    throw error
  }
}

async function findWebhook({ store }: Pick<WebhookDeps, 'store'>, accountId: string, id: string): Promise<Webhook> {
  const webhook = (await store.listWebhooks(accountId)).find((known) => known.id === id)
  if (webhook === undefined) throw new AccountsError('webhook_unknown')
  return webhook
}

function newSecret({ random }: Pick<WebhookDeps, 'random'>): Secret {
  return new Secret(secretPrefix + randomBase62(secretCharacters, random))
}

/** @throws AccountsError `webhook_url_invalid` */
function checkUrl(text: string, requiresHttps: boolean): string {
  const trimmed = text.trim()
  if (trimmed.length > maxUrlCharacters || !URL.canParse(trimmed)) throw new AccountsError('webhook_url_invalid')
  const url = new URL(trimmed)
  const isPlain = url.protocol === 'http:' && !requiresHttps
  if ((url.protocol !== 'https:' && !isPlain) || url.username !== '' || url.password !== '' || url.hash !== '')
    throw new AccountsError('webhook_url_invalid')
  return url.href
}
