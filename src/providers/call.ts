import { Buffer } from 'node:buffer'
import { errors } from 'undici'
import type { Dispatcher } from 'undici'
import { UpstreamError } from '../domain/upstream.ts'
import type { UpstreamCall, UpstreamListener, UpstreamRequest } from '../gateway/ports.ts'
import { readHead } from './head.ts'
import type { UpstreamHeaders } from './head.ts'
import type { Lane, Pool, PooledCall, PoolRefusal } from './pool.ts'

/** Everything about a backend's requests that is the same for each of them, made once. */
export interface Route {
  readonly nowMs: () => number
  readonly onBug: (error: unknown) => void
  /** Given to undici for each request, which reads it at once and keeps nothing of it. */
  readonly options: {
    readonly method: 'POST'
    readonly path: string
    /** Flat: name, value, … The last value is the request's id. */
    readonly headers: string[]
    body: string | Buffer | null
  }
}

/** What undici is told when we give a call up. */
const abandoned = new Error('abandoned')

const silent: UpstreamListener = { onHead() {}, onData() {}, onEnd() {}, onError() {} }

/** A connection lost before the answer, as undici and Node name it. */
const resetCodes = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE', 'ECONNABORTED', 'ETIMEDOUT'])

/**
 * One upstream call, and undici's handler for it: one object for each call, and nothing for each chunk. The listener is
 * told `onEnd` or `onError` once and last, and nothing after `abort`.
 */
export class Call implements UpstreamCall, PooledCall {
  readonly #route: Route
  readonly #pool: Pool
  readonly #request: UpstreamRequest
  #listener: UpstreamListener
  #lane: Lane | undefined
  #controller: Dispatcher.DispatchController | undefined
  #ended = false
  #paused = false
  /** Whether this attempt's connection had carried an answer before. */
  #reused = false
  /** Whether a byte of the answer has arrived. */
  #answering = false
  #replayed = false

  constructor(route: Route, pool: Pool, request: UpstreamRequest, listener: UpstreamListener) {
    this.#route = route
    this.#pool = pool
    this.#request = request
    this.#listener = listener
  }

  start(lane: Lane): void {
    this.#lane = lane
    this.#controller = undefined
    this.#reused = false
    const { options } = this.#route
    const { body, headers } = this.#request
    options.body =
      typeof body === 'string' || Buffer.isBuffer(body)
        ? body
        : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    options.headers[options.headers.length - 1] = this.#request.requestId
    lane.client.dispatch(
      headers === undefined ? options : { ...options, headers: [...options.headers, ...headers] },
      this,
    )
    options.body = null
  }

  refuse(reason: PoolRefusal): void {
    queueMicrotask(() => this.#fail(new UpstreamError(reason === 'waited' ? 'timeout' : 'unreachable')))
  }

  pause(): void {
    this.#paused = true
    this.#controller?.pause()
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    // undici may hand over data at once and must not be inside another connection's parser then.
    queueMicrotask(() => {
      if (!this.#paused && !this.#ended) this.#controller?.resume()
    })
  }

  abort(): void {
    if (this.#ended) return
    this.#ended = true
    this.#listener = silent
    // While connecting there is no controller: `onRequestStart` declines then, and the connection stays for others.
    if (this.#controller !== undefined) this.#controller.abort(abandoned)
    else if (this.#lane === undefined) this.#pool.leave(this)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#ended) throw abandoned
    this.#controller = controller
    this.#reused = this.#lane!.served > 0
    if (this.#paused) controller.pause()
  }

  onResponseStarted(): void {
    this.#answering = true
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: UpstreamHeaders): void {
    // 1xx: an announcement, not the answer.
    if (status >= 200) this.#listener.onHead(readHead(status, headers, this.#route.nowMs))
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#listener.onData(chunk)
  }

  onResponseEnd(): void {
    const lane = this.#lane!
    this.#lane = undefined
    lane.served += 1
    this.#pool.release(lane)
    if (this.#ended) return
    this.#ended = true
    this.#listener.onEnd()
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    const lane = this.#lane
    this.#lane = undefined
    const started = this.#controller !== undefined
    if (lane !== undefined) {
      if (!started && error === abandoned) this.#pool.release(lane)
      else this.#pool.discard(lane)
    }
    if (this.#ended) {
      this.#reportBug(error)
      return
    }
    const code = codeOf(error)
    if (started && this.#reused && !this.#answering && !this.#replayed && resetCodes.has(code)) {
      this.#replayed = true
      this.#controller = undefined
      queueMicrotask(() => {
        if (!this.#ended) this.#pool.takeFresh(this)
      })
      return
    }
    this.#reportBug(error)
    const failure = new UpstreamError(started ? lostOutcome(code) : connectOutcome(code))
    // Without a controller this may run inside `start`, before the caller holds the call.
    if (started) this.#fail(failure)
    else queueMicrotask(() => this.#fail(failure))
  }

  #fail(failure: UpstreamError): void {
    if (this.#ended) return
    this.#ended = true
    const listener = this.#listener
    this.#listener = silent
    try {
      listener.onError(failure)
    } catch (error) {
      this.#reportBug(error)
    }
  }

  /** What a listener threw comes back through undici as if the network had failed. */
  #reportBug(error: unknown): void {
    if (error !== abandoned && !isNetworkError(error)) this.#route.onBug(error)
  }
}

function isNetworkError(error: unknown): boolean {
  const code = codeOf(error)
  if (error instanceof TypeError || error instanceof RangeError || code === 'UND_ERR_INVALID_ARG') return false
  return /^[A-Z]/.test(code)
}

function codeOf(error: unknown): string {
  // Its own code is sometimes missing.
  if (error instanceof errors.HTTPParserError) return 'HPE_'
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : ''
}

function connectOutcome(code: string): 'timeout' | 'unreachable' {
  return code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT' ? 'timeout' : 'unreachable'
}

/** A connection that was lost is `reset`; bytes that are not HTTP, or too many of them, are `broken`. */
function lostOutcome(code: string): 'reset' | 'broken' {
  if (resetCodes.has(code) || code === 'UND_ERR_DESTROYED' || code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH')
    return 'reset'
  return code.startsWith('HPE_') || code.startsWith('UND_ERR_') || code === '' ? 'broken' : 'reset'
}
