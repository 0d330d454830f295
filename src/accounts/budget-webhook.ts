import type { EventLog } from '../domain/events.ts'
import { UpstreamError } from '../domain/upstream.ts'
import type { Clock, Timer } from '../runtime/clock.ts'
import { errorName } from '../runtime/describe-bug.ts'
import { hexMac } from '../runtime/mac.ts'
import type { Secret } from '../runtime/secret.ts'
import { type BudgetState, plainBudget } from './budgets.ts'

/** How long to wait before each further attempt. */
const waitsMs = [5_000, 30_000, 120_000, 600_000] as const
/** Messages that are sent, or wait for another attempt, at once. */
const maxOpen = 100

/** Budget `state` passed `threshold` percent in the window `windowMs` (see `alertWindowMs`). */
export interface PassedThreshold {
  readonly state: BudgetState
  readonly threshold: number
  readonly windowMs: number
}

interface BudgetWebhookDeps {
  readonly secret: Secret
  readonly budgetsUrl: string
  readonly clock: Clock
  readonly log: EventLog
  /** Sends one message with these header lines. @throws UpstreamError */
  readonly post: (headers: readonly string[], body: string) => Promise<void>
}

/** Tells the operator's program about alerts of budgets: signed, at most five attempts each (contract 46.14). */
export class BudgetWebhook {
  readonly #deps: BudgetWebhookDeps
  readonly #open = new Set<Promise<void>>()
  readonly #waits = new Map<Timer, () => void>()
  #isClosed = false

  constructor(deps: BudgetWebhookDeps) {
    this.#deps = deps
  }

  /** Returns at once. If too many messages are open, this one is not sent, and that is logged. */
  send(passed: PassedThreshold): void {
    if (this.#open.size >= maxOpen) return this.#report('too many alerts at once')
    const sent = this.#deliver(this.#write(passed)).finally(() => this.#open.delete(sent))
    this.#open.add(sent)
  }

  /** Waits for messages that are being sent, and gives up those that wait for another attempt. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const [timer, done] of this.#waits) {
      timer.cancel()
      done()
    }
    await Promise.all(this.#open)
  }

  async #deliver(body: string): Promise<void> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#deps.post([this.#signature(body)], body)
      } catch (error) {
        this.#report(reasonOf(error))
      }
      const waitMs = waitsMs[attempt]
      if (waitMs === undefined || this.#isClosed) return
      await this.#wait(waitMs)
      if (this.#isClosed) return
    }
  }

  #wait(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = this.#deps.clock.after(ms, () => {
      this.#waits.delete(timer)
      resolve()
    })
    this.#waits.set(timer, resolve)
    return promise
  }

  /** Covers the time of the attempt, so that a recorded message cannot be sent again much later. */
  #signature(body: string): string {
    const seconds = Math.floor(this.#deps.clock.nowMs() / 1000)
    return `x-svc-router-signature: t=${seconds},v1=${hexMac(this.#deps.secret, `${seconds}.${body}`)}`
  }

  /** The ID is the same in each attempt. */
  #write({ state, threshold, windowMs }: PassedThreshold): string {
    return JSON.stringify({
      object: 'event',
      id: `${state.budget.id}-${windowMs}-${threshold}`,
      type: 'budget.alert',
      created_at: new Date(this.#deps.clock.nowMs()).toISOString(),
      threshold_percent: threshold,
      budget: plainBudget(state),
      url: this.#deps.budgetsUrl,
    })
  }

  #report(reason: string): void {
    this.#deps.log({ event: 'budget_webhook_failing', reason })
  }
}

/** The status of the answer, or why there is none. */
function reasonOf(error: unknown): string {
  if (!(error instanceof UpstreamError)) return errorName(error)
  return error.status === undefined ? error.outcome : String(error.status)
}
