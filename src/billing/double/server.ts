import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Clock } from '../../domain/clock.ts'
import type { RandomBytes } from '../../domain/random.ts'
import type { Secret } from '../../domain/secret.ts'
import { DoubleApi } from './api.ts'
import { dayMs } from './calendar.ts'
import { StripeDouble, type DoubleOptions } from './double.ts'
import { type DeliverWebhook, WebhookOutbox } from './outbox.ts'
import { checkoutPage, portalPage } from './pages.ts'
import { readForm } from './read-form.ts'
import type { DoubleCheckout, DoublePortal, DoublePrice } from './state.ts'
import { emptyState } from './state.ts'
import { readStateFile, writeStateFile } from './state-file.ts'
import { writeEvent } from './write-json.ts'

const host = '127.0.0.1'
const maxBodyBytes = 64 * 1024
const requestTimeoutMs = 10_000
const passesMs: Readonly<Record<string, number>> = { week: 7 * dayMs, month: 31 * dayMs }

export interface DoubleServerOptions {
  readonly clock: Clock
  readonly random: RandomBytes
  readonly prices: readonly DoublePrice[]
  readonly secretKey: Secret
  readonly webhookSecret: Secret
  /** The API version that its events declare. */
  readonly apiVersion: string
  readonly whenUnpaid: DoubleOptions['whenUnpaid']
  readonly deliver: DeliverWebhook
  readonly webhooks: 'send' | 'hold'
  /** Where its state is stored between runs; without a file it is lost. */
  readonly file?: string
}

/** The fake Stripe server, listening on this machine only. Everything it returns is marked as simulated. */
export interface DoubleServer {
  readonly host: string
  readonly port: number
  readonly double: StripeDouble
  readonly outbox: WebhookOutbox
  close(): Promise<void>
}

/** Starts the fake on a free port. @throws SetupError if its state file cannot be read */
export async function startDoubleServer(options: DoubleServerOptions): Promise<DoubleServer> {
  const { clock, file } = options
  const outbox = new WebhookOutbox({ ...options, secret: options.webhookSecret, mode: options.webhooks })
  const double: StripeDouble = new StripeDouble({
    ...options,
    state: file === undefined ? emptyState(clock.nowMs()) : readStateFile(file, clock.nowMs()),
    onEvent: (event) =>
      outbox.add({ id: event.id, body: Buffer.from(JSON.stringify(writeEvent(double, event, options.apiVersion))) }),
  })
  let origin = ''
  const api = new DoubleApi(double, () => origin, options.secretKey.reveal())
  const server = createServer((request, response) => {
    const answered = answer({ double, api, clock }, request, response)
    answered
      .then(() => (file === undefined || request.method === 'GET' ? undefined : writeStateFile(file, double.state)))
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
    double,
    outbox,
    close: async () => {
      outbox.close()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

interface Parts {
  readonly double: StripeDouble
  readonly api: DoubleApi
  readonly clock: Clock
}

async function answer(parts: Parts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { double, api, clock } = parts
  const body = await readBody(request)
  const url = new URL(request.url ?? '/', `http://${host}`)
  double.advanceTo(clock.nowMs() + double.state.aheadMs)
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
    const headers = { 'content-type': 'application/json', 'request-id': double.mintId('req'), 'x-simulated': 'true' }
    response.writeHead(status, headers).end(JSON.stringify(result))
    return
  }
  answerPage(double, request.method ?? 'GET', url.pathname, response)
}

function answerPage(double: StripeDouble, method: string, path: string, response: ServerResponse): void {
  const [, kind, id, ...action] = path.split('/')
  const { checkouts, portals } = double.state
  const checkout = kind === 'checkout' ? checkouts.find((one) => one.id === id) : undefined
  const portal = kind === 'portal' ? portals.find((one) => one.id === id) : undefined
  const isPost = method === 'POST'
  const answered =
    checkout !== undefined
      ? answerCheckout(double, checkout, isPost ? action : [])
      : portal !== undefined
        ? answerPortal(double, portal, isPost ? action : [])
        : undefined
  if (answered === undefined) response.writeHead(404, htmlHeaders).end('<!doctype html><title>Not found</title>')
  else if ('to' in answered) response.writeHead(303, { location: answered.to }).end()
  else response.writeHead(200, htmlHeaders).end(answered.html)
}

type PageAnswer = { readonly html: string } | { readonly to: string } | undefined

function answerCheckout(double: StripeDouble, checkout: DoubleCheckout, [action]: readonly string[]): PageAnswer {
  const customer = double.customer(checkout.customerId)
  switch (action) {
    case undefined:
      return { html: checkoutPage(double, checkout, false) }
    case 'pay':
      if (customer !== undefined) customer.cardFails = false
      double.payCheckout(checkout)
      return { to: checkout.status === 'complete' ? checkout.successUrl : checkout.cancelUrl }
    case 'pay-refused':
      return { html: checkoutPage(double, checkout, true) }
    case 'cancel':
      return { to: checkout.cancelUrl }
    default:
      return undefined
  }
}

function answerPortal(double: StripeDouble, portal: DoublePortal, action: readonly string[]): PageAnswer {
  const [verb, subscriptionId, priceId] = action
  const customer = double.customer(portal.customerId)
  const subscription = double.subscriptionsOf(portal.customerId).find(({ id }) => id === subscriptionId)
  if (verb === undefined) return { html: portalPage(double, portal) }
  const passMs = passesMs[verb]
  if (passMs !== undefined) {
    double.state.aheadMs += passMs
    double.advanceTo(double.state.nowMs + passMs)
  } else if (verb.startsWith('card-') && customer !== undefined) double.setCard(customer, verb === 'card-fails')
  else if (subscription === undefined) return undefined
  else if (verb === 'change' && double.prices.some(({ id }) => id === priceId))
    double.changePrice(subscription, priceId ?? '')
  else if (verb === 'cancel' || verb === 'resume') double.cancelAtPeriodEnd(subscription, verb === 'cancel')
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
