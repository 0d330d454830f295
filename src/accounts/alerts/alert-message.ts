import type { WebhookEventType } from '../../domain/alerts.ts'
import { budgetName, writeBudgetAmount } from '../../domain/budget-text.ts'
import { writeReset } from '../../domain/reset-text.ts'
import { hexMac } from '../../runtime/mac.ts'
import type { Secret } from '../../runtime/secret.ts'
import { type BudgetState, plainBudget } from '../budgets.ts'
import type { Mail } from '../ports.ts'

/** Budget `state` passed `threshold` percent in the window `windowMs` (see `alertWindowMs`). */
export interface PassedThreshold {
  readonly state: BudgetState
  readonly threshold: number
  readonly windowMs: number
  /** When that window ended, if it has ended; epoch milliseconds. */
  readonly endedMs?: number | undefined
}

/** The ID of an alert, the same for all its receivers and attempts. */
export function alertId({ state, threshold, windowMs }: PassedThreshold): string {
  return `${state.budget.id}-${windowMs}-${threshold}`
}

/** The body of a webhook about an alert (contract 46.14). */
export function writeAlertEvent(passed: PassedThreshold, budgetsUrl: string, nowMs: number): string {
  return JSON.stringify({
    object: 'event',
    id: alertId(passed),
    type: 'budget.alert' satisfies WebhookEventType,
    created_at: new Date(nowMs).toISOString(),
    threshold_percent: passed.threshold,
    budget: plainBudget(passed.state),
    url: budgetsUrl,
  })
}

/** How the IDs of tests begin (contract 46.17). Those of alerts begin with the ID of the budget. */
export const testIdPrefix = 'evt_'

export function isTestId(eventId: string): boolean {
  return eventId.startsWith(testIdPrefix)
}

/** The body of a test of a webhook (contract 46.17). */
export function writeTestEvent(id: string, accountId: string, webhooksUrl: string, nowMs: number): string {
  const created_at = new Date(nowMs).toISOString()
  const type: WebhookEventType = 'webhook.test'
  return JSON.stringify({ object: 'event', id, type, created_at, account: accountId, url: webhooksUrl })
}

/**
 * The header line that signs one attempt with each secret: it covers the time, so that a recorded message cannot be sent again much
 * later.
 */
export function signatureLine(secrets: readonly Secret[], body: string, nowMs: number): string {
  const seconds = Math.floor(nowMs / 1000)
  const macs = secrets.map((secret) => `v1=${hexMac(secret, `${seconds}.${body}`)}`)
  return `x-svc-router-signature: ${[`t=${seconds}`, ...macs].join(',')}`
}

/** An email about an alert. */
export function writeAlertMail(
  { state, threshold, endedMs }: PassedThreshold,
  budgetsUrl: string,
): Pick<Mail, 'subject' | 'text'> {
  const { budget, spent, left, resetsAtMs } = state
  const write = (amount: number): string => writeBudgetAmount(budget.unit, amount)
  const name = budgetName(budget)
  const isUsedUp = threshold === 100
  const verb = endedMs === undefined ? 'is' : 'was'
  const now = [
    `Left: ${write(left)}`,
    `More becomes available on ${writeReset(resetsAtMs)}.`,
    '',
    isUsedUp
      ? 'Until then, requests that it cannot pay for are rejected.'
      : 'As the budget runs out, answers may get a lower output limit. Requests that it cannot pay for are rejected.',
  ]
  return {
    subject: isUsedUp ? `A budget ${verb} used up` : `${threshold}% of a budget ${verb} spent`,
    text: [
      isUsedUp ? `${name} ${verb} used up.` : `${threshold}% of a budget ${verb} spent: ${name}.`,
      '',
      `Spent: ${write(spent)} of ${write(budget.limit)}`,
      ...(endedMs === undefined ? now : [`It was reset on ${writeReset(endedMs)}.`, '']),
      'See and change budgets:',
      budgetsUrl,
      '',
    ].join('\n'),
  }
}
