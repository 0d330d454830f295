import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'
import { describeBug } from '../domain/bugs.ts'
import type { Clock, Timer } from '../domain/clock.ts'
import { type KeyOwner, ServiceError } from '../domain/errors.ts'
import type { FairShare } from '../domain/fair-share.ts'
import type { EventLog } from '../domain/events.ts'
import { ConnectionMemory, type MemoryBudget } from './connection-memory.ts'
import { noteEnding, type SocketTurns, type TurnOf } from './socket-turns.ts'
import { SocketSink, type SocketEnd } from './socket-sink.ts'

/** How long a connection may last, as OpenAI documents it (contract 14.9). */
const longestMs = 60 * 60_000
/** Without a turn for this long it is closed (contract 14.9). */
const idleMs = 15 * 60_000
/** How often it is looked at and pinged (contract 14.9). */
const lookMs = 20_000
/** A caller that has taken nothing at so many looks, one after the other, is cut. */
const stuckLooks = 3
/** Messages that wait for the turn before them (contract 14.6). */
const maxWaiting = 16
/** A ping from a caller: two bytes, a mask of four, and what it says. */
const controlFrameBytes = 6

const goingAway = 1001
const normal = 1000
const policyViolation = 1008
const tryAgainLater = 1013

/** What connections use of the API that they are a part of. */
export interface SocketParts {
  readonly turns: SocketTurns
  readonly budget: MemoryBudget
  /** Bytes of messages that came and whose turn has not, of all connections, by account. */
  readonly waitingBytes: FairShare
  readonly clock: Clock
  readonly limits: { readonly bodyBytes: number; readonly bodyMs: number }
  readonly nowMs: () => number
  readonly mintRequestId: () => string
  readonly log: EventLog
}

/** One connection: its messages are answered one after the other. */
export class ResponsesSocket {
  readonly #parts: SocketParts
  readonly #end: SocketEnd
  readonly #request: IncomingMessage
  readonly #memory: ConnectionMemory
  readonly #owner: KeyOwner
  /** What it holds of the bytes that all connections share. */
  #heldBytes = 0
  readonly #waiting: Buffer[] = []
  #waitingBytes = 0
  #turn: TurnOf | undefined
  #isLeaving = false
  /** Why it is closed once its turn is over. */
  #isDraining = false
  #isExpired = false
  readonly #openedMs: number
  #lastTurnMs: number
  /** Bytes that came and did not make a whole message yet, and since when. */
  #partialBytes = 0
  #partialSinceMs = 0
  /** Bytes that had come, and that had been taken, when it was looked at last. */
  #readBefore = -1
  #takenBefore = -1
  #stuckLooks = 0
  #timer: Timer

  constructor(parts: SocketParts, end: SocketEnd, request: IncomingMessage, owner: KeyOwner) {
    this.#parts = parts
    this.#end = end
    this.#request = request
    this.#memory = new ConnectionMemory(parts.budget, parts.limits.bodyBytes, owner.accountId)
    this.#owner = owner
    this.#openedMs = parts.clock.monotonicMs()
    this.#lastTurnMs = this.#openedMs
    this.#timer = parts.clock.after(lookMs, () => this.#look())
    this.#listen(end)
  }

  /** Closes it because the server stops: at once, or when its turn is over. */
  drain(): void {
    this.#isDraining = true
    this.#goOn()
  }

  /** Cuts it. */
  terminate(): void {
    this.#end.socket.terminate()
  }

  #listen({ socket, raw }: SocketEnd): void {
    raw.prependListener('data', (chunk: Buffer) => this.#count(chunk.length))
    socket.on('message', (data: Buffer) => this.#take(data))
    for (const kind of ['ping', 'pong'] as const) {
      socket.on(kind, (data) => {
        this.#partialBytes = Math.max(0, this.#partialBytes - data.length - controlFrameBytes)
        // One who sends pings and reads nothing must not fill our memory with answers.
        if (kind === 'ping' && !raw.writableNeedDrain && socket.readyState === WebSocket.OPEN) socket.pong(data)
      })
    }
    raw.on('drain', () => this.#goOn())
    // The WebSocket tells only when its connection is closed; whoever leaves is noticed at once (contract 9.10).
    raw.on('data', () => {
      if (socket.readyState !== WebSocket.OPEN) this.#leave()
    })
    raw.on('end', () => this.#leave())
    raw.on('close', () => this.#leave())
    socket.on('close', () => this.#leave())
    // What breaks the protocol is answered by the library, with the close code that says so.
    socket.on('error', () => this.#leave())
  }

  #count(bytes: number): void {
    if (this.#partialBytes === 0) this.#partialSinceMs = this.#parts.clock.monotonicMs()
    this.#partialBytes += bytes
    if (this.#isLeaving || this.#hold()) return
    // Its account has its share of what all connections may hold.
    this.#say('websocket_queue_full')
    this.#close(tryAgainLater, 'websocket_queue_full')
    this.#end.raw.pause()
  }

  /** Keeps the share in step with what waits here; false where that is more than the account may hold. */
  #hold(): boolean {
    const { waitingBytes } = this.#parts
    const more = this.#partialBytes + this.#waitingBytes - this.#heldBytes
    if (more > 0 && !waitingBytes.take(this.#owner.accountId, more)) return false
    if (more < 0) waitingBytes.give(this.#owner.accountId, -more)
    this.#heldBytes += more
    return true
  }

  /** Also what cannot be read waits for its turn, so that no error stands between the events of an answer. */
  #take(bytes: Buffer): void {
    this.#partialBytes = 0
    if (this.#isLeaving) return
    const isBusy = this.#turn !== undefined || this.#waiting.length > 0
    const mostBytes = this.#parts.limits.bodyBytes
    if (isBusy && (this.#waiting.length >= maxWaiting || this.#waitingBytes + bytes.length > mostBytes)) {
      // Whoever goes on sending without reading is cut.
      if (this.#end.raw.writableNeedDrain) this.terminate()
      else this.#say('websocket_queue_full')
      return
    }
    this.#waiting.push(bytes)
    this.#waitingBytes += bytes.length
    this.#goOn()
    this.#hold()
  }

  /** Begins the next turn, or closes where no further one is to come. */
  #goOn(): void {
    if (this.#turn !== undefined || this.#isLeaving) return
    // What is answered to one who does not read would fill our memory.
    if (this.#end.raw.writableNeedDrain) return
    if (this.#isExpired) {
      this.#say('websocket_connection_limit_reached', { minutes: longestMs / 60_000 })
      return this.#close(policyViolation, 'websocket_connection_limit_reached')
    }
    const bytes = this.#waiting.shift()
    if (bytes !== undefined) {
      this.#waitingBytes -= bytes.length
      this.#hold()
      this.#turn = this.#turnOf(bytes)
      this.#run(this.#turn).catch((error: unknown) => this.#giveUp(error))
    } else if (this.#isDraining) {
      this.#close(goingAway, 'restarting')
    }
  }

  async #run(turn: TurnOf): Promise<void> {
    const { turns } = this.#parts
    const stopping = this.#isDraining ? new ServiceError('restarting', { retryAfterSeconds: 1 }) : undefined
    const refusal = stopping === undefined ? await turns.run(turn) : await turns.refuse(turn, stopping)
    turn.sink.finish()
    this.#turn = undefined
    this.#lastTurnMs = this.#parts.clock.monotonicMs()
    // A key that is no good any more will not be good again on this connection.
    if (refusal?.status === 401) this.#close(policyViolation, refusal.code)
    else this.#goOn()
  }

  #turnOf(bytes: Buffer): TurnOf {
    const { mintRequestId, nowMs } = this.#parts
    const requestId = mintRequestId()
    const ending = { response: undefined, isFinal: false }
    const sink = new SocketSink(this.#end, requestId, nowMs, (event) => noteEnding(ending, event))
    return { bytes, requestId, request: this.#request, owner: this.#owner, memory: this.#memory, sink, ending }
  }

  /** Says something that answers no turn. */
  #say(code: 'websocket_queue_full' | 'websocket_connection_limit_reached' | 'request_timeout', words = {}): void {
    const { sink, ...turn } = this.#turnOf(Buffer.alloc(0))
    const refusal = new ServiceError(code, { words })
    this.#parts.turns.refuse({ sink, ...turn }, refusal).catch((error: unknown) => this.#giveUp(error))
  }

  /** A refusal itself could not be written. */
  #giveUp(error: unknown): void {
    const { log, mintRequestId } = this.#parts
    log({ event: 'internal_error', requestId: mintRequestId(), ...describeBug(error) })
    this.terminate()
  }

  #look(): void {
    const { clock, limits } = this.#parts
    const { socket, raw } = this.#end
    const nowMs = clock.monotonicMs()
    this.#isExpired = nowMs - this.#openedMs >= longestMs
    if (this.#isDead()) return this.terminate()
    if (this.#partialBytes > 0 && nowMs - this.#partialSinceMs >= limits.bodyMs) {
      this.#say('request_timeout', { seconds: limits.bodyMs / 1000 })
      return this.#close(policyViolation, 'request_timeout')
    }
    if (this.#isExpired) this.#goOn()
    else if (this.#turn === undefined && nowMs - this.#lastTurnMs >= idleMs) this.#close(normal, 'idle')
    if (socket.readyState === WebSocket.OPEN && !raw.writableNeedDrain) socket.ping()
    if (!this.#isLeaving) this.#timer = clock.after(lookMs, () => this.#look())
  }

  /** Whether nothing shows any more that somebody is there. */
  #isDead(): boolean {
    const { raw } = this.#end
    const taken = raw.bytesWritten - raw.writableLength
    // Whoever does not take what waits for it gets no ping either, and has as long as any slow reader (contract 9.12).
    const isStuck = raw.writableNeedDrain && taken === this.#takenBefore
    this.#stuckLooks = isStuck ? this.#stuckLooks + 1 : 0
    const isSilent = !raw.writableNeedDrain && raw.bytesRead === this.#readBefore
    this.#readBefore = raw.bytesRead
    this.#takenBefore = taken
    return isSilent || this.#stuckLooks >= stuckLooks
  }

  #close(code: number, reason: string): void {
    this.#end.socket.close(code, reason)
    this.#leave()
  }

  /** Nothing more is answered: what is under way is given up, and all that was kept is let go. */
  #leave(): void {
    if (this.#isLeaving) return
    this.#isLeaving = true
    this.#timer.cancel()
    this.#waiting.length = 0
    this.#waitingBytes = 0
    this.#partialBytes = 0
    this.#hold()
    this.#turn?.sink.leave()
    this.#memory.clear()
  }
}
