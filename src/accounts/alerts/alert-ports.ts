import type { AuditRecord } from '../../domain/audit.ts'
import type { Budget } from '../../domain/budgets.ts'

/** How an alert reaches somebody: an email to an address of the account, a webhook of the account, or the operator's webhook. */
export type AlertChannel = 'email' | 'webhook' | 'operator'

/** `waiting` for its first or another attempt, `delivered`, or `failed` for good. */
type DeliveryState = 'waiting' | 'delivered' | 'failed'

/** One message to one receiver. */
export interface NewDelivery {
  readonly id: string
  /** The same for all receivers and all attempts, so that receivers can drop repeats. */
  readonly eventId: string
  readonly accountId: string
  readonly channel: AlertChannel
  /** The address of an email, or the ID of a webhook; empty for the operator's webhook. */
  readonly target: string
  readonly body: string
  readonly atMs: number
}

/** A message that this process may send until its lease ends. */
export interface ClaimedDelivery extends NewDelivery {
  /** The number of this attempt, from 1. */
  readonly attempt: number
}

/** A message to a webhook of an account, as its pages show it. */
export interface WebhookDelivery extends NewDelivery {
  readonly state: DeliveryState
  readonly attempts: number
  /** Of the last attempt that ended: a status, or why there is none. */
  readonly result: string | null
  readonly attemptedAtMs: number | null
  /** When the next attempt is made, if it is waiting. */
  readonly dueAtMs: number | null
}

/** An alert. `windowMs` names the window of the budget: see `alertWindowMs`. */
interface BudgetAlert {
  readonly budgetId: string
  readonly windowMs: number
  /** In percent of the limit, ascending. The last one is the alert's; the others no longer need one. */
  readonly thresholds: readonly number[]
  readonly accountId: string
  readonly atMs: number
}

/** Which messages a process takes. */
interface DeliveryClaim {
  readonly channel: AlertChannel
  readonly nowMs: number
  /** Until then, no other process makes the same attempt. */
  readonly leaseMs: number
  /** At most this many, each of another account. */
  readonly limit: number
  /** Accounts that get none. */
  readonly except: readonly string[]
}

/** How an attempt ended. */
interface AttemptEnd {
  readonly state: DeliveryState
  /** A status, or why there is none. */
  readonly result: string
  readonly nowMs: number
  /** When to make the next attempt, if it is still waiting. */
  readonly dueAtMs: number | null
}

/** Alerts and the messages about them (contract 46.11, 46.15). */
export interface AlertQueries {
  /** The ids of accounts with budgets, in order, after one of them; only those with webhooks, if that is asked for. */
  listBudgetedAccounts(afterId: string, limit: number, onlyWithWebhooks: boolean): Promise<readonly string[]>
  /**
   * Whether budgets rejected requests that this one counts, at or after a time and before another one, and none was
   * admitted between the last of them and that.
   */
  hasBudgetRefusals(budget: Budget, sinceMs: number, beforeMs?: number): Promise<boolean>
  /** Whether somebody was told. */
  hasBudgetAlert(budgetId: string, windowMs: number, threshold: number): Promise<boolean>
  /**
   * Adds an alert together with its messages, in one transaction. False, with nothing written, if the alert exists or the account
   * does not: of several nodes, exactly one gets true.
   */
  addBudgetAlert(alert: BudgetAlert, deliveries: readonly NewDelivery[]): Promise<boolean>
  /** Takes messages that are due, the one that has waited longest first. */
  claimDeliveries(claim: DeliveryClaim): Promise<readonly ClaimedDelivery[]>
  /** Does nothing if another process has taken the message since. */
  endAttempt(delivery: Pick<ClaimedDelivery, 'id' | 'attempt'>, end: AttemptEnd): Promise<void>
  /** Deletes at most `limit` of the oldest alerts, and of their messages, from before a time; returns the larger number. */
  deleteAlertsBefore(timeMs: number, limit: number): Promise<number>
}

/** A webhook of an account. */
export interface Webhook {
  readonly id: string
  readonly accountId: string
  readonly url: string
  readonly sealedSecret: string
  /** The secret before the last rotation, which also signs until `previousUntilMs`. */
  readonly sealedPrevious: string | null
  readonly previousUntilMs: number | null
  readonly createdAtMs: number
}

/** Webhooks of accounts (contract 46.16). Changes follow the rules of `AccountStore`. */
export interface WebhookQueries {
  /** In the order in which they were added. */
  listWebhooks(accountId: string): Promise<readonly Webhook[]>
  /** False if the account is unknown or has `maxWebhooks`. */
  addWebhook(webhook: Webhook, maxWebhooks: number, record: AuditRecord): Promise<boolean>
  /** Replaces the secrets. False if the account has no webhook with that id. */
  rotateWebhook(webhook: Webhook, record: AuditRecord): Promise<boolean>
  /** Also deletes its messages. False if the account has no webhook with that id. */
  removeWebhook(accountId: string, webhookId: string, record: AuditRecord): Promise<boolean>
  /** Adds a message to a webhook. False if it does not exist, or too many messages of the account are waiting. */
  addWebhookDelivery(delivery: NewDelivery): Promise<boolean>
  /** The latest first; of all webhooks of the account, or of one. */
  listWebhookDeliveries(
    accountId: string,
    webhookId: string | undefined,
    limit: number,
  ): Promise<readonly WebhookDelivery[]>
}
