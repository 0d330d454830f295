import type { IncomingMessage, ServerResponse } from 'node:http'
import { describeBug } from '../domain/bugs.ts'
import type { Clock } from '../domain/clock.ts'
import { ServiceError } from '../domain/errors.ts'
import type { EventLog } from '../domain/events.ts'
import type { Links } from '../domain/links.ts'
import type { UsageSignals } from '../domain/usage.ts'
import { clientFormatIds, embeddingsFormatId, type ClientFormatId } from '../domain/format-id.ts'
import { formatById, relayById } from '../formats/formats.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { ModelRequest, Principal } from '../gateway/ports.ts'
import type { StoredResponses } from '../gateway/stored-responses.ts'
import { AttemptLimiter } from './attempt-limiter.ts'
import type { Catalog } from './catalog.ts'
import { passEdgeGate } from './edge-gate.ts'
import { readJsonBody } from './read-body.ts'
import { refusalBody, writeRefusal } from './refusals.ts'
import { checkHeaders, passedHeaders, statedTimeoutMs } from './request-headers.ts'
import { sendJson, sendPublic } from './respond.ts'
import { ResponseSink } from './response-sink.ts'
import { ResponsesApi } from './responses-api.ts'
import type { Exchange, Route } from './route.ts'
import { backendsHeader, usageHeaders } from './signals.ts'
import { isStreamProbe, StreamProbes } from './stream-probe.ts'

/** Requests of one key to the endpoints that are not counted (contract 4.3), a minute. */
const uncountedPerMinute = 300
/** Requests with a bad key from one address, a minute (contract 4.3). */
const badKeysPerMinute = 120
/** Where single models are found. */
const modelsPrefix = '/v1/models/'
/** Of a refused request's body this much is read and thrown away, so that its sender gets to read the refusal. */
const maxDiscardedBytes = 128 * 1024 * 1024

export interface ApiParts {
  readonly gateway: Gateway
  readonly stored: StoredResponses
  readonly catalog: Catalog
  readonly links: Links
  readonly baseUrl: string
  readonly edgeGate: boolean
  readonly limits: { readonly bodyBytes: number; readonly bodyMs: number; readonly streams: number }
  readonly clock: Clock
  readonly nowMs: () => number
  readonly mintRequestId: () => string
  readonly log: EventLog
  readonly readiness: () => Readiness
}

/** Whether new requests should be sent here, and if not, why. */
export interface Readiness {
  readonly ready: boolean
  readonly reasons: readonly string[]
}

/** The public API: one table of routes, and one function in which every request is answered or refused. */
export class Api {
  readonly #parts: ApiParts
  readonly #uncounted: AttemptLimiter
  readonly #badKeys: AttemptLimiter
  readonly #streamProbes: StreamProbes
  readonly #responses: ResponsesApi
  #open = 0

  readonly #routes: Readonly<Record<string, Route>> = {
    ...Object.fromEntries(
      [...clientFormatIds, embeddingsFormatId].map((id) => [
        `/v1${formatById(id).path}`,
        modelRoute((exchange) => this.#answer(exchange, id)),
      ]),
    ),
    '/v1/models': keyRoute((exchange) => this.#models(exchange)),
    '/model-catalog': publicRoute(({ response, requestId }) =>
      sendPublic(response, requestId, this.#parts.catalog.modelCatalog()),
    ),
    '/pricing': publicRoute(({ response, requestId }) =>
      sendPublic(response, requestId, this.#parts.catalog.pricing()),
    ),
    '/health': probeRoute(({ request, response, requestId }) => {
      if (isStreamProbe(request)) this.#streamProbes.send(response, requestId)
      else sendJson(response, requestId, 200, { status: 'ok' })
    }),
    '/ready': probeRoute(({ response, requestId }) => {
      const readiness = this.#parts.readiness()
      sendJson(response, requestId, readiness.ready ? 200 : 503, readiness)
    }),
  }

  /** Below `/v1/models/`, where the rest of the path is the name of one. */
  readonly #model: Route = keyRoute((exchange) => this.#models(exchange, modelNameOf(exchange.request)))

  constructor(parts: ApiParts) {
    this.#parts = parts
    this.#uncounted = new AttemptLimiter(
      uncountedPerMinute,
      'requests for lists and stored answers of one key',
      parts.nowMs,
    )
    this.#streamProbes = new StreamProbes(parts.clock)
    this.#badKeys = new AttemptLimiter(badKeysPerMinute, 'an address that sends bad keys', parts.nowMs)
    this.#responses = new ResponsesApi({
      ...parts,
      uncounted: this.#uncounted,
      signalsOf: (principal) => this.#signalsOf(principal),
      readRequest: (exchange) => this.#readRequest(exchange, 'openai-responses'),
      sinkFor: ({ response, requestId }) => new ResponseSink(response, requestId, parts.nowMs),
    })
  }

  /** Requests that have not ended yet. */
  get openRequests(): number {
    return this.#open
  }

  /** Ends what is still under way, each in its own words. */
  cutAll(): void {
    this.#parts.gateway.cutAll()
  }

  /** What answers the bytes of a connection that are no request: there is nothing to route yet. */
  refusalOf(error: ServiceError): { readonly requestId: string; readonly body: string } {
    const requestId = this.#parts.mintRequestId()
    return { requestId, body: refusalBody(error, { requestId, links: this.#parts.links }) }
  }

  /** Answers one request. Never throws: what is thrown inside becomes its response. */
  handle(request: IncomingMessage, response: ServerResponse): void {
    this.#open += 1
    response.once('close', () => {
      this.#open -= 1
    })
    const exchange: Exchange = { request, response, requestId: this.#parts.mintRequestId(), principal: undefined }
    this.#serve(exchange)
      .catch((error: unknown) => this.#refuse(exchange, error))
      .catch((error: unknown) => this.#giveUp(exchange, error))
  }

  /** Answers an upgrade: WebSockets are not served yet, and clients fall back at once when told so (426). */
  refuseUpgrade(request: IncomingMessage, response: ServerResponse): void {
    const exchange: Exchange = { request, response, requestId: this.#parts.mintRequestId(), principal: undefined }
    const refusal = new ServiceError('upgrade_required', { words: { baseUrl: this.#parts.baseUrl } })
    this.#refuse(exchange, refusal).catch((error: unknown) => this.#giveUp(exchange, error))
  }

  async #serve(exchange: Exchange): Promise<void> {
    const { request } = exchange
    const path = pathOf(request)
    const route = this.#routeOf(path, request.method)
    checkHeaders(request)
    if ((route?.gated ?? true) && this.#parts.edgeGate) passEdgeGate(request.headers['user-agent'])
    // Below /v1/ even what is not there asks for a key first (spec 5.4).
    if (route?.access === 'key' || path.startsWith('/v1/')) exchange.principal = await this.#authenticate(request)
    if (route === undefined) throw new ServiceError('not_found', { words: { baseUrl: this.#parts.baseUrl } })
    this.#checkMethod(request, route)
    await route.handle(exchange)
  }

  #routeOf(path: string, method: string | undefined): Route | undefined {
    if (Object.hasOwn(this.#routes, path)) return this.#routes[path]
    if (path.startsWith(modelsPrefix) && path.length > modelsPrefix.length) return this.#model
    return this.#responses.routeOf(path, method)
  }

  #checkMethod({ method }: IncomingMessage, route: Route): void {
    const isAllowed = method === route.method || (method === 'HEAD' && route.method === 'GET')
    if (!isAllowed) {
      const shown = /^[A-Z]{1,10}$/.test(method ?? '') ? method! : 'This method'
      throw new ServiceError('method_not_allowed', { words: { method: shown, allowed: route.allowed ?? route.method } })
    }
  }

  async #authenticate(request: IncomingMessage): Promise<Principal> {
    try {
      return await this.#parts.gateway.authenticate(request.headers.authorization)
    } catch (error) {
      // Only bad keys are counted and held back: a good one behind the same address is not made to pay for them.
      if (error instanceof ServiceError && error.status === 401) this.#badKeys.take(request.socket.remoteAddress ?? '')
      throw error
    }
  }

  async #answer(exchange: Exchange, format: ClientFormatId): Promise<void> {
    const { response, requestId, principal } = exchange
    const { gateway, nowMs } = this.#parts
    if (principal === undefined) throw new Error('a model route without a principal')
    const request = await this.#readRequest(exchange, format)
    await gateway.answer(principal, request, new ResponseSink(response, requestId, nowMs))
  }

  async #readRequest({ request, requestId }: Exchange, format: ClientFormatId): Promise<ModelRequest> {
    const { limits, clock } = this.#parts
    if (this.#open > limits.streams) throw new ServiceError('server_busy', { retryAfterSeconds: 1 })
    const body = await readJsonBody(request, { maxBytes: limits.bodyBytes, timeoutMs: limits.bodyMs, clock })
    const names = relayById(format).passedHeaders
    const passed = names === undefined ? undefined : passedHeaders(request, names)
    return { id: requestId, format, ...body, timeoutMs: statedTimeoutMs(request), passedHeaders: passed }
  }

  /** The list of models, or the one of that name. */
  async #models({ response, requestId, principal }: Exchange, name?: string): Promise<void> {
    const { catalog, gateway, nowMs } = this.#parts
    if (principal === undefined) throw new Error('a key route without a principal')
    this.#uncounted.take(principal.keyId)
    const signals = await this.#signalsOf(principal)
    if (signals === undefined) throw new ServiceError('store_unavailable', { retryAfterSeconds: 1 })
    const served = await gateway.profilesFor(principal)
    const { plan } = principal
    const body = name === undefined ? catalog.models(served, plan) : catalog.model(name, served, plan)
    sendJson(response, requestId, 200, body, [
      'Cache-Control',
      'no-store',
      ...usageHeaders(signals, nowMs()),
      ...backendsHeader(served.map(({ count }) => count)),
    ])
  }

  async #refuse(exchange: Exchange, thrown: unknown): Promise<void> {
    const { request, response, requestId, principal } = exchange
    const { log, links, nowMs } = this.#parts
    const error = thrown instanceof ServiceError ? thrown : new ServiceError('internal_error', { cause: thrown })
    if (error.code === 'internal_error') log({ event: 'internal_error', requestId, ...describeBug(error.cause) })
    if (response.headersSent || response.destroyed) {
      response.destroy()
      return
    }
    const signals = principal === undefined ? undefined : await this.#signalsOf(principal)
    const isLate = error.code === 'request_timeout'
    const context = {
      requestId,
      links,
      nowMs: nowMs(),
      signals,
      model: pathOf(request).startsWith('/v1/'),
      close: isLate,
    }
    writeRefusal(response, error, context)
    if (!isLate) discardRest(request)
  }

  /** A refusal itself could not be written. */
  #giveUp({ response, requestId }: Exchange, error: unknown): void {
    this.#parts.log({ event: 'internal_error', requestId, ...describeBug(error) })
    response.destroy()
  }

  async #signalsOf(principal: Principal): Promise<UsageSignals | undefined> {
    try {
      return await this.#parts.gateway.signals(principal)
    } catch {
      // The counters cannot be read: the refusal itself matters more, and nothing false is shown.
      return undefined
    }
  }
}

function pathOf({ url = '' }: IncomingMessage): string {
  const query = url.indexOf('?')
  return query < 0 ? url : url.slice(0, query)
}

/** The name behind `/v1/models/`: its slash may be encoded or not. What cannot be decoded is no name of ours. */
function modelNameOf(request: IncomingMessage): string {
  const name = pathOf(request).slice(modelsPrefix.length)
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

/** Callers write their whole body before they read: it is taken, so that they get to read why it was refused. */
function discardRest(request: IncomingMessage): void {
  let discarded = 0
  request.on('data', (chunk: Buffer) => {
    discarded += chunk.length
    if (discarded > maxDiscardedBytes) request.destroy()
  })
  request.resume()
}

function modelRoute(handle: Route['handle']): Route {
  return { method: 'POST', access: 'key', gated: true, handle }
}

function keyRoute(handle: Route['handle']): Route {
  return { method: 'GET', access: 'key', gated: true, handle }
}

function publicRoute(handle: Route['handle']): Route {
  return { method: 'GET', access: 'public', gated: true, handle }
}

function probeRoute(handle: Route['handle']): Route {
  return { method: 'GET', access: 'public', gated: false, handle }
}
