import { createHmac } from 'node:crypto'
import type { Clock, Timer } from '../../runtime/clock.ts'
import type { Secret } from '../../runtime/secret.ts'

/** Maximum number of waiting events; beyond it the oldest are dropped, as at Stripe after three days. */
const maxWaiting = 1000
const maxAttempts = 5
const firstPauseMs = 500

/** Sends one webhook and returns the status of the response; must have a time limit. */
export type DeliverWebhook = (body: Buffer, signature: string) => Promise<number>

/** An outgoing event: every attempt sends the same bytes. */
export interface OutgoingEvent {
  readonly id: string
  readonly body: Buffer
}

export interface OutboxOptions {
  readonly secret: Secret
  readonly clock: Clock
  readonly deliver: DeliverWebhook
  /**
   * `send` delivers immediately and retries failures; `hold` queues everything for `take`, so that a test decides when
   * to send.
   */
  readonly mode: 'send' | 'hold'
}

/** The fake's webhooks, signed as Stripe signs them. */
export class WebhookOutbox {
  readonly #options: OutboxOptions
  #waiting: OutgoingEvent[] = []
  #isSending = false
  #isClosed = false
  #pause: { readonly timer: Timer; readonly end: () => void } | undefined

  constructor(options: OutboxOptions) {
    this.#options = options
  }

  add(event: OutgoingEvent): void {
    this.#waiting.push(event)
    if (this.#waiting.length > maxWaiting) this.#waiting.shift()
    if (this.#options.mode === 'send' && !this.#isSending) void this.#sendAll()
  }

  /** Removes and returns the held events. */
  take(): readonly OutgoingEvent[] {
    const taken = this.#waiting
    this.#waiting = []
    return taken
  }

  /** Sends one event now and returns the status of its response; 0 if there was none. */
  async send({ body }: OutgoingEvent): Promise<number> {
    const { secret, clock, deliver } = this.#options
    try {
      return await deliver(body, signWebhook(body, secret, clock.nowMs()))
    } catch {
      // Retry the event, whatever the error was.
      return 0
    }
  }

  /** Stops sending. Waiting events are dropped. */
  close(): void {
    this.#isClosed = true
    this.#waiting = []
    this.#pause?.timer.cancel()
    this.#pause?.end()
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true
    for (let event = this.#waiting.shift(); event !== undefined; event = this.#waiting.shift())
      await this.#sendUntilTaken(event)
    this.#isSending = false
  }

  async #sendUntilTaken(event: OutgoingEvent): Promise<void> {
    for (let attempt = 0; attempt < maxAttempts && !this.#isClosed; attempt++) {
      const status = await this.send(event)
      if (status >= 200 && status < 300) return
      await this.#wait(firstPauseMs * 2 ** attempt)
    }
  }

  #wait(delayMs: number): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    return new Promise((resolve) => {
      this.#pause = { timer: this.#options.clock.after(delayMs, resolve), end: resolve }
    })
  }
}

/** The value of `stripe-signature`: the time, and an HMAC-SHA-256 of time and body. */
export function signWebhook(body: Buffer, secret: Secret, nowMs: number): string {
  const time = Math.floor(nowMs / 1000)
  const digest = createHmac('sha256', secret.reveal()).update(`${time}.`).update(body).digest('hex')
  return `t=${time},v1=${digest}`
}
