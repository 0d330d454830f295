import type { IncomingMessage } from 'node:http'
import type { UsageSignals } from '../../domain/account-meter.ts'
import { invalidRequest, ServiceError } from '../../domain/errors.ts'
import type { ClientFormatId } from '../../domain/format-id.ts'
import {
  backgroundDigest,
  idempotencyKeyHeader,
  keyDigest,
  readIdempotencyKey,
  requestDigest,
} from '../../domain/idempotency.ts'
import { attachedToolsHeader } from '../../domain/profiles.ts'
import { formatById } from '../../formats/formats.ts'
import type { KeyedRequest } from '../../gateway/generations/generation-entry.ts'
import type { StoredGeneration } from '../../gateway/generations/generation-store.ts'
import type { Generations, StartedResponse } from '../../gateway/generations/generations.ts'
import type { ModelRequest, Principal } from '../../gateway/ports.ts'
import { rewriteRequest } from '../../gateway/rewrite-request.ts'
import { principalOf, queryOf } from '../lookup-route.ts'
import type { AnsweringShare, Intake } from '../request-intake.ts'
import { sendJson } from '../respond.ts'
import { replayedHeader, ResponseSink } from '../response-sink.ts'
import type { Exchange } from '../route.ts'
import { usageHeaders } from '../usage-headers.ts'

/** With which a client continues after the last event that it received. */
const lastEventHeader = 'last-event-id'
const wholeNumber = /^\d{1,9}$/

export interface KeyedApiDeps {
  readonly generations: Generations
  readonly intake: Intake
  readonly nowMs: () => number
  readonly signalsOf: (principal: Principal) => Promise<UsageSignals | undefined>
}

/** Model requests with an `Idempotency-Key`, and responses in the background (contract 39.1, 39.14). */
export class KeyedApi {
  readonly #deps: KeyedApiDeps

  constructor(deps: KeyedApiDeps) {
    this.#deps = deps
  }

  /**
   * Whether a request has a key that is used, or runs in the background.
   * @throws ServiceError `answer_interrupted` if it continues a stream that cannot be stored (contract 39.18)
   */
  takes(exchange: Exchange, model: ModelRequest): boolean {
    if (this.hasKey(exchange) || (isBackground(model) && this.#deps.generations.isOn)) return true
    if (model.body['stream'] === true && (exchange.request.headers[lastEventHeader] ?? '') !== '')
      throw new ServiceError('answer_interrupted')
    return false
  }

  /** Whether a request has a key that is used. */
  hasKey({ request }: Exchange): boolean {
    return request.headers[idempotencyKeyHeader] !== undefined && this.#deps.generations.isOn
  }

  /** The request as it runs, as far as its routing depends on it. @throws ServiceError `invalid_request` */
  async asRun(request: ModelRequest): Promise<ModelRequest> {
    return isBackground(request) && this.#deps.generations.isOn ? await inBackground(request) : request
  }

  /** @throws ServiceError */
  async answer(exchange: Exchange, request: ModelRequest): Promise<void> {
    const { generations, intake } = this.#deps
    const share = await intake.answerUntilClosed(exchange, principalOf(exchange), request)
    const keyed = await this.#keyedOf(exchange, request, share)
    if (!keyed.isBackground || request.body['stream'] === true) return generations.answer(keyed)
    await this.#sendStarted(exchange, await generations.start(keyed))
  }

  /** Answers a compaction with a key. @throws ServiceError */
  async compact(exchange: Exchange, request: ModelRequest, answer: KeyedRequest['answer']): Promise<void> {
    const { generations, intake } = this.#deps
    const share = await intake.answerUntilClosed(exchange, principalOf(exchange), request)
    await generations.answer({ ...(await this.#keyedOf(exchange, request, share, 'compact')), answer })
  }

  /** Continues the stream of a response (contract 39.15). @throws ServiceError */
  async resume(exchange: Exchange, generation: StoredGeneration): Promise<void> {
    const { generations, intake } = this.#deps
    const principal = principalOf(exchange)
    const { format } = generation
    const after = wholeNumberOf('starting_after', queryOf(exchange.request.url).get('starting_after') ?? undefined)
    const share = await intake.answerUntilClosed(exchange, principal, { bytes: { length: 0 } })
    await generations.resume(generation, {
      principal,
      sinkFor: (id) => this.#sinkFor(exchange, format, id),
      onClosed: (run) => onClosed(exchange, run),
      hold: () => intake.join(share),
      after: after ?? lastEventId(exchange.request),
    })
  }

  /** @throws ServiceError `invalid_request` */
  async #keyedOf(
    exchange: Exchange,
    request: ModelRequest,
    share: AnsweringShare,
    operation?: 'compact',
  ): Promise<KeyedRequest> {
    const principal = principalOf(exchange)
    const { accountId } = principal
    const { headers } = exchange.request
    const { id, format, bytes, passedHeaders = [] } = request
    const value = headers[idempotencyKeyHeader]
    const key = value === undefined ? undefined : readIdempotencyKey(value)
    const chosen = {
      path: operation ?? format,
      headers: [...passedHeaders, String(headers[attachedToolsHeader] ?? '')],
      body: bytes,
    }
    const runsAlone = operation === undefined && isBackground(request)
    return {
      principal,
      request: runsAlone ? await inBackground(request) : request,
      keyDigest: key === undefined ? backgroundDigest(accountId, id) : keyDigest(accountId, key),
      bodyDigest: requestDigest(accountId, key ?? id, chosen),
      sinkFor: (requestId) => this.#sinkFor(exchange, format, requestId),
      onClosed: (run) => onClosed(exchange, run),
      // The generation has the place of its request, also after the client has disconnected.
      hold: () => this.#deps.intake.join(share),
      after: lastEventId(exchange.request),
      isBackground: runsAlone,
    }
  }

  async #sendStarted({ response, principal }: Exchange, started: StartedResponse): Promise<void> {
    const signals = principal === undefined ? undefined : await this.#deps.signalsOf(principal)
    if (signals === undefined) throw new ServiceError('store_unavailable', { retryAfterSeconds: 1 })
    const headers = ['Cache-Control', 'no-store', ...usageHeaders(signals, this.#deps.nowMs())]
    if (started.isReplayed) headers.push(...replayedHeader)
    sendJson(response, started.requestId, 200, started.response, headers)
  }

  /** A replayed answer has the ID of the request that produced it: that one has a record (contract 39.7). */
  #sinkFor({ response }: Exchange, format: ClientFormatId, requestId: string): ResponseSink {
    return new ResponseSink(response, requestId, this.#deps.nowMs, formatById(format).conventions.requestIdHeader)
  }
}

function onClosed({ response }: Exchange, run: () => void): void {
  if (response.destroyed) run()
  else response.on('close', run)
}

/** Whether the request is for a response in the background. */
function isBackground({ format, body }: ModelRequest): boolean {
  return format === 'openai-responses' && body['background'] === true
}

/** The request as it runs: providers are not told (contract 11.19). @throws ServiceError `invalid_request` */
async function inBackground(request: ModelRequest): Promise<ModelRequest> {
  if (request.body['store'] === false)
    throw invalidRequest('background', 'A background response must be stored. Send the request without "store": false.')
  return { ...(await rewriteRequest(request, { background: undefined })), isBackground: true }
}

/** The ID of the last event that the client has; undefined if it wants all. @throws ServiceError `invalid_request` */
function lastEventId({ headers }: IncomingMessage): number | undefined {
  const value = headers[lastEventHeader]
  return wholeNumberOf(lastEventHeader, typeof value === 'string' ? value : undefined)
}

/** @throws ServiceError `invalid_request` */
function wholeNumberOf(name: string, value: string | undefined): number | undefined {
  if (value === undefined || value === '') return undefined
  if (!wholeNumber.test(value)) throw invalidRequest(name, `${name} must be the ID of an event of this stream.`)
  return Number(value)
}
