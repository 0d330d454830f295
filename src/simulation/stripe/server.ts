import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Clock } from '../../runtime/clock.ts'
import { dayMs } from '../../runtime/durations.ts'
import type { RandomBytes } from '../../runtime/random.ts'
import type { Secret } from '../../runtime/secret.ts'
import { FakeStripeApi } from './api.ts'
import { advance } from './cycle.ts'
import { FakeStripe, type FakeStripeOptions } from './fake-stripe.ts'
import { checkoutPage, portalPage } from './pages.ts'
import { readForm } from './read-form.ts'
import { readStateFile, writeStateFile } from './state-file.ts'
import type { FakeCheckout, FakePortal, FakePrice } from './state.ts'
import { emptyState } from './state.ts'
import { type DeliverWebhook, WebhookOutbox } from './webhook-outbox.ts'
import { writeEvent } from './write-json.ts'

const host = '127.0.0.1'
const maxBodyBytes = 64 * 1024
const requestTimeoutMs = 10_000
const passesMs: Readonly<Record<string, number>> = { week: 7 * dayMs, month: 31 * dayMs }

export interface FakeStripeServerOptions {
  readonly clock: Clock
  readonly random: RandomBytes
  readonly prices: readonly FakePrice[]
  readonly secretKey: Secret
  readonly webhookSecret: Secret
  /** The API version that its events declare. */
  readonly apiVersion: string
  readonly whenUnpaid: FakeStripeOptions['whenUnpaid']
  readonly deliver: DeliverWebhook
  readonly webhooks: 'send' | 'hold'
  /** Where its state is stored between runs; without a file it is lost. */
  readonly file?: string
}

/** The fake Stripe server, listening on this machine only. Everything it returns is marked as simulated. */
export interface FakeStripeServer {
  readonly host: string
  readonly port: number
  readonly fake: FakeStripe
  readonly outbox: WebhookOutbox
  close(): Promise<void>
}

/** Starts the fake on a free port. @throws SetupError if its state file cannot be read */
export async function startFakeStripe(options: FakeStripeServerOptions): Promise<FakeStripeServer> {
  const { clock, file } = options
  const outbox = new WebhookOutbox({ ...options, secret: options.webhookSecret, mode: options.webhooks })
  const fake: FakeStripe = new FakeStripe({
    ...options,
    state: file === undefined ? emptyState(clock.nowMs()) : readStateFile(file, clock.nowMs()),
    onEvent: (event) =>
      outbox.add({ id: event.id, body: Buffer.from(JSON.stringify(writeEvent(fake, event, options.apiVersion))) }),
  })
  let origin = ''
  const api = new FakeStripeApi(fake, () => origin, options.secretKey.reveal())
  const server = createServer((request, response) => {
    const answered = answer({ fake, api, clock }, request, response)
    answered
      .then(() => (file === undefined || request.method === 'GET' ? undefined : writeStateFile(file, fake.state)))
      .catch(() => {
        // Read and write failures end here; the service reports what they mean for it.
        response.destroy()
      })
  })
  server.requestTimeout = requestTimeoutMs
  const port = await listen(server)
  origin = `http://${host}:${port}`
  return {
    host,
    port,
    fake,
    outbox,
    close: async () => {
      outbox.close()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

interface ServerDeps {
  readonly fake: FakeStripe
  readonly api: FakeStripeApi
  readonly clock: Clock
}

async function answer(deps: ServerDeps, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { fake, api, clock } = deps
  const body = await readBody(request)
  const url = new URL(request.url ?? '/', `http://${host}`)
  advance(fake, clock.nowMs() + fake.state.aheadMs)
  if (url.pathname.startsWith('/v1/')) {
    const isForm = request.method === 'GET' || request.method === 'DELETE'
    const idempotencyKey = request.headers['idempotency-key']
    const { status, body: result } = api.answer({
      method: request.method ?? 'GET',
      path: url.pathname,
      form: readForm(isForm ? url.search.slice(1) : body) ?? {},
      authorization: request.headers.authorization,
      idempotencyKey: typeof idempotencyKey === 'string' ? idempotencyKey : undefined,
    })
    const headers = { 'content-type': 'application/json', 'request-id': fake.mintId('req'), 'x-simulated': 'true' }
    response.writeHead(status, headers).end(JSON.stringify(result))
    return
  }
  answerPage(fake, request.method ?? 'GET', url.pathname, response)
}

function answerPage(fake: FakeStripe, method: string, path: string, response: ServerResponse): void {
  const [, kind, id, ...action] = path.split('/')
  const { checkouts, portals } = fake.state
  const checkout = kind === 'checkout' ? checkouts.find((one) => one.id === id) : undefined
  const portal = kind === 'portal' ? portals.find((one) => one.id === id) : undefined
  const isPost = method === 'POST'
  const answered =
    checkout !== undefined
      ? answerCheckout(fake, checkout, isPost ? action : [])
      : portal !== undefined
        ? answerPortal(fake, portal, isPost ? action : [])
        : undefined
  if (answered === undefined) response.writeHead(404, htmlHeaders).end('<!doctype html><title>Not found</title>')
  else if ('to' in answered) response.writeHead(303, { location: answered.to }).end()
  else response.writeHead(200, htmlHeaders).end(answered.html)
}

type PageAnswer = { readonly html: string } | { readonly to: string } | undefined

function answerCheckout(fake: FakeStripe, checkout: FakeCheckout, [action]: readonly string[]): PageAnswer {
  const customer = fake.customer(checkout.customerId)
  switch (action) {
    case undefined:
      return { html: checkoutPage(fake, checkout, false) }
    case 'pay':
      if (customer !== undefined) customer.cardFails = false
      fake.payCheckout(checkout)
      return { to: checkout.status === 'complete' ? checkout.successUrl : checkout.cancelUrl }
    case 'pay-refused':
      return { html: checkoutPage(fake, checkout, true) }
    case 'cancel':
      return { to: checkout.cancelUrl }
    default:
      return undefined
  }
}

function answerPortal(fake: FakeStripe, portal: FakePortal, action: readonly string[]): PageAnswer {
  const [verb, subscriptionId, priceId] = action
  const customer = fake.customer(portal.customerId)
  const subscription = fake.subscriptionsOf(portal.customerId).find(({ id }) => id === subscriptionId)
  if (verb === undefined) return { html: portalPage(fake, portal) }
  const passMs = passesMs[verb]
  if (passMs !== undefined) {
    fake.state.aheadMs += passMs
    advance(fake, fake.state.nowMs + passMs)
  } else if (verb.startsWith('card-') && customer !== undefined) fake.setCard(customer, verb === 'card-fails')
  else if (subscription === undefined) return undefined
  else if (verb === 'change' && fake.prices.some(({ id }) => id === priceId))
    fake.changePrice(subscription, priceId ?? '')
  else if (verb === 'cancel' || verb === 'resume') fake.cancelAtPeriodEnd(subscription, verb === 'cancel')
  else return undefined
  return { to: `/portal/${portal.id}` }
}

const htmlHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'x-simulated': 'true',
  'referrer-policy': 'no-referrer',
} as const

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += (chunk as Buffer).byteLength
    if (bytes > maxBodyBytes) throw new RangeError('the body is too large')
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, host, () => resolve((server.address() as AddressInfo).port))
  })
}
