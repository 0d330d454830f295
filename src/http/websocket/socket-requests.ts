import type { IncomingMessage } from 'node:http'
import type { UsageSignals } from '../../domain/account-meter.ts'
import type { Usage } from '../../domain/conversation.ts'
import { type ErrorCode, invalidRequest, type KeyOwner, ServiceError } from '../../domain/errors.ts'
import type { EventLog } from '../../domain/events.ts'
import { type JsonObject, isObject } from '../../domain/json.ts'
import type { Links } from '../../domain/links.ts'
import { formatById } from '../../formats/formats.ts'
import { openaiConventions } from '../../formats/openai/client-conventions.ts'
import type { RequestWork, UnadmittedWork } from '../../gateway/auth/unadmitted-work.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { ModelRequest, Principal } from '../../gateway/ports.ts'
import type { StoredResponses } from '../../gateway/responses/stored-responses.ts'
import { describeBug } from '../../runtime/describe-bug.ts'
import type { AttemptLimiter } from '../attempt-limiter.ts'
import { withAttachedTool } from '../endpoints/attached-tools.ts'
import { errorBody, errorHeaders, type ErrorResponseContext } from '../error-response.ts'
import type { RefusedRequests } from '../refused-requests.ts'
import { parseRequestHeaders } from '../request-headers.ts'
import type { Intake } from '../request-intake.ts'
import { headersObject } from '../usage-headers.ts'
import type { ConnectionCache, HistoryNode } from './connection-cache.ts'
import { inputText, outputText, readMessage, requestOf, type CreateMessage } from './create-message.ts'
import { findStreamId } from './find-stream-id.ts'
import type { SocketSink } from './socket-sink.ts'

const format = 'openai-responses'
/** No model was called. */
const noUsage: Usage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0, source: 'counted' }

/** Dependencies of WebSocket requests. */
export interface SocketRequestsDeps {
  readonly gateway: Gateway
  readonly stored: StoredResponses
  readonly links: Links
  readonly limits: { readonly bodyBytes: number }
  readonly nowMs: () => number
  readonly log: EventLog
  /** Rate limit for requests that the plan does not count (contract 5.15, 6.10). */
  readonly uncounted: AttemptLimiter
  readonly authenticate: (request: IncomingMessage) => Principal | Promise<Principal>
  readonly signalsOf: (principal: Principal) => Promise<UsageSignals | undefined>
  readonly intake: Intake
  readonly work: UnadmittedWork
  /** Counts rejected requests per account. */
  readonly refused: Pick<RefusedRequests, 'note'>
  /** Called with the error of every message that is rejected before admission. */
  readonly onRefused?: ((code: ErrorCode) => void) | undefined
}

/** One message, its connection, and the sink for its answer. */
export interface SocketRequestOptions {
  readonly bytes: Buffer
  readonly requestId: string
  /** The request that opened the connection: its key is checked again for every message. */
  readonly request: IncomingMessage
  /** The key that opened the connection. */
  readonly owner: KeyOwner
  readonly memory: ConnectionCache
  readonly sink: SocketSink
  /** How the answer ended. */
  readonly ending: Ending
}

/** How an answer ended: the response of its terminal event, and whether its error is not worth a retry. */
export interface Ending {
  response: JsonObject | undefined
  isFinal: boolean
}

/**
 * Answers the messages of WebSocket connections: each is a separate request, admitted, recorded, and charged like
 * one over HTTP (contract 14.1).
 */
export class SocketRequests {
  readonly #deps: SocketRequestsDeps
  #answering = 0

  constructor(deps: SocketRequestsDeps) {
    this.#deps = deps
  }

  /** Answers in progress. */
  get answering(): number {
    return this.#answering
  }

  /** Answers one message; returns the error if it was rejected. Never throws. */
  async run(options: SocketRequestOptions): Promise<ServiceError | undefined> {
    let principal: Principal | undefined
    let message: CreateMessage | undefined
    try {
      principal = await this.#deps.authenticate(options.request)
      const work = this.#deps.work.begin(principal.accountId)
      work.spend(options.bytes.length)
      message = await readMessage(options.bytes, this.#deps.limits.bodyBytes)
      if (message === undefined) return undefined
      if (message.streamId !== undefined) options.sink.streamId = message.streamId
      await this.#answer(options, principal, message, work)
      if (options.ending.isFinal) forgetPrevious(options, message)
      return undefined
    } catch (thrown) {
      const error = asServiceError(thrown)
      // A message that may be sent again unchanged must still find its previous answer.
      if (!error.entry.retryable) forgetPrevious(options, message)
      await this.refuse(options, error, principal)
      return error
    }
  }

  /** Sends the error that replaces the answer. */
  async refuse(options: SocketRequestOptions, error: ServiceError, principal?: Principal): Promise<void> {
    const { sink, requestId, owner } = options
    const { links, nowMs, signalsOf, refused, onRefused } = this.#deps
    this.#logBug(requestId, error)
    if (sink.isOpen) return sink.drop()
    if (!error.isRecorded) {
      onRefused?.(error.code)
      refused.note(owner, error.code, requestId)
    }
    // Without waiting, if possible: the connection may close at once.
    const named = this.#findStreamId(options)
    const streamId = named instanceof Promise ? await named : named
    if (streamId !== undefined) sink.streamId = streamId
    const signals = error.facts.signals ?? (principal && (await signalsOf(principal)))
    sink.refuse(errorMessage(error, { requestId, links, nowMs: nowMs(), signals }))
  }

  #logBug(requestId: string, { code, cause }: ServiceError): void {
    if (code === 'internal_error') this.#deps.log({ event: 'internal_error', requestId, ...describeBug(cause) })
  }

  /** What the sink does not know yet. Scanning long messages counts as work for rejected requests (contract 29.5). */
  #findStreamId({ bytes, sink, owner }: SocketRequestOptions): ReturnType<typeof findStreamId> {
    if (sink.hasStreamId) return undefined
    return findStreamId(bytes, (scanned) => {
      try {
        this.#deps.work.begin(owner.accountId).spend(scanned)
        return true
      } catch {
        return false
      }
    })
  }

  async #answer(
    options: SocketRequestOptions,
    principal: Principal,
    message: CreateMessage,
    work: RequestWork,
  ): Promise<void> {
    const { gateway, limits, intake } = this.#deps
    const { requestId, request, memory, sink, ending } = options
    const before = message.previousId === undefined ? undefined : memory.find(message.previousId)
    const parsed = await requestOf(message, before, limits.bodyBytes)
    const modelRequest = await withAttachedTool(request, {
      id: requestId,
      format,
      ...parsed,
      ...parseRequestHeaders(request),
      // The header describes the handshake, not this message.
      isRetry: false,
      work,
    })
    if (!message.generate) {
      await this.#prepare(options, principal, message, modelRequest, before)
    } else {
      const held = await intake.answerInTurn(principal, modelRequest)
      this.#answering += 1
      const answered = gateway.answer(principal, { ...modelRequest, held }, sink).finally(() => {
        this.#answering -= 1
        held[Symbol.dispose]()
      })
      // Once the answer is sent, the next message does not wait for its record.
      await Promise.race([answered, sink.over])
      answered.catch((thrown: unknown) => this.#logBug(requestId, asServiceError(thrown)))
    }
    const { response } = ending
    // A stored answer is found in the store.
    if (response === undefined || response['store'] === true || typeof response['id'] !== 'string') return
    // An answer in a conversation is continued through the conversation.
    if (isObject(response['conversation'])) return
    const text = [inputText(message.json), outputText(response)].filter((part) => part !== '').join(',')
    memory.set(response['id'], text, { before, storedId: before === undefined ? message.previousId : undefined })
  }

  /** Answers without calling a model, so that a later message can continue from this one (contract 14.8). */
  async #prepare(
    { requestId, sink }: SocketRequestOptions,
    principal: Principal,
    { previousId }: CreateMessage,
    modelRequest: ModelRequest,
    before: HistoryNode | undefined,
  ): Promise<void> {
    const { gateway, uncounted, nowMs, signalsOf } = this.#deps
    uncounted.take(principal.accountId)
    const conversation = gateway.check(principal, modelRequest)
    if (conversation.hints.conversationId !== undefined) {
      throw invalidRequest('conversation', 'conversation cannot be used with "generate": false.')
    }
    if (previousId !== undefined && before === undefined) await this.#assertStored(principal, previousId)
    const signals = await signalsOf(principal)
    if (signals === undefined) throw new ServiceError('store_unavailable', { retryAfterSeconds: 1 })
    const nowSeconds = (): number => Math.floor(nowMs() / 1000)
    const writer = formatById(format).writeAnswer({
      conversation,
      requestId,
      createdAt: nowSeconds(),
      nowSeconds,
      isStored: false,
      previousResponseId: previousId,
      mintId: () => requestId,
    })
    const events = writer.writeEvents([
      { type: 'usage', usage: noUsage },
      { type: 'finish', reason: 'stop' },
    ])
    sink.open({ stream: true, upstream: undefined, simulated: false, retryCount: 0, signals })
    sink.end(events + writer.writeEnd())
  }

  /** @throws ServiceError `previous_response_not_found`, `store_unavailable` */
  async #assertStored({ accountId }: Principal, id: string): Promise<void> {
    try {
      await this.#deps.stored.find(accountId, id)
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'response_not_found') throw error
      throw new ServiceError('previous_response_not_found', { param: 'previous_response_id' })
    }
  }
}

/** Reads the events that end an answer. */
export function noteEnding(ending: Ending, event: JsonObject): void {
  const { type, response, error } = event
  if (type === 'error') ending.isFinal = isObject(error) && error['retryable'] === false
  else if (isObject(response)) ending.response = response
}

/** Anything unexpected is `internal_error`, with its details in the log only (contract 4.11). */
function asServiceError(thrown: unknown): ServiceError {
  return thrown instanceof ServiceError ? thrown : new ServiceError('internal_error', { cause: thrown })
}

/** An error as a message (contract 14.3): the status, body, and headers that HTTP would send. */
function errorMessage(
  error: ServiceError,
  given: Omit<ErrorResponseContext, 'model' | 'conventions' | 'close'>,
): JsonObject {
  const context = { ...given, model: true, conventions: openaiConventions }
  const body = JSON.parse(errorBody(error, context)) as JsonObject
  const headers = headersObject(errorHeaders(error, context))
  return { type: 'error', status: error.status, ...body, headers }
}

/**
 * A failed request also deletes the answer that it continued, as documented: its client starts over (contract 14.5).
 */
function forgetPrevious({ memory }: SocketRequestOptions, message: CreateMessage | undefined): void {
  if (message?.previousId !== undefined) memory.delete(message.previousId)
}
