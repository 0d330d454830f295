import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAccount } from '../../src/accounts/accounts.ts'
import type { BillingDeps } from '../../src/accounts/billing/billing-deps.ts'
import type { WebhookAnswer } from '../../src/accounts/billing/ports.ts'
import { createWebhookHandler } from '../../src/accounts/billing/webhook.ts'
import { createStripeBilling, stripeApiVersion } from '../../src/billing/stripe-billing.ts'
import type { Account } from '../../src/domain/accounts.ts'
import type { ServiceEvent } from '../../src/domain/events.ts'
import { defaultPlans } from '../../src/domain/plans.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { Secret } from '../../src/runtime/secret.ts'
import { advance } from '../../src/simulation/stripe/cycle.ts'
import { startFakeStripe, type FakeStripeServer } from '../../src/simulation/stripe/server.ts'
import type { Store } from '../../src/storage/store.ts'
import { doublePrices } from './fake-stripe-billing.ts'

export const graceMs = 7 * 86_400_000
const webhookSecret = new Secret('whsec_made_up_for_tests')
const secretKey = new Secret('sk_test_made_up_for_tests')

/** A clock whose time a test moves, with real timers. */
export class MovedClock implements Clock {
  movedMs = 0

  nowMs(): number {
    return Date.now() + this.movedMs
  }

  monotonicMs(): number {
    return performance.now() + this.movedMs
  }

  after(delayMs: number, run: () => void): { cancel(): void } {
    const timer = setTimeout(run, delayMs)
    return { cancel: () => clearTimeout(timer) }
  }
}

/** The real Stripe library against the fake Stripe over HTTP, and webhooks over HTTP against the service's handler. */
export class StripeWorld {
  readonly clock: MovedClock
  readonly server: FakeStripeServer
  readonly accountsDeps: BillingDeps
  readonly events: ServiceEvent[]
  readonly answers: WebhookAnswer[]
  readonly #store: Store
  readonly #close: () => Promise<void>

  private constructor(
    parts: Pick<StripeWorld, 'clock' | 'server' | 'accountsDeps' | 'events' | 'answers'>,
    store: Store,
    close: () => Promise<void>,
  ) {
    this.clock = parts.clock
    this.server = parts.server
    this.accountsDeps = parts.accountsDeps
    this.events = parts.events
    this.answers = parts.answers
    this.#store = store
    this.#close = close
  }

  static async start(store: Store, webhooks: 'send' | 'hold'): Promise<StripeWorld> {
    const clock = new MovedClock()
    const random = systemRandom()
    const events: ServiceEvent[] = []
    const answers: WebhookAnswer[] = []
    let hookUrl = ''
    const server = await startFakeStripe({
      clock,
      random,
      prices: doublePrices,
      secretKey,
      webhookSecret,
      apiVersion: stripeApiVersion,
      whenUnpaid: 'canceled',
      webhooks,
      deliver: async (body, signature) => {
        const headers = { 'stripe-signature': signature, 'content-type': 'application/json' }
        const response = await fetch(hookUrl, { method: 'POST', headers, body, signal: AbortSignal.timeout(10_000) })
        await response.arrayBuffer()
        return response.status
      },
    })
    const billing = createStripeBilling({
      secretKey,
      webhookSecret,
      prices: new Map([
        ['pro', ['price_pro']],
        ['max', ['price_max']],
      ]),
      clock,
      simulation: server,
    })
    const deps: BillingDeps = {
      accounts: store,
      store: store.billing,
      billing,
      clock,
      random,
      plans: defaultPlans,
      defaultPlan: 'free',
      graceMs,
      log: (event) => void events.push(event),
    }
    const handle = createWebhookHandler(deps)
    const hooks = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => void chunks.push(chunk))
      request.on('end', () => {
        const headers = new Headers({ 'stripe-signature': String(request.headers['stripe-signature']) })
        void handle(Buffer.concat(chunks), headers).then((answer) => {
          answers.push(answer)
          response.writeHead(answer.status).end()
        })
      })
    })
    await new Promise<void>((resolve) => {
      hooks.listen(0, '127.0.0.1', resolve)
    })
    hookUrl = `http://127.0.0.1:${(hooks.address() as AddressInfo).port}/`
    return new StripeWorld({ clock, server, accountsDeps: deps, events, answers }, store, async () => {
      billing.close()
      await server.close()
      hooks.closeAllConnections()
      await new Promise((resolve) => hooks.close(resolve))
    })
  }

  get double(): FakeStripeServer['fake'] {
    return this.server.fake
  }

  addAccount(name: string): Promise<Account> {
    const { clock, random } = this.accountsDeps
    const pepper = new Secret('made-up-pepper-of-the-tests')
    return createAccount(
      { store: this.#store, clock, random, pepper, actor: { kind: 'cli' } },
      name,
      'free',
      defaultPlans,
    )
  }

  async planOf(accountId: string): Promise<string | undefined> {
    return (await this.#store.findAccount(accountId))?.planId
  }

  /** Advances the time of the service and of the fake Stripe. */
  pass(ms: number): void {
    this.clock.movedMs += ms
    advance(this.double, this.clock.nowMs())
  }

  stop(): Promise<void> {
    return this.#close()
  }
}
