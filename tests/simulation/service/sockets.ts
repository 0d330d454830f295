import { Buffer } from 'node:buffer'
import { Duplex } from 'node:stream'
import type { Timer } from '../../../src/runtime/clock.ts'
import type { Dice } from '../dice.ts'
import type { ProcessClock } from './process-clock.ts'
import type { Timeline } from './timeline.ts'

/** What every connection of a world needs. */
export interface Network {
  readonly timeline: Timeline
  readonly dice: Dice
  /** Round trips of the network, milliseconds. */
  readonly latencyMs: number
}

/** The far end of a connection of the service: a client or a provider. Nothing is called after `ended`. */
export interface Peer {
  received(bytes: Buffer): void
  /** The service closed its side, or the whole connection; `reset`: without having sent everything. */
  ended(reset: boolean): void
}

const readBuffer = Buffer.alloc(256 * 1024)

/** The service's end of one connection, and what its peer can do to it. */
export class SimulatedSocket extends Duplex {
  readonly remoteAddress: string
  readonly #network: Network
  readonly #clock: ProcessClock
  readonly #peer: Peer
  /** Takes what arrives; without it, the reader of the stream does. */
  readonly #onRead: ((bytes: Buffer) => void) | undefined
  /** What arrived while the service did not read. */
  #unread: Buffer[] = []
  #isPausedByService = false
  #hasPeerEnded = false
  #isPeerGone = false
  #hasEnded = false
  /** When the last bytes arrive at the peer, and at the service. */
  #peerAtMs = 0
  #serviceAtMs = 0
  /** Bytes that the peer has not taken: a slow reader. */
  #slow: { readonly msPerByte: number } | undefined
  #timer: Timer | undefined
  /** Set by Node's HTTP server. */
  declare parser?: { close(): void } | null

  constructor(
    network: Network,
    clock: ProcessClock,
    peer: Peer,
    options: { readonly address: string; readonly onRead?: (bytes: Buffer) => void },
  ) {
    super({ allowHalfOpen: true, autoDestroy: true })
    this.#network = network
    this.#clock = clock
    this.#peer = peer
    this.remoteAddress = options.address
    this.#onRead = options.onRead
    // As with real sockets, every failure ends in `close`.
    this.on('error', () => {})
  }

  // What Node's HTTP server and our client use of a real socket.

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  setTimeout(ms: number, run?: () => void): this {
    if (run !== undefined) this.once('timeout', run)
    this.#timer?.cancel()
    if (ms > 0) this.#timer = this.#clock.after(ms, () => this.emit('timeout'))
    return this
  }

  destroySoon(): void {
    if (this.writableFinished) this.destroy()
    else {
      this.once('finish', () => this.destroy())
      this.end()
    }
  }

  resetAndDestroy(): this {
    return this.destroy()
  }

  override pause(): this {
    if (this.#onRead === undefined) return super.pause()
    this.#isPausedByService = true
    return this
  }

  override resume(): this {
    if (this.#onRead === undefined) return super.resume()
    this.#isPausedByService = false
    for (const bytes of this.#unread.splice(0)) this.#take(bytes)
    if (this.#hasPeerEnded && this.#unread.length === 0) this.emit('end')
    return this
  }

  override isPaused(): boolean {
    return this.#onRead === undefined ? super.isPaused() : this.#isPausedByService
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
    this.#sendToPeer(chunk, done)
  }

  override _writev(chunks: { readonly chunk: Buffer }[], done: (error?: Error) => void): void {
    this.#sendToPeer(Buffer.concat(chunks.map(({ chunk }) => chunk)), done)
  }

  override _final(done: () => void): void {
    this.#endPeer(false)
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#timer?.cancel()
    this.#endPeer(!this.writableFinished)
    done(error)
  }

  // What the peer does.

  /** Sends bytes to the service. */
  send(bytes: Buffer): void {
    this.#later(() => {
      if (this.destroyed || this.#isPeerGone) return
      if (this.#onRead === undefined) this.push(bytes)
      else if (this.#isPausedByService) this.#unread.push(bytes)
      else this.#take(bytes)
    })
  }

  /** Closes the peer's side; it may still read. */
  endOfPeer(): void {
    this.#later(() => {
      if (this.destroyed) return
      this.#hasPeerEnded = true
      if (this.#onRead === undefined) this.push(null)
      else if (!this.#isPausedByService) this.emit('end')
    })
  }

  /** The peer is gone: data that is under way to it is lost. */
  resetByPeer(): void {
    this.#isPeerGone = true
    this.#hasEnded = true
    this.#later(() => {
      if (!this.destroyed) this.destroy(Object.assign(new Error('reset'), { code: 'ECONNRESET' }))
    })
  }

  /** From now on the peer reads this slowly, `Infinity`: not at all; undefined: as fast as it can. */
  readSlowly(msPerByte: number | undefined): void {
    this.#slow = msPerByte === undefined ? undefined : { msPerByte }
  }

  /** The process behind this socket is gone: its system closes it, and the process notices nothing. */
  abandon(): void {
    this.#timer?.cancel()
    // Node holds its parser until the connection closes, and with it the whole world of this schedule.
    this.parser?.close()
    this.parser = null
    this.#endPeer(true)
  }

  #take(bytes: Buffer): void {
    if (this.#isPausedByService) return void this.#unread.push(bytes)
    // As with the real connector, all connections read into one buffer, whose bytes are valid only during the call.
    const read = readBuffer.subarray(0, bytes.copy(readBuffer))
    this.#onRead!(read)
    read.fill(0x7e)
  }

  #sendToPeer(bytes: Buffer, done: (error?: Error) => void): void {
    const { timeline, latencyMs } = this.#network
    const readMs = this.#slow === undefined ? 0 : bytes.length * this.#slow.msPerByte
    this.#peerAtMs = Math.max(this.#peerAtMs, timeline.nowMs + latencyMs) + readMs
    const copy = Buffer.from(bytes)
    if (this.#peerAtMs < Number.POSITIVE_INFINITY)
      timeline.after(this.#peerAtMs - timeline.nowMs, () => {
        if (!this.#isPeerGone) this.#peer.received(copy)
      })
    // Without a slow reader, the system takes everything at once.
    const takenMs = this.#slow === undefined ? 0 : this.#peerAtMs - timeline.nowMs
    if (takenMs === 0) done()
    else if (takenMs < Number.POSITIVE_INFINITY) timeline.after(takenMs, () => this.#clock.deliver(() => done()))
  }

  #endPeer(reset: boolean): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    const { timeline, latencyMs } = this.#network
    // A reset overtakes what is under way, and reaches one that reads nothing, too.
    const atMs = reset ? timeline.nowMs + latencyMs : Math.max(this.#peerAtMs, timeline.nowMs + latencyMs)
    if (atMs < Number.POSITIVE_INFINITY)
      timeline.after(atMs - timeline.nowMs, () => {
        if (!this.#isPeerGone) this.#peer.ended(reset)
      })
  }

  #later(run: () => void): void {
    const { timeline, latencyMs, dice } = this.#network
    this.#serviceAtMs = Math.max(this.#serviceAtMs, timeline.nowMs + latencyMs * dice.between(0.5, 1.5))
    timeline.after(this.#serviceAtMs - timeline.nowMs, () => this.#clock.deliver(run))
  }
}
