import { budgetName, writeBudgetAmount } from '../domain/budget-text.ts'
import { alertWindowMs } from '../domain/budget-windows.ts'
import { writeReset } from '../domain/reset-text.ts'
import type { Clock, Timer } from '../runtime/clock.ts'
import type { BudgetWebhook, PassedThreshold } from './budget-webhook.ts'
import { type BudgetState, budgetStates } from './budgets.ts'
import type { BudgetAlertQueries, BudgetQueries, EmailQueries, Mail, SendMail } from './ports.ts'

/** Shares of a budget, in percent, at which its account is told (contract 46.11). */
const thresholds = [50, 80, 100] as const
/** From this share on, a budget that refuses requests counts as used up: what is left pays for none. */
const refusingFrom = 80
/** How often budgets are compared with what is spent. */
const checkEveryMs = 30_000
/** Accounts that are read at once. */
const accountsAtOnce = 200

export interface BudgetAlertDeps {
  readonly store: Pick<BudgetQueries, 'listBudgets' | 'readBudgetSpending'> &
    BudgetAlertQueries &
    Pick<EmailQueries, 'listEmails'>
  readonly clock: Clock
  /** Undefined if this service sends no email. */
  readonly sendMail: SendMail | undefined
  /** Undefined if none is configured. */
  readonly webhook: Pick<BudgetWebhook, 'send' | 'close'> | undefined
  readonly budgetsUrl: string
  readonly onFailed: (error: unknown) => void
}

/**
 * Tells accounts by email, and the operator's program by webhook, when 50, 80, and 100 % of a budget are spent, once for each budget, window, and threshold, whichever
 * node notices it first.
 */
export class BudgetAlerts {
  readonly #deps: BudgetAlertDeps
  #timer: Timer | undefined
  #running: Promise<void> | undefined
  #isClosed = false

  constructor(deps: BudgetAlertDeps) {
    this.#deps = deps
  }

  start(): void {
    if (this.#deps.sendMail !== undefined || this.#deps.webhook !== undefined) this.#schedule()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    await this.#running
    await this.#deps.webhook?.close()
  }

  #schedule(): void {
    if (this.#isClosed) return
    this.#timer = this.#deps.clock.after(checkEveryMs, () => {
      this.#running = this.check()
        .catch((error: unknown) => this.#deps.onFailed(error))
        .finally(() => this.#schedule())
    })
  }

  /** Compares all budgets with what is spent. @throws the store's error */
  async check(): Promise<void> {
    let afterId = ''
    for (;;) {
      const accounts = await this.#deps.store.listBudgetedAccounts(afterId, accountsAtOnce)
      for (const accountId of accounts) await this.#checkAccount(accountId)
      if (accounts.length < accountsAtOnce || this.#isClosed) return
      afterId = accounts.at(-1)!
    }
  }

  async #checkAccount(accountId: string): Promise<void> {
    const nowMs = this.#deps.clock.nowMs()
    for (const state of await budgetStates(this.#deps.store, accountId, nowMs)) await this.#checkBudget(state, nowMs)
  }

  async #checkBudget(state: BudgetState, nowMs: number): Promise<void> {
    const { store } = this.#deps
    const { budget, spent } = state
    const percent = (spent / budget.limit) * 100
    const windowMs = alertWindowMs(budget, nowMs)
    const refuses =
      percent >= refusingFrom && percent < 100 && (await store.hasBudgetRefusals(budget.accountId, windowMs))
    let reached: number | undefined
    for (const threshold of thresholds) {
      if (percent < threshold && !(threshold === 100 && refuses)) continue
      const { id: budgetId, accountId } = budget
      if (await store.addBudgetAlert({ budgetId, windowMs, threshold, accountId, atMs: Math.floor(nowMs) }))
        reached = threshold
    }
    // One alert says the most, if several thresholds were passed since the last check.
    if (reached !== undefined) await this.#tell({ state, threshold: reached, windowMs })
  }

  async #tell(passed: PassedThreshold): Promise<void> {
    const { store, sendMail, webhook, budgetsUrl, onFailed } = this.#deps
    const { state, threshold } = passed
    webhook?.send(passed)
    if (sendMail === undefined) return
    for (const { address } of await store.listEmails(state.budget.accountId)) {
      try {
        await sendMail(writeAlertMail(address, state, threshold, budgetsUrl))
      } catch (error) {
        // The mail server's own attempts are over; the pages show the same.
        onFailed(error)
      }
    }
  }
}

function writeAlertMail(to: string, state: BudgetState, threshold: number, budgetsUrl: string): Mail {
  const { budget, spent, left, resetsAtMs } = state
  const write = (amount: number): string => writeBudgetAmount(budget.unit, amount)
  const name = budgetName(budget)
  const isUsedUp = threshold === 100
  return {
    to,
    subject: isUsedUp ? 'A budget is used up' : `${threshold}% of a budget is spent`,
    text: [
      isUsedUp ? `${name} is used up.` : `${threshold}% of a budget is spent: ${name}.`,
      '',
      `Spent: ${write(spent)} of ${write(budget.limit)}`,
      `Left: ${write(left)}`,
      `More becomes available on ${writeReset(resetsAtMs)}.`,
      '',
      isUsedUp
        ? 'Until then, requests that it cannot pay for are rejected.'
        : 'Requests are not affected until it is used up.',
      'See and change budgets:',
      budgetsUrl,
      '',
    ].join('\n'),
  }
}
