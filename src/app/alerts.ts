import { signatureLine } from '../accounts/alerts/alert-message.ts'
import { AlertNotSent, AlertSender, type AlertLane } from '../accounts/alerts/alert-sender.ts'
import { BudgetAlerts } from '../accounts/alerts/budget-alerts.ts'
import type { Mail, SendMail } from '../accounts/ports.ts'
import type { Config } from '../config/config.ts'
import { MailError } from '../domain/mail-error.ts'
import { UpstreamError } from '../domain/upstream.ts'
import { errorName } from '../runtime/describe-bug.ts'
import type { Providers } from './providers.ts'
import type { Runtime } from './runtime.ts'
import type { Storage } from './storage.ts'

/** Messages that one process sends at once, each of another account. */
const emailsAtOnce = 4
const webhooksAtOnce = 8

interface StartAlertsDeps {
  readonly storage: Storage
  readonly sendMail: SendMail | undefined
  readonly postJson: Providers['postJson']
  readonly onFailed: (error: unknown) => void
}

/** Starts to compare budgets with what is spent, and to send alerts. Every process does both. */
export function startAlerts(runtime: Runtime, deps: StartAlertsDeps): AsyncDisposable {
  const { clock, random, links, config } = runtime
  const { storage, sendMail, onFailed } = deps
  const { store } = storage
  const { budgetWebhook } = config
  const lanes: AlertLane[] = []
  if (sendMail !== undefined) lanes.push(emailLane(store, sendMail))
  if (budgetWebhook !== undefined) lanes.push(operatorLane(runtime, deps, budgetWebhook))
  const sender = new AlertSender({
    store,
    lanes,
    clock,
    nowMs: () => storage.nowMs(),
    random: () => random(1)[0]! / 255,
    onFailed,
  })
  const alerts = new BudgetAlerts({
    store,
    clock,
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
    async [Symbol.asyncDispose]() {
      await alerts.close()
      await sender.close()
    },
  }
}

function emailLane(store: Storage['store'], sendMail: SendMail): AlertLane {
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

/** The operator's own program, which gets the alerts of all accounts. */
function operatorLane(
  { clock, log }: Runtime,
  { postJson }: StartAlertsDeps,
  { url, secret }: NonNullable<Config['budgetWebhook']>,
): AlertLane {
  return {
    channel: 'operator',
    slots: webhooksAtOnce,
    async send({ body }) {
      try {
        await postJson({ url, headers: [signatureLine(secret, body, clock.nowMs())], body })
      } catch (error) {
        const reason = reasonOf(error)
        log({ event: 'budget_webhook_failing', reason })
        throw new AlertNotSent(reason)
      }
    },
  }
}

/** The status of the answer, or why there is none. */
function reasonOf(error: unknown): string {
  if (!(error instanceof UpstreamError)) return errorName(error)
  return error.status === undefined ? error.outcome : String(error.status)
}
