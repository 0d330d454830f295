import { BudgetMeter } from '../../domain/budget-meter.ts'
import { alertWindowMs, longestWindowMs } from '../../domain/budget-windows.ts'
import type { Budget } from '../../domain/budgets.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { idMinter } from '../../runtime/ids.ts'
import { minuteMs } from '../../runtime/minute-log.ts'
import type { RandomBytes } from '../../runtime/random.ts'
import { budgetState, type BudgetState } from '../budgets.ts'
import type { BudgetQueries, EmailQueries } from '../ports.ts'
import { alertId, type PassedThreshold, writeAlertEvent, writeAlertMail } from './alert-message.ts'
import type { AlertQueries, NewDelivery, WebhookQueries } from './alert-ports.ts'

/** Shares of a budget, in percent, at which its account is told (contract 46.11). */
const thresholds = [50, 80, 100] as const
/** From this share on, a budget that rejects every request counts as used up: what is left pays for none. */
const refusingFrom = 80
/** How often budgets are compared with what is spent. */
const checkEveryMs = 30_000
/** A fixed window that ended less than this long ago is compared, too: more may have been spent after its last check. */
const lateMs = 2 * minuteMs
/** Accounts that are read at once. */
const accountsAtOnce = 200

export interface BudgetAlertDeps {
  readonly store: Pick<BudgetQueries, 'readBudgetBooks'> &
    Pick<AlertQueries, 'listBudgetedAccounts' | 'hasBudgetRefusals' | 'hasBudgetAlert' | 'addBudgetAlert'> &
    Pick<EmailQueries, 'listEmails'> &
    Pick<WebhookQueries, 'listWebhooks'>
  readonly clock: Pick<Clock, 'after'>
  /** The time by which `AlertSender` sends messages, epoch milliseconds. */
  readonly nowMs: () => number
  /** The time by which the ledger counts windows, epoch milliseconds. */
  readonly quotaNowMs: () => number
  readonly random: RandomBytes
  /** Whether this service sends email. */
  readonly sendsMail: boolean
  /** Whether the operator has a webhook. Accounts have their own. */
  readonly hasWebhook: boolean
  readonly budgetsUrl: string
  /** Called after messages were added. */
  readonly onAdded: () => void
  readonly onFailed: (error: unknown) => void
}

interface CheckTimes {
  /** By the ledger's clock. */
  readonly nowMs: number
  /** When the window to check ended; undefined for the current one. Epoch milliseconds. */
  readonly endedMs?: number
}

/**
 * Notices when 50, 80, and 100 % of a budget are spent, once for each budget, window, and threshold, whichever node is first, and
 * stores the messages about it. `AlertSender` sends them.
 */
export class BudgetAlerts {
  readonly #deps: BudgetAlertDeps
  readonly #mintId: () => string
  #timer: Timer | undefined
  #running: Promise<void> | undefined
  #isClosed = false

  constructor(deps: BudgetAlertDeps) {
    this.#deps = deps
    this.#mintId = idMinter('adl_', deps.nowMs, deps.random)
  }

  start(): void {
    this.#schedule()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    await this.#running
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
    const { store, sendsMail, hasWebhook } = this.#deps
    // If nobody else can be told, only accounts with a webhook matter.
    const onlyWithWebhooks = !sendsMail && !hasWebhook
    let afterId = ''
    for (;;) {
      const accounts = await store.listBudgetedAccounts(afterId, accountsAtOnce, onlyWithWebhooks)
      await this.#checkAccounts(accounts)
      if (accounts.length < accountsAtOnce || this.#isClosed) return
      afterId = accounts.at(-1)!
    }
  }

  async #checkAccounts(accountIds: readonly string[]): Promise<void> {
    const nowMs = this.#deps.quotaNowMs()
    const books = await this.#deps.store.readBudgetBooks(accountIds, nowMs - longestWindowMs - lateMs)
    const meter = new BudgetMeter(books.counters)
    for (const budgets of Map.groupBy(books.budgets, ({ accountId }) => accountId).values())
      await this.#checkAccount(budgets, meter, nowMs)
  }

  async #checkAccount(budgets: readonly Budget[], meter: BudgetMeter, nowMs: number): Promise<void> {
    const statesAt = (atMs: number): BudgetState[] => budgets.map((budget) => budgetState(budget, meter, atMs))
    const begun = budgets
      .filter(({ rolling }) => !rolling)
      .map((budget) => alertWindowMs(budget, nowMs))
      .filter((startMs) => nowMs - startMs < lateMs)
    for (const endedMs of new Set(begun)) {
      const hasEnded = ({ budget }: BudgetState): boolean => !budget.rolling && alertWindowMs(budget, nowMs) === endedMs
      await this.#checkBudgets(statesAt(endedMs - 1), { nowMs, endedMs }, hasEnded)
    }
    await this.#checkBudgets(statesAt(nowMs), { nowMs })
  }

  /** Compares the budgets of one account, or some of them, with what is spent. */
  async #checkBudgets(
    states: readonly BudgetState[],
    times: CheckTimes,
    isIncluded: (state: BudgetState) => boolean = () => true,
  ): Promise<void> {
    // Which budget rejected a request is not stored: it is the fullest one.
    const fullest = Math.max(...states.map(percentOf))
    for (const state of states.filter(isIncluded))
      await this.#checkBudget(state, { ...times, isFullest: percentOf(state) === fullest })
  }

  async #checkBudget(
    state: BudgetState,
    { nowMs, endedMs, isFullest }: CheckTimes & { readonly isFullest: boolean },
  ): Promise<void> {
    const { store, onAdded } = this.#deps
    const { budget } = state
    const { id: budgetId, accountId } = budget
    const percent = percentOf(state)
    const windowMs = alertWindowMs(budget, endedMs === undefined ? nowMs : endedMs - 1)
    const mayRefuse = isFullest && percent >= refusingFrom && percent < 100
    const refuses = mayRefuse && (await store.hasBudgetRefusals(budget, windowMs, endedMs))
    const passed = thresholds.filter((threshold) => percent >= threshold || (threshold === 100 && refuses))
    // One alert says the most, if several thresholds were passed since the last check.
    const threshold = passed.at(-1)
    if (threshold === undefined || (await store.hasBudgetAlert(budgetId, windowMs, threshold))) return
    const sentMs = this.#deps.nowMs()
    const deliveries = await this.#writeMessages({ state, threshold, windowMs, endedMs }, sentMs)
    const alert = { budgetId, windowMs, thresholds: passed, accountId, atMs: Math.floor(sentMs) }
    if (await store.addBudgetAlert(alert, deliveries)) onAdded()
  }

  async #writeMessages(passed: PassedThreshold, nowMs: number): Promise<readonly NewDelivery[]> {
    const { store, sendsMail, hasWebhook, budgetsUrl } = this.#deps
    const { accountId } = passed.state.budget
    const add = (channel: NewDelivery['channel'], target: string, body: string): NewDelivery => ({
      id: this.#mintId(),
      eventId: alertId(passed),
      accountId,
      channel,
      target,
      body,
      atMs: nowMs,
    })
    const mail = JSON.stringify(writeAlertMail(passed, budgetsUrl))
    const event = writeAlertEvent(passed, budgetsUrl, nowMs)
    const emails = sendsMail ? await store.listEmails(accountId) : []
    const webhooks = await store.listWebhooks(accountId)
    return [
      ...emails.map(({ address }) => add('email', address, mail)),
      ...webhooks.map(({ id }) => add('webhook', id, event)),
      ...(hasWebhook ? [add('operator', '', event)] : []),
    ]
  }
}

function percentOf({ budget, spent }: BudgetState): number {
  return (spent / budget.limit) * 100
}
