import { createHash } from 'node:crypto'
import type { FakeStripe } from './fake-stripe.ts'
import { type Form, textIn } from './read-form.ts'
import { maxKept } from './state.ts'
import { writeCheckout, writeInvoice, writeList, writePrice, writeSubscription } from './write-json.ts'

type Json = Record<string, unknown>

/** One call of Stripe's API as the fake receives it. */
export interface ApiCall {
  readonly method: string
  /** Path without the origin, such as `/v1/customers`. */
  readonly path: string
  /** Query parameters of a GET, body parameters of a POST. */
  readonly form: Form
  readonly authorization: string | undefined
  readonly idempotencyKey: string | undefined
}

export interface ApiAnswer {
  readonly status: number
  readonly body: Json
}

class ApiError extends Error {
  readonly answer: ApiAnswer

  constructor(status: number, type: string, code: string, param?: string) {
    super(code)
    const message = `Simulated Stripe: ${code}.`
    this.answer = { status, body: { error: { type, code, message, ...(param === undefined ? {} : { param }) } } }
  }
}

/** The Stripe API calls that the service makes, on top of the fake; every other call gets a 404. */
export class FakeStripeApi {
  readonly #fake: FakeStripe
  readonly #origin: () => string
  readonly #secretKey: string
  readonly #answers = new Map<string, { readonly digest: string; readonly answer: ApiAnswer }>()
  #configurations: Json[] = []

  constructor(fake: FakeStripe, origin: () => string, secretKey: string) {
    this.#fake = fake
    this.#origin = origin
    this.#secretKey = secretKey
  }

  /**
   * Answers a call. As at Stripe, a repeated idempotency key gets the same answer, and an error if the parameters
   * differ.
   */
  answer(call: ApiCall): ApiAnswer {
    if (call.authorization !== `Bearer ${this.#secretKey}`)
      return new ApiError(401, 'invalid_request_error', 'api_key_invalid').answer
    const key = call.method === 'POST' ? call.idempotencyKey : undefined
    const digest = createHash('sha256')
      .update(JSON.stringify([call.path, call.form]))
      .digest('hex')
    const known = key === undefined ? undefined : this.#answers.get(key)
    if (known !== undefined)
      return known.digest === digest
        ? known.answer
        : new ApiError(400, 'idempotency_error', 'idempotency_key_in_use').answer
    const answer = this.#answerOnce(call)
    if (key !== undefined) {
      this.#answers.set(key, { digest, answer })
      if (this.#answers.size > maxKept) this.#answers.delete(this.#answers.keys().next().value ?? '')
    }
    return answer
  }

  #answerOnce(call: ApiCall): ApiAnswer {
    try {
      return { status: 200, body: this.#route(call) }
    } catch (error) {
      if (error instanceof ApiError) return error.answer
      throw error
    }
  }

  #route({ method, path, form }: ApiCall): Json {
    const [, version, ...names] = path.split('/')
    const isId = (name: string): boolean => /_/.test(name) && !['billing_portal'].includes(name)
    const route = `${method} /${[version, ...names.map((name) => (isId(name) ? ':id' : name))].join('/')}`
    const id = names.find(isId) ?? ''
    const { state } = this.#fake
    switch (route) {
      case 'POST /v1/customers':
        return this.#makeCustomer(form)
      case 'GET /v1/prices/:id':
        return writePrice(found(this.#fake.prices, id, 'price'))
      case 'GET /v1/subscriptions':
        return this.#listSubscriptions(form)
      case 'DELETE /v1/subscriptions/:id': {
        const subscription = found(state.subscriptions, id, 'id')
        if (subscription.status === 'canceled')
          throw new ApiError(404, 'invalid_request_error', 'resource_missing', 'id')
        this.#fake.cancelNow(subscription)
        return writeSubscription(this.#fake, subscription)
      }
      case 'GET /v1/invoices': {
        const open = this.#fake.openInvoices(textIn(form, 'subscription') ?? '')
        return writeList('/v1/invoices', open.map(writeInvoice))
      }
      case 'POST /v1/checkout/sessions':
        return this.#openCheckout(form)
      case 'GET /v1/checkout/sessions': {
        const customerId = this.#customerIn(form)
        const open = state.checkouts.filter((one) => one.customerId === customerId && one.status === 'open')
        return writeList(
          '/v1/checkout/sessions',
          open.map((one) => writeCheckout(one, this.#origin())),
        )
      }
      case 'POST /v1/checkout/sessions/:id/expire': {
        const checkout = found(state.checkouts, id, 'session')
        if (checkout.status !== 'open') throw new ApiError(400, 'invalid_request_error', 'session_not_open')
        this.#fake.expireCheckout(checkout)
        return writeCheckout(checkout, this.#origin())
      }
      case 'GET /v1/billing_portal/configurations':
        return writeList('/v1/billing_portal/configurations', this.#configurations)
      case 'POST /v1/billing_portal/configurations': {
        const made = { ...form, id: this.#fake.mintId('bpc'), object: 'billing_portal.configuration', active: true }
        this.#configurations = [...this.#configurations, made].slice(-maxKept)
        return made
      }
      case 'POST /v1/billing_portal/sessions':
        return this.#openPortal(form)
      default:
        throw new ApiError(404, 'invalid_request_error', 'not_simulated')
    }
  }

  #makeCustomer(form: Form): Json {
    const metadata = Object.fromEntries(
      Object.entries(typeof form['metadata'] === 'object' ? form['metadata'] : {}).map(([name, value]) => [
        name,
        typeof value === 'string' ? value : '',
      ]),
    )
    const { id, name } = this.#fake.createCustomer(textIn(form, 'name') ?? '', metadata)
    return { id, object: 'customer', name, metadata, livemode: false }
  }

  #listSubscriptions(form: Form): Json {
    const customerId = this.#customerIn(form)
    const current = this.#fake.subscriptionsOf(customerId).filter(({ status }) => status !== 'canceled')
    return writeList(
      '/v1/subscriptions',
      current.map((one) => writeSubscription(this.#fake, one)),
    )
  }

  #openCheckout(form: Form): Json {
    const expiresAt = Number(textIn(form, 'expires_at'))
    const checkout = this.#fake.openCheckout({
      customerId: this.#customerIn(form),
      priceId: found(this.#fake.prices, textIn(form, 'line_items', '0', 'price') ?? '', 'line_items[0][price]').id,
      reference: textIn(form, 'client_reference_id') ?? null,
      successUrl: urlIn(form, 'success_url'),
      cancelUrl: urlIn(form, 'cancel_url'),
      ...(Number.isFinite(expiresAt) ? { expiresAtMs: expiresAt * 1000 + this.#fake.state.aheadMs } : {}),
    })
    return writeCheckout(checkout, this.#origin())
  }

  #openPortal(form: Form): Json {
    found(this.#configurations as { id: string }[], textIn(form, 'configuration') ?? '', 'configuration')
    const { id, customerId, returnUrl } = this.#fake.openPortal(this.#customerIn(form), urlIn(form, 'return_url'))
    const url = `${this.#origin()}/portal/${id}`
    return { id, object: 'billing_portal.session', customer: customerId, return_url: returnUrl, url, livemode: false }
  }

  #customerIn(form: Form): string {
    return found(this.#fake.state.customers, textIn(form, 'customer') ?? '', 'customer').id
  }
}

function found<Item extends { readonly id: string }>(items: readonly Item[], id: string, param: string): Item {
  const item = items.find((one) => one.id === id)
  if (item === undefined) throw new ApiError(404, 'invalid_request_error', 'resource_missing', param)
  return item
}

function urlIn(form: Form, name: string): string {
  const url = textIn(form, name) ?? ''
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw new ApiError(400, 'invalid_request_error', 'url_invalid', name)
  return url
}
