import { isTestId, signatureLine } from '../accounts/alerts/alert-message.ts'
import type { Webhook } from '../accounts/alerts/alert-ports.ts'
import { AlertNotSent, AlertSender, type AlertTransport } from '../accounts/alerts/alert-sender.ts'
import { BudgetAlerts } from '../accounts/alerts/budget-alerts.ts'
import { signingSecrets } from '../accounts/alerts/webhooks.ts'
import type { Mail, SendMail } from '../accounts/ports.ts'
import type { Config } from '../config/config.ts'
import { MailError } from '../domain/mail-error.ts'
import { UpstreamError } from '../domain/upstream.ts'
import { postJson } from '../providers/http/one-call.ts'
import { resolverLookup } from '../providers/http/resolver-lookup.ts'
import { createUpstreamPools, type UpstreamPools } from '../providers/http/upstream-pools.ts'
import { describeBug, errorName } from '../runtime/describe-bug.ts'
import { createSealer, SealError, type Sealer } from '../runtime/sealer.ts'
import type { Secret } from '../runtime/secret.ts'
import { readVersion } from '../runtime/version.ts'
import type { Providers } from './providers.ts'
import type { Runtime } from './runtime.ts'
import type { Storage } from './storage.ts'

/** Messages that one process sends at once, each of another account (contract 46.18). */
const emailsAtOnce = 4
const webhooksAtOnce = 32
const operatorsAtOnce = 8
/** How long calls may continue when the service stops. Others are repeated later. */
const callsCloseMs = 1_000

interface StartAlertsDeps {
  readonly storage: Storage
  readonly mail: { readonly sendMail: SendMail | undefined }
  readonly providers: Pick<Providers, 'postJson'>
  readonly onFailed: (error: unknown) => void
}

/** Sends alerts until it is closed. */
export interface Alerts extends AsyncDisposable {
  /** Looks for messages to send now. */
  wake(): void
}

/** Starts to compare budgets with what is spent, and to send alerts. Every process does both. */
export function startAlerts(runtime: Runtime, deps: StartAlertsDeps): Alerts {
  const { clock, random, links, config, log } = runtime
  const { storage, onFailed } = deps
  const { store } = storage
  const { sendMail } = deps.mail
  const { budgetWebhook } = config
  // Their own, so that no webhook takes a connection from a provider. One for each account.
  const pools = createUpstreamPools({
    clock,
    version: readVersion(),
    maxConnections: 1,
    maxTotal: webhooksAtOnce,
    maxPools: webhooksAtOnce,
    ...(config.mode === 'production' && { lookup: resolverLookup() }),
    onBug: (error) => log({ event: 'internal_error', requestId: '', ...describeBug(error) }),
  })
  const transports: AlertTransport[] = [webhookTransport(runtime, store, pools)]
  if (sendMail !== undefined) transports.push(emailTransport(store, sendMail))
  if (budgetWebhook !== undefined) transports.push(operatorTransport(runtime, deps, budgetWebhook))
  const sender = new AlertSender({
    store,
    transports,
    clock,
    nowMs: () => storage.nowMs(),
    random: () => random(1)[0]! / 255,
    onFailed,
  })
  const alerts = new BudgetAlerts({
    store,
    clock,
    nowMs: () => storage.nowMs(),
    quotaNowMs: () => storage.quotaNowMs(),
    random,
    sendsMail: sendMail !== undefined,
    hasWebhook: budgetWebhook !== undefined,
    budgetsUrl: links.budgetsUrl,
    onAdded: () => sender.wake(),
    onFailed,
  })
  alerts.start()
  sender.start()
  return {
    wake: () => sender.wake(),
    async [Symbol.asyncDispose]() {
      await alerts.close()
      await Promise.all([sender.close(), pools.close(callsCloseMs)])
    },
  }
}

function emailTransport(store: Storage['store'], sendMail: SendMail): AlertTransport {
  return {
    channel: 'email',
    slots: emailsAtOnce,
    async send({ accountId, target, eventId, body }) {
      const isKnown = (await store.listEmails(accountId)).some(({ address }) => address === target)
      if (!isKnown) throw new AlertNotSent('removed', { isFinal: true })
      const mail = JSON.parse(body) as Pick<Mail, 'subject' | 'text'>
      try {
        await sendMail({ ...mail, to: target, eventId })
      } catch (error) {
        if (error instanceof MailError) throw new AlertNotSent(error.reason)
        throw error
      }
    },
  }
}

/** Webhooks of accounts (contract 46.16). What applies to the account and its webhook is read for each attempt. */
function webhookTransport(
  { config, keys, random, clock, mintRequestId }: Runtime,
  store: Storage['store'],
  pools: UpstreamPools,
): AlertTransport {
  const sealer = createSealer({ ...keys, random })
  const publicOnly = config.mode === 'production'
  return {
    channel: 'webhook',
    slots: webhooksAtOnce,
    async send({ accountId, target, eventId, body }) {
      const account = await store.findAccount(accountId)
      const webhook = (await store.listWebhooks(accountId)).find(({ id }) => id === target)
      if (account === undefined || webhook === undefined) throw new AlertNotSent('removed', { isFinal: true })
      if (account.suspended) throw new AlertNotSent('suspended', { isFinal: true })
      const nowMs = clock.nowMs()
      const headers = [signatureLine(openSecrets(webhook, sealer, nowMs), body, nowMs)]
      const post = { url: webhook.url, headers, body, account: { id: accountId, publicOnly } }
      // The person who sends a test is waiting for its result, and can send another one.
      await orNotSent(postJson(post, pools, mintRequestId()), { isFinal: isTestId(eventId) })
    },
  }
}

/** The operator's own program, which gets the alerts of all accounts. */
function operatorTransport(
  { clock, log }: Runtime,
  deps: StartAlertsDeps,
  { url, secret }: NonNullable<Config['budgetWebhook']>,
): AlertTransport {
  return {
    channel: 'operator',
    slots: operatorsAtOnce,
    async send({ body }) {
      try {
        await orNotSent(deps.providers.postJson({ url, headers: [signatureLine([secret], body, clock.nowMs())], body }))
      } catch (error) {
        log({
          event: 'budget_webhook_failing',
          reason: error instanceof AlertNotSent ? error.reason : errorName(error),
        })
        throw error
      }
    },
  }
}

/** @throws AlertNotSent with the status of the answer, or why there is none */
async function orNotSent(sent: Promise<void>, options: { readonly isFinal?: boolean } = {}): Promise<void> {
  try {
    await sent
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    throw new AlertNotSent(error.status === undefined ? error.outcome : String(error.status), options)
  }
}

/** @throws AlertNotSent */
function openSecrets(webhook: Webhook, sealer: Sealer, nowMs: number): readonly Secret[] {
  try {
    return signingSecrets(webhook, sealer, nowMs)
  } catch (error) {
    if (error instanceof SealError) throw new AlertNotSent('secret_unreadable', { isFinal: true })
    throw error
  }
}
