import type { Socket } from 'node:net'
import type { Clock } from '../../runtime/clock.ts'
import { AnswerParser, HttpViolation, type AnswerListener } from './answer-parser.ts'
import type { Connect, Loss } from './connector.ts'
import type { UpstreamHeaders } from './head.ts'

/** Idle connections are reused for this long: common load balancers close theirs after 60 s. */
const keepAliveMs = 55_000
/** If the peer says when it closes an idle connection, stop using it this much earlier. */
const beforePeerMs = 1_000

/** What a connection carries: one call at a time. Either `onLost` or `onAnswerEnd` is called, once. */
export interface CarriedCall extends Omit<AnswerListener, 'onAnswerEnd'> {
  /** The connection is open: write the request. */
  onConnected(socket: Socket, isReused: boolean): void
  /** A byte of the answer, or of something else in its place, has arrived. */
  onAnswering(): void
  /** `isFlushed`: the socket has no unsent bytes of the request. */
  onAnswerEnd(isFlushed: boolean): void
  onLost(loss: Loss): void
}

export interface ConnectionOwner {
  /** The call has ended, or was abandoned while connecting, and the connection is reusable. */
  release(connection: Connection): void
  /** The connection must not be reused. */
  discard(connection: Connection): void
}

/** One connection, or the slot for one. It ends with the first failure; a new one takes its place. */
export class Connection implements AnswerListener {
  /** Until when the idle connection may be reused, monotonic milliseconds. */
  goodUntilMs = Number.POSITIVE_INFINITY
  /** Answers read so far: above 0, the peer may have closed the connection in the meantime. */
  served = 0
  readonly #connect: Connect
  readonly #owner: ConnectionOwner
  readonly #clock: Clock
  readonly #onBug: (error: unknown) => void
  readonly #parser = new AnswerParser(this)
  #socket: Socket | undefined
  #call: CarriedCall | undefined
  #isClosed = false

  constructor(connect: Connect, owner: ConnectionOwner, clock: Clock, onBug: (error: unknown) => void) {
    this.#connect = connect
    this.#owner = owner
    this.#clock = clock
    this.#onBug = onBug
  }

  /** Carries a call, over a new connection if none is open yet. */
  carry(call: CarriedCall): void {
    this.#call = call
    if (this.#socket !== undefined) this.#send(call, this.#socket)
    else {
      this.#connect(
        (bytes) => this.#read(bytes),
        (opened) => {
          if (typeof opened === 'string') this.#lose(opened)
          else this.#adopt(opened)
        },
      )
    }
  }

  pause(): void {
    this.#socket?.pause()
  }

  resume(): void {
    this.#socket?.resume()
  }

  /** Abandons the call: its connection is closed, unless nothing was sent yet. */
  abandon(): void {
    this.#call = undefined
    if (this.#socket !== undefined) this.#drop()
  }

  /** Closes an idle connection. */
  close(): void {
    this.#isClosed = true
    this.#socket?.destroy()
  }

  /** Closes everything immediately; a running call is notified. */
  destroy(): void {
    this.#lose('reset')
  }

  onAnswerHead(status: number, headers: UpstreamHeaders): void {
    this.#call?.onAnswerHead(status, headers)
  }

  onAnswerData(chunk: Buffer): void {
    this.#call?.onAnswerData(chunk)
  }

  onAnswerEnd(): void {
    const call = this.#call
    const socket = this.#socket
    if (call === undefined || socket === undefined) return
    this.#call = undefined
    const isFlushed = socket.writableLength === 0
    this.served += 1
    const idleMs = Math.min(keepAliveMs, (this.#parser.peerKeepAliveMs ?? keepAliveMs) - beforePeerMs)
    // A connection with unsent bytes is not reused: the peer would read them as the next request.
    if (this.#parser.keepAlive && isFlushed && idleMs > 0) {
      this.goodUntilMs = this.#clock.monotonicMs() + idleMs
      if (socket.isPaused()) socket.resume()
      this.#owner.release(this)
    } else {
      this.#drop()
    }
    try {
      call.onAnswerEnd(isFlushed)
    } catch (error) {
      // Must not propagate into the reader of this connection, which may already carry another call.
      this.#onBug(error)
    }
  }

  #adopt(socket: Socket): void {
    if (this.#isClosed) {
      socket.destroy()
      return
    }
    this.#socket = socket
    socket.on('end', () => this.#hangUp())
    socket.on('close', () => this.#hangUp())
    if (this.#call === undefined) this.#owner.release(this)
    else this.#send(this.#call, socket)
  }

  #send(call: CarriedCall, socket: Socket): void {
    this.#parser.expect()
    call.onConnected(socket, this.served > 0)
  }

  #read(chunk: Buffer): void {
    // Data without a request: the peer cannot be trusted with the next one.
    if (this.#call === undefined || this.#parser.isDone) return this.#hangUp()
    this.#call.onAnswering()
    try {
      this.#parser.push(chunk)
    } catch (error) {
      if (!(error instanceof HttpViolation)) this.#onBug(error)
      this.#lose('broken')
    }
  }

  #hangUp(): void {
    if (this.#isClosed) return
    try {
      if (this.#call !== undefined && this.#parser.close()) return
    } catch (error) {
      this.#onBug(error)
    }
    this.#lose('reset')
  }

  #lose(loss: Loss): void {
    const call = this.#call
    this.#call = undefined
    this.#drop()
    call?.onLost(loss)
  }

  #drop(): void {
    if (this.#isClosed) return
    this.close()
    this.#owner.discard(this)
  }
}
