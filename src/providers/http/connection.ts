import type { Socket } from 'node:net'
import type { Clock } from '../../runtime/clock.ts'
import type { Connect, Loss } from './connector.ts'
import { AnswerParser, HttpViolation, type AnswerListener } from './answer-parser.ts'
import type { UpstreamHeaders } from './head.ts'

/** Idle connections are not used any more before the 60 s after which common load balancers close theirs. */
const keepAliveMs = 55_000
/** A peer that says when it closes an idle connection is left this much earlier. */
const beforePeerMs = 1_000

/** What a connection carries: one call at a time. Of `onLost` and `onAnswerEnd` one is called, once. */
export interface CarriedCall extends AnswerListener {
  /** The connection is there: the request is to be written. */
  onConnected(socket: Socket, isReused: boolean): void
  /** A byte of the answer, or of what was to be one, has arrived. */
  onAnswering(): void
  onLost(loss: Loss): void
}

export interface ConnectionOwner {
  /** Its call is over, or gave up while connecting, and the connection is good. */
  release(connection: Connection): void
  /** It is not to be used again. */
  discard(connection: Connection): void
}

/** One connection, or the place of one. It lives until the first trouble; what comes after is a new one. */
export class Connection implements AnswerListener {
  /** Until when the connection may be used again, once it is idle; epoch milliseconds. */
  goodUntilMs = Number.POSITIVE_INFINITY
  /** Answers read: above 0 the peer may have closed it in the meantime. */
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

  /** Carries a call, over a new connection where there is none yet. */
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

  /** The call is given up: its connection goes with it, unless nothing was sent yet. */
  abandon(): void {
    this.#call = undefined
    if (this.#socket !== undefined) this.#drop()
  }

  /** Closes an idle connection. */
  close(): void {
    this.#isClosed = true
    this.#socket?.destroy()
  }

  /** Ends everything now; a call that runs is told. */
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
    // An answer that came before the whole request was taken: the rest of that would be read as another request.
    if (call === undefined || socket === undefined) return
    this.#call = undefined
    this.served += 1
    const idleMs = Math.min(keepAliveMs, (this.#parser.peerKeepAliveMs ?? keepAliveMs) - beforePeerMs)
    if (this.#parser.keepAlive && socket.writableLength === 0 && idleMs > 0) {
      this.goodUntilMs = this.#clock.monotonicMs() + idleMs
      if (socket.isPaused()) socket.resume()
      this.#owner.release(this)
    } else {
      this.#drop()
    }
    try {
      call.onAnswerEnd()
    } catch (error) {
      // Not to rise into the reading of this connection, which may carry another call already.
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
    // Nobody asked for anything: whoever speaks now is not to be trusted with the next request.
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
