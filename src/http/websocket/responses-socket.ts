import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import { type KeyOwner, ServiceError } from '../../domain/errors.ts'
import type { EventLog } from '../../domain/events.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { describeBug } from '../../runtime/describe-bug.ts'
import type { FairShare } from '../../runtime/fair-share.ts'
import { ConnectionCache, type CacheBudget } from './connection-cache.ts'
import { noteEnding, type SocketRequests, type SocketRequestOptions } from './socket-requests.ts'
import { SocketSink, type SocketEnd } from './socket-sink.ts'

/** Maximum age of a connection, as OpenAI documents it (contract 14.9). */
const longestMs = 60 * 60_000
/** A connection is closed after this long without a request (contract 14.9). */
const idleMs = 15 * 60_000
/** Interval of heartbeats, which check and ping the connection (contract 14.9). */
const heartbeatMs = 20_000
/** A client that has read nothing for this many heartbeats in a row is disconnected. */
const maxStalledHeartbeats = 3
/** Messages that may wait for the request before them (contract 14.6). */
const maxWaiting = 16
/** Size of a ping frame without its payload: two bytes and a mask of four. */
const controlFrameBytes = 6

const goingAway = 1001
const normal = 1000
const policyViolation = 1008
const tryAgainLater = 1013

/** Dependencies of a connection. */
export interface SocketDeps {
  readonly requests: SocketRequests
  readonly budget: CacheBudget
  /** Bytes of waiting messages over all connections, by account. */
  readonly waitingBytes: FairShare
  readonly clock: Clock
  readonly limits: { readonly bodyBytes: number; readonly bodyMs: number }
  readonly nowMs: () => number
  readonly mintRequestId: () => string
  readonly log: EventLog
}

/** One connection: answers its messages one after the other. */
export class ResponsesSocket {
  readonly #deps: SocketDeps
  readonly #end: SocketEnd
  readonly #request: IncomingMessage
  readonly #memory: ConnectionCache
  readonly #owner: KeyOwner
  /** This connection's part of the shared bytes. */
  #heldBytes = 0
  readonly #waiting: Buffer[] = []
  #waitingBytes = 0
  /** Bytes of rejected messages whose `stream_id` is being searched. */
  #rejectedBytes = 0
  #current: SocketRequestOptions | undefined
  #isLeaving = false
  /** Whether it closes after the current request. */
  #isDraining = false
  #isExpired = false
  readonly #openedMs: number
  #lastRequestMs: number
  /** Bytes of an incomplete message, and when they started to arrive. */
  #partialBytes = 0
  #partialSinceMs = 0
  /** Bytes read and written at the last heartbeat. */
  #readBefore = -1
  #takenBefore = -1
  #stalledHeartbeats = 0
  #timer: Timer

  constructor(deps: SocketDeps, end: SocketEnd, request: IncomingMessage, owner: KeyOwner) {
    this.#deps = deps
    this.#end = end
    this.#request = request
    this.#memory = new ConnectionCache(deps.budget, deps.limits.bodyBytes, owner.accountId)
    this.#owner = owner
    this.#openedMs = deps.clock.monotonicMs()
    this.#lastRequestMs = this.#openedMs
    this.#timer = deps.clock.after(heartbeatMs, () => this.#heartbeat())
    this.#listen(end)
  }

  /** Closes the connection because the server is stopping: at once, or after the current request. */
  drain(): void {
    this.#isDraining = true
    this.#goOn()
  }

  /** Closes the connection without a handshake. */
  terminate(): void {
    this.#end.socket.terminate()
  }

  #listen({ socket, raw }: SocketEnd): void {
    raw.prependListener('data', (chunk: Buffer) => this.#count(chunk.length))
    socket.on('message', (data: Buffer) => this.#take(data))
    for (const kind of ['ping', 'pong'] as const) {
      socket.on(kind, (data) => {
        this.#partialBytes = Math.max(0, this.#partialBytes - data.length - controlFrameBytes)
        // A client that sends pings and reads nothing must not fill our memory with pongs.
        if (kind === 'ping' && !raw.writableNeedDrain && socket.readyState === WebSocket.OPEN) socket.pong(data)
      })
    }
    raw.on('drain', () => this.#goOn())
    // The WebSocket reports only the closed connection; a client that disconnects is noticed at once (contract 9.10).
    raw.on('data', () => {
      if (socket.readyState !== WebSocket.OPEN) this.#leave()
    })
    raw.on('end', () => this.#leave())
    raw.on('close', () => this.#leave())
    socket.on('close', () => this.#leave())
    // The library answers protocol errors with the matching close code.
    socket.on('error', () => this.#leave())
  }

  #count(bytes: number): void {
    if (this.#partialBytes === 0) this.#partialSinceMs = this.#deps.clock.monotonicMs()
    this.#partialBytes += bytes
    if (this.#isLeaving || this.#hold()) return
    // The account's share of all connections is used up.
    this.#say('websocket_queue_full')
    this.#close(tryAgainLater, 'websocket_queue_full')
    this.#end.raw.pause()
  }

  /** Updates the shared count of waiting bytes; false if the account's share is used up. */
  #hold(): boolean {
    const { waitingBytes } = this.#deps
    const more = this.#partialBytes + this.#waitingBytes + this.#rejectedBytes - this.#heldBytes
    if (more > 0 && !waitingBytes.take(this.#owner.accountId, more)) return false
    if (more < 0) waitingBytes.give(this.#owner.accountId, -more)
    this.#heldBytes += more
    return true
  }

  /** Even an unreadable message waits, so that no error appears between the events of an answer. */
  #take(bytes: Buffer): void {
    this.#partialBytes = 0
    if (this.#isLeaving) return
    const isBusy = this.#current !== undefined || this.#waiting.length > 0
    const mostBytes = this.#deps.limits.bodyBytes
    if (isBusy && (this.#waiting.length >= maxWaiting || this.#waitingBytes + bytes.length > mostBytes)) {
      // A client that keeps sending without reading is disconnected.
      if (this.#end.raw.writableNeedDrain) this.terminate()
      else this.#reject(bytes)
      return
    }
    this.#waiting.push(bytes)
    this.#waitingBytes += bytes.length
    this.#goOn()
    this.#hold()
  }

  /** Rejects a message that cannot wait. */
  #reject(bytes: Buffer): void {
    this.#rejectedBytes += bytes.length
    this.#hold()
    const refused = this.#deps.requests.refuse(this.#optionsFor(bytes), new ServiceError('websocket_queue_full'))
    refused
      .catch((error: unknown) => this.#giveUp(error))
      .finally(() => {
        this.#rejectedBytes -= bytes.length
        this.#hold()
      })
  }

  /** Starts the next request, or closes the connection if there will be none. */
  #goOn(): void {
    if (this.#current !== undefined || this.#isLeaving) return
    // Answers for a client that does not read would fill our memory.
    if (this.#end.raw.writableNeedDrain) return
    if (this.#isExpired) {
      this.#say('websocket_connection_limit_reached', { minutes: longestMs / 60_000 })
      return this.#close(policyViolation, 'websocket_connection_limit_reached')
    }
    const bytes = this.#waiting.shift()
    if (bytes !== undefined) {
      this.#waitingBytes -= bytes.length
      this.#hold()
      this.#current = this.#optionsFor(bytes)
      this.#run(this.#current).catch((error: unknown) => this.#giveUp(error))
    } else if (this.#isDraining) {
      this.#close(goingAway, 'restarting')
    }
  }

  async #run(options: SocketRequestOptions): Promise<void> {
    const { requests } = this.#deps
    const stopping = this.#isDraining ? new ServiceError('restarting', { retryAfterSeconds: 1 }) : undefined
    const error = stopping === undefined ? await requests.run(options) : await requests.refuse(options, stopping)
    options.sink.finish()
    this.#current = undefined
    this.#lastRequestMs = this.#deps.clock.monotonicMs()
    // A key that is no longer valid will not become valid on this connection.
    if (error?.status === 401) this.#close(policyViolation, error.code)
    else this.#goOn()
  }

  #optionsFor(bytes: Buffer): SocketRequestOptions {
    const { mintRequestId, nowMs } = this.#deps
    const requestId = mintRequestId()
    const ending = { response: undefined, isFinal: false }
    const sink = new SocketSink(this.#end, requestId, nowMs, (event) => noteEnding(ending, event))
    return { bytes, requestId, request: this.#request, owner: this.#owner, memory: this.#memory, sink, ending }
  }

  /** Sends an error that belongs to no request. */
  #say(code: 'websocket_queue_full' | 'websocket_connection_limit_reached' | 'request_timeout', words = {}): void {
    const { sink, ...options } = this.#optionsFor(Buffer.alloc(0))
    const error = new ServiceError(code, { words })
    this.#deps.requests.refuse({ sink, ...options }, error).catch((error: unknown) => this.#giveUp(error))
  }

  /** Handles an error response that could not be written. */
  #giveUp(error: unknown): void {
    const { log, mintRequestId } = this.#deps
    log({ event: 'internal_error', requestId: mintRequestId(), ...describeBug(error) })
    this.terminate()
  }

  #heartbeat(): void {
    const { clock, limits } = this.#deps
    const { socket, raw } = this.#end
    const nowMs = clock.monotonicMs()
    this.#isExpired = nowMs - this.#openedMs >= longestMs
    if (this.#isDead()) return this.terminate()
    if (this.#partialBytes > 0 && nowMs - this.#partialSinceMs >= limits.bodyMs) {
      this.#say('request_timeout', { seconds: limits.bodyMs / 1000 })
      return this.#close(policyViolation, 'request_timeout')
    }
    if (this.#isExpired) this.#goOn()
    else if (this.#current === undefined && nowMs - this.#lastRequestMs >= idleMs) this.#close(normal, 'idle')
    if (socket.readyState === WebSocket.OPEN && !raw.writableNeedDrain) socket.ping()
    if (!this.#isLeaving) this.#timer = clock.after(heartbeatMs, () => this.#heartbeat())
  }

  /** Whether there is no sign that the client is still there. */
  #isDead(): boolean {
    const { raw } = this.#end
    const taken = raw.bytesWritten - raw.writableLength
    // A client that does not read its data gets no pings either, and is given as long as any slow reader (contract
    // 9.12).
    const isStuck = raw.writableNeedDrain && taken === this.#takenBefore
    this.#stalledHeartbeats = isStuck ? this.#stalledHeartbeats + 1 : 0
    const isSilent = !raw.writableNeedDrain && raw.bytesRead === this.#readBefore
    this.#readBefore = raw.bytesRead
    this.#takenBefore = taken
    return isSilent || this.#stalledHeartbeats >= maxStalledHeartbeats
  }

  #close(code: number, reason: string): void {
    this.#end.socket.close(code, reason)
    this.#leave()
  }

  /** Aborts the running request and frees everything that the connection holds. */
  #leave(): void {
    if (this.#isLeaving) return
    this.#isLeaving = true
    this.#timer.cancel()
    this.#waiting.length = 0
    this.#waitingBytes = 0
    this.#partialBytes = 0
    this.#hold()
    this.#current?.sink.disconnected()
    this.#memory.clear()
  }
}
