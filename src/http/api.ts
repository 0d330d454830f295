import type { IncomingMessage, ServerResponse } from 'node:http'
import type { UsageSignals } from '../domain/account-meter.ts'
import type { Account } from '../domain/accounts.ts'
import { type ErrorCode, ServiceError } from '../domain/errors.ts'
import type { EventLog } from '../domain/events.ts'
import { clientFormatIds, requestFormatIds, type ClientFormatId } from '../domain/format-id.ts'
import type { Links } from '../domain/links.ts'
import { formatById } from '../formats/formats.ts'
import { openaiConventions } from '../formats/openai/client-conventions.ts'
import { type RequestWork, UnadmittedWork } from '../gateway/auth/unadmitted-work.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Generations } from '../gateway/generations/generations.ts'
import type { ModelRequest, Principal } from '../gateway/ports.ts'
import type { Conversations } from '../gateway/responses/conversations.ts'
import type { StoredResponses } from '../gateway/responses/stored-responses.ts'
import type { Clock } from '../runtime/clock.ts'
import { describeBug } from '../runtime/describe-bug.ts'
import type { FairShare } from '../runtime/fair-share.ts'
import { freeBytes } from '../runtime/gathered-bytes.ts'
import { AttemptLimiter, type LimiterState } from './attempt-limiter.ts'
import { Callers, type CallersDeps } from './caller-authentication.ts'
import { Cors } from './cors.ts'
import { discardRest } from './discard-rest.ts'
import { EdgeGate } from './edge-gate.ts'
import type { Catalog } from './endpoints/catalog.ts'
import { ConversationsApi } from './endpoints/conversations-api.ts'
import { Estimates } from './endpoints/estimates.ts'
import { KeyedApi } from './endpoints/keyed-api.ts'
import { ResponsesApi } from './endpoints/responses-api.ts'
import { type OwnRecords, SelfService } from './endpoints/self-service.ts'
import { errorBody, writeErrorResponse } from './error-response.ts'
import { modelRequest } from './model-request.ts'
import { baseUrlFor, isModelPath, conventionsAt, modelNameOf, pathOf } from './paths.ts'
import { readJsonBody, type BodyLimits, type JsonBody } from './read-body.ts'
import type { Readiness } from './readiness.ts'
import type { RefusedRequests } from './refused-requests.ts'
import { checkRequestHeaders } from './request-headers.ts'
import { Intake } from './request-intake.ts'
import { notAllowed, sendAllowed, sendEmpty, sendJson, sendPublic } from './respond.ts'
import { ResponseSink } from './response-sink.ts'
import { keyRoute, modelRoute, probeRoute, publicRoute, type Exchange, type ApiRoute } from './route.ts'
import { isStreamProbe, StreamProbes } from './stream-probe.ts'
import { unknownPathError } from './unknown-path.ts'
import { backendsHeader, usageHeaders, type HeaderList } from './usage-headers.ts'
import { ResponsesSockets } from './websocket/responses-sockets.ts'

/** Requests per minute of one account to the endpoints that do not count toward its plan (contract 5.15, 6.10). */
const uncountedPerMinute = 300

export interface ApiDeps extends CallersDeps {
  readonly gateway: Gateway
  readonly stored: StoredResponses
  readonly conversations: Conversations
  readonly ownRecords: OwnRecords
  readonly generations: Generations
  readonly catalog: Catalog
  readonly links: Links
  readonly baseUrl: string
  readonly edgeGate: boolean
  /** Origins whose pages may call the API; `*` allows all. */
  readonly corsOrigins: readonly string[]
  readonly limits: { readonly bodyBytes: number; readonly bodyMs: number; readonly streams: number }
  readonly clock: Clock
  readonly nowMs: () => number
  readonly mintRequestId: () => string
  readonly log: EventLog
  readonly readiness: () => Readiness
  /** Counts rejected requests per account. */
  readonly refused: Pick<RefusedRequests, 'note'>
  /** Called with the error of every request that is rejected before admission; must not throw. */
  readonly onRefused?: ((code: ErrorCode) => void) | undefined
}

/** Options for requests that differ from the usual. */
export interface HandleOptions {
  /** The calling account, if the app has already authenticated it. */
  readonly caller?: Account
  /** Whether the connection accepts only probes. */
  readonly probesOnly?: boolean
}

/** The public API: one table of routes, and one function that answers or rejects every request (contract 1.11). */
export class Api {
  readonly #deps: ApiDeps
  readonly #uncounted: AttemptLimiter
  readonly #callers: Callers
  readonly #intake: Intake
  readonly #work: UnadmittedWork
  readonly #edgeGate: EdgeGate | undefined
  readonly #cors: Cors
  readonly #streamProbes: StreamProbes
  readonly #keyed: KeyedApi
  readonly #responses: ResponsesApi
  readonly #conversations: ConversationsApi
  readonly #estimates: Estimates
  readonly #selfService: SelfService
  /** Connections that stay open for many answers. */
  readonly sockets: ResponsesSockets
  readonly #bodyLimits: BodyLimits
  #open = 0

  /** Everything that is served at one fixed path (contract 2.1, 2.2, 2.10-2.17, 2.19). */
  readonly #routes: Readonly<Record<string, ApiRoute>> = {
    ...Object.fromEntries(
      requestFormatIds.map((id) => [`/v1${formatById(id).path}`, modelRoute((exchange) => this.#answer(exchange, id))]),
    ),
    ...Object.fromEntries(
      clientFormatIds.flatMap((id) => {
        const { tokenCount } = formatById(id).conventions
        if (tokenCount === undefined) return []
        return [
          [`/v1${tokenCount.path}`, modelRoute((exchange) => this.#estimates.countTokens(exchange, id, tokenCount))],
        ]
      }),
    ),
    '/v1/route': modelRoute((exchange) => this.#estimates.explain(exchange)),
    // Agents send this before their first request to check that the server is up.
    'HEAD /': { ...probeRoute(({ response, requestId }) => sendEmpty(response, requestId)), method: 'HEAD' },
    '/v1/models': keyRoute((exchange) => this.#models(exchange)),
    '/model-catalog': publicRoute(({ response, requestId }) =>
      sendPublic(response, requestId, this.#deps.catalog.modelCatalog()),
    ),
    '/pricing': publicRoute(async ({ response, requestId }) =>
      sendPublic(response, requestId, await this.#deps.catalog.pricing()),
    ),
    '/health': probeRoute(({ request, response, requestId }) => {
      if (isStreamProbe(request)) this.#streamProbes.send(response, requestId)
      else sendJson(response, requestId, 200, { status: 'ok' })
    }),
    '/ready': probeRoute(({ response, requestId }) => {
      const readiness = this.#deps.readiness()
      sendJson(response, requestId, readiness.ready ? 200 : 503, readiness)
    }),
  }

  /** Routes below `/v1/models/`; the rest of the path is the model's name. */
  readonly #model: ApiRoute = keyRoute((exchange) => this.#models(exchange, modelNameOf(pathOf(exchange.request))))

  constructor(deps: ApiDeps) {
    this.#deps = deps
    this.#uncounted = new AttemptLimiter(
      'lookups',
      uncountedPerMinute,
      'for this account’s requests that do not count toward the quota, such as listing models',
      deps.clock,
    )
    this.#intake = new Intake(deps.limits, deps.clock, (plan, isRetry) => deps.gateway.assertAccepted(plan, isRetry))
    this.#work = new UnadmittedWork(deps.limits.bodyBytes, deps.clock)
    this.#streamProbes = new StreamProbes(deps.clock)
    this.#callers = new Callers(deps)
    const edgeGate = deps.edgeGate ? new EdgeGate(deps.log, deps.nowMs) : undefined
    this.#edgeGate = edgeGate
    this.#cors = new Cors(deps.corsOrigins)
    const { limits, clock } = deps
    this.#bodyLimits = { maxBytes: limits.bodyBytes, timeoutMs: limits.bodyMs, clock }
    const shared = {
      ...deps,
      uncounted: this.#uncounted,
      intake: this.#intake,
      work: this.#work,
      signalsOf: (principal: Principal) => this.#signalsOf(principal),
    }
    this.sockets = new ResponsesSockets({
      ...shared,
      edgeGate,
      authenticate: (request) => this.#callers.authenticate(request),
      isServed: (path) => this.#routeAt(path, undefined) !== undefined,
    })
    this.#keyed = new KeyedApi(shared)
    this.#responses = new ResponsesApi({
      ...shared,
      keyed: this.#keyed,
      readRequest: (exchange) => this.#readRequest(exchange, 'openai-responses'),
      sinkFor: ({ response, requestId }) => new ResponseSink(response, requestId, deps.nowMs, undefined),
    })
    this.#estimates = new Estimates({
      ...shared,
      readRequest: (exchange, format) => this.#readRequest(exchange, format),
      asRun: (request) => this.#keyed.asRun(request),
      headersFor: (principal, limiter) => this.#uncountedHeaders(principal, limiter),
    })
    this.#selfService = new SelfService(shared, deps.ownRecords)
    this.#conversations = new ConversationsApi({
      ...shared,
      readBody: async (exchange) => (await this.#readBody(exchange, this.#beginWork(exchange))).body,
    })
  }

  /** Requests that have not ended yet. */
  get openRequests(): number {
    return this.#open + this.sockets.answering + this.#deps.generations.running
  }

  /** The requests being answered, as a share of their limit. */
  get openShare(): number {
    return this.#intake.openShare
  }

  /** The resources that callers share fairly, by name (contract 29.2, 29.3). */
  get shares(): Readonly<Record<string, FairShare>> {
    return { ...this.#intake.shares, ...this.sockets.shares }
  }

  /** Aborts everything that is still running, each with an error in its own format; returns how many there were. */
  abortAll(): number {
    return this.#deps.gateway.abortAll()
  }

  /** The error response for bytes that are not a request: there is nothing to route yet. */
  errorResponseFor(error: ServiceError): { readonly requestId: string; readonly body: string } {
    const requestId = this.#deps.mintRequestId()
    this.#deps.onRefused?.(error.code)
    return { requestId, body: errorBody(error, { requestId, links: this.#deps.links, conventions: openaiConventions }) }
  }

  /** Answers one request. Never throws: errors become its response. */
  handle(request: IncomingMessage, response: ServerResponse, how?: HandleOptions): void {
    this.#open += 1
    const exchange = this.#exchange(request, response)
    response.on('close', () => {
      this.#open -= 1
      exchange.held?.[Symbol.dispose]()
    })
    this.#cors.allow(request, response)
    void this.#serve(exchange, how)
  }

  /** Answers an upgrade request: with a WebSocket, or as any other request. Never throws. */
  upgrade(request: IncomingMessage, response: ServerResponse, head: Buffer): void {
    const exchange = this.#exchange(request, response)
    this.sockets.accept(exchange, pathOf(request), head).catch((error: unknown) => this.#refuse(exchange, error))
  }

  #exchange(request: IncomingMessage, response: ServerResponse): Exchange {
    return { request, response, requestId: this.#deps.mintRequestId(), principal: undefined, held: undefined }
  }

  /** Never rejects. */
  async #serve(exchange: Exchange, { caller, probesOnly = false }: HandleOptions = {}): Promise<void> {
    const { request } = exchange
    try {
      const path = pathOf(request)
      const route = this.#routeAt(path, request.method)
      checkRequestHeaders(request)
      if (probesOnly && route?.gated !== false) throw new ServiceError('server_busy', { retryAfterSeconds: 1 })
      if (request.method === 'OPTIONS') {
        sendAllowed(exchange.response, exchange.requestId, this.#methodsAt(path))
        return
      }
      if (request.method === 'TRACE') throw notAllowed('TRACE', this.#methodsAt(path))
      if (route?.gated ?? true) this.#edgeGate?.pass(request.headers['user-agent'], exchange.requestId)
      // Below /v1/ even unknown paths require a key first (contract 2.20).
      if (caller !== undefined) exchange.principal = this.#deps.gateway.principalOf(caller)
      else if (route?.access === 'key' || path.startsWith('/v1/')) {
        const principal = this.#callers.authenticate(request)
        exchange.principal = principal instanceof Promise ? await principal : principal
      }
      if (route === undefined) throw unknownPathError(path, baseUrlFor(path, this.#deps.baseUrl))
      this.#checkMethod(request, route)
      await route.handle(exchange)
    } catch (error) {
      await this.#refuse(exchange, error)
    }
  }

  #routeAt(path: string, method: string | undefined): ApiRoute | undefined {
    if (Object.hasOwn(this.#routes, path)) return this.#routes[path]
    if (isModelPath(path)) return this.#model
    const found = this.#responses.routeOf(path, method) ?? this.#conversations.routeOf(path, method)
    return found ?? this.#selfService.routeOf(path) ?? (method === 'HEAD' ? this.#routes[`HEAD ${path}`] : undefined)
  }

  /** The methods of a path that have routes; empty if it has none. */
  #methodsAt(path: string): string {
    if (path === '*') return 'GET, POST, DELETE'
    const route = this.#routeAt(path, 'HEAD')
    return route === undefined ? '' : (route.allowed ?? route.method)
  }

  #checkMethod({ method }: IncomingMessage, route: ApiRoute): void {
    const isAllowed = method === route.method || (method === 'HEAD' && route.method === 'GET')
    if (!isAllowed) {
      throw notAllowed(method, route.allowed ?? route.method)
    }
  }

  async #answer(exchange: Exchange, format: ClientFormatId): Promise<void> {
    const { response, requestId, principal } = exchange
    if (principal === undefined) throw new Error('a model route without a principal')
    const work = this.#beginWork(exchange)
    const read = modelRequest(exchange, format, work, await this.#readBody(exchange, work))
    const request = read instanceof Promise ? await read : read
    if (this.#keyed.takes(exchange, request)) return this.#keyed.answer(exchange, request)
    const sink = new ResponseSink(response, requestId, this.#deps.nowMs, formatById(format).conventions.requestIdHeader)
    try {
      const share = this.#intake.answerUntilClosed(exchange, principal, request)
      request.held = share instanceof Promise ? await share : share
      await this.#deps.gateway.answer(principal, request, sink)
    } finally {
      // Nothing reads the body after the answer. The garbage collector would take longer (decision 67).
      freeBytes(request.bytes)
    }
  }

  async #readRequest(exchange: Exchange, format: ClientFormatId): Promise<ModelRequest> {
    const work = this.#beginWork(exchange)
    return await modelRequest(exchange, format, work, await this.#readBody(exchange, work))
  }

  #beginWork({ principal }: Exchange): RequestWork {
    if (principal === undefined) throw new Error('a body without a principal')
    return this.#work.begin(principal.accountId)
  }

  /** Reads the body, counted against its sender's shares (contract 29.2). @throws ServiceError */
  #readBody({ request }: Exchange, work: RequestWork): Promise<JsonBody> {
    return readJsonBody(request, this.#bodyLimits, this.#intake.read(work, this.#callers.groupOf(request)))
  }

  /** The list of models, or a single one by name. */
  async #models({ response, requestId, principal }: Exchange, name?: string): Promise<void> {
    const { catalog, gateway } = this.#deps
    if (principal === undefined) throw new Error('a key route without a principal')
    const limiter = this.#uncounted.take(principal.accountId)
    if (name !== undefined) gateway.assertListed(principal, name)
    const headers = await this.#uncountedHeaders(principal, limiter)
    const served = await gateway.profilesFor(principal)
    const { plan } = principal
    const body = name === undefined ? catalog.models(served, plan) : catalog.model(name, served, plan)
    sendJson(response, requestId, 200, body, [...headers, ...backendsHeader(served.map(({ count }) => count))])
  }

  /** Headers of a successful response that takes nothing from the quota (contract 5.5, 5.6). */
  async #uncountedHeaders(principal: Principal, limiter: LimiterState): Promise<HeaderList> {
    const signals = await this.#signalsOf(principal)
    if (signals === undefined) throw new ServiceError('store_unavailable', { retryAfterSeconds: 1 })
    return ['Cache-Control', 'no-store', ...usageHeaders(signals, this.#deps.nowMs(), limiter)]
  }

  /** Never rejects. */
  async #refuse(exchange: Exchange, thrown: unknown): Promise<void> {
    try {
      await this.#writeRefusal(exchange, thrown)
    } catch (error) {
      // The error response itself could not be written.
      this.#deps.log({ event: 'internal_error', requestId: exchange.requestId, ...describeBug(error) })
      exchange.response.destroy()
    }
  }

  /**
   * Answers with the error. Anything unexpected is `internal_error`, with its details in the log only (contract 4.11).
   */
  async #writeRefusal(exchange: Exchange, thrown: unknown): Promise<void> {
    const { request, response, requestId, principal } = exchange
    const { log, links, nowMs, refused, onRefused } = this.#deps
    const error = thrown instanceof ServiceError ? thrown : new ServiceError('internal_error', { cause: thrown })
    if (error.code === 'internal_error') log({ event: 'internal_error', requestId, ...describeBug(error.cause) })
    if (response.headersSent || response.destroyed) {
      response.destroy()
      return
    }
    const owner = error.facts.owner ?? principal
    if (!error.isRecorded) {
      onRefused?.(error.code)
      if (owner !== undefined) refused.note(owner, error.code, requestId)
    }
    const signals = error.facts.signals ?? (principal && (await this.#signalsOf(principal)))
    const close = error.code === 'request_timeout'
    const path = pathOf(request)
    const about = { conventions: conventionsAt(path), model: path.startsWith('/v1/') }
    writeErrorResponse(response, error, { requestId, links, nowMs: nowMs(), signals, close, ...about })
    if (!close) discardRest(request, error.code === 'server_busy', this.#bodyLimits)
  }

  async #signalsOf(principal: Principal): Promise<UsageSignals | undefined> {
    try {
      return await this.#deps.gateway.signals(principal)
    } catch {
      // The counters are unavailable: send the error without them rather than with wrong values (contract 5.9).
      return undefined
    }
  }
}
