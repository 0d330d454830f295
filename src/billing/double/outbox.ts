import { createHmac } from 'node:crypto'
import type { Clock, Timer } from '../../domain/clock.ts'
import type { Secret } from '../../domain/secret.ts'

/** Waiting to be sent; beyond it the oldest are lost, as at Stripe after three days. */
const maxWaiting = 1000
const maxAttempts = 5
const firstPauseMs = 500

/** Sends one webhook and gives the status that it was answered with; it must end in time. */
export type DeliverWebhook = (body: Buffer, signature: string) => Promise<number>

/** An event as it goes out: the same bytes at every attempt. */
export interface OutgoingEvent {
  readonly id: string
  readonly body: Buffer
}

export interface OutboxOptions {
  readonly secret: Secret
  readonly clock: Clock
  readonly deliver: DeliverWebhook
  /** `send` delivers at once and tries again after failures; `hold` keeps everything for `take`, to be sent as a test likes. */
  readonly mode: 'send' | 'hold'
}

/** The webhooks of the double, signed as Stripe signs them. */
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

  /** What is held, and is held no longer. */
  take(): readonly OutgoingEvent[] {
    const taken = this.#waiting
    this.#waiting = []
    return taken
  }

  /** Sends one event now and gives the status of its answer; 0 where there was none. */
  async send({ body }: OutgoingEvent): Promise<number> {
    const { secret, clock, deliver } = this.#options
    try {
      return await deliver(body, signWebhook(body, secret, clock.nowMs()))
    } catch {
      // Whatever went wrong on the way, the event is sent again.
      return 0
    }
  }

  /** Ends sending. What waits is lost. */
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
