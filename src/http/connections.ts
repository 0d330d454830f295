import type { Socket } from 'node:net'
import { FairShare } from '../runtime/fair-share.ts'
import { addressGroup } from '../runtime/networks.ts'

/** How long a reserved connection may last. */
const reservedMs = 5_000

/**
 * Counts open connections, shared fairly among addresses. Connections beyond the limit or an address's share are
 * accepted too, but only for `/health` and `/ready`, and briefly. If there are too many of these, the oldest is
 * closed, so that a probe is answered however many connections others hold (contract 29.8).
 */
export class Connections {
  readonly #share: FairShare
  /** Connections beyond the limit, reserved for probes. */
  readonly #reserved: number
  readonly #forProbes = new Set<Socket>()
  readonly #open = new Set<Socket>()
  #isRetired = false
  #reusableSinceMs = Number.NEGATIVE_INFINITY

  constructor(limit: number, reserved: number) {
    this.#share = new FairShare(limit)
    this.#reserved = reserved
  }

  /** The connections of all addresses, without those for probes. */
  get share(): FairShare {
    return this.#share
  }

  /** Maximum number of open connections, probes included. */
  get max(): number {
    // A connection that evicts the oldest is open before that one is closed.
    return this.#share.limit + this.#reserved * 2
  }

  /** The open connections, probes included. */
  get open(): Iterable<Socket> {
    return this.#open
  }

  /** Counts a connection until it closes. */
  add(socket: Socket): void {
    const address = addressGroup(socket.remoteAddress ?? '')
    const isCounted = this.#share.take(address)
    this.#open.add(socket)
    socket.once('close', () => {
      this.#open.delete(socket)
      if (isCounted) this.#share.give(address)
    })
    if (isCounted) return
    for (const oldest of this.#forProbes) {
      if (this.#forProbes.size < this.#reserved) break
      this.#forProbes.delete(oldest)
      oldest.destroy()
    }
    this.#forProbes.add(socket)
    const timer = setTimeout(() => socket.destroy(), reservedMs)
    socket.once('close', () => {
      clearTimeout(timer)
      this.#forProbes.delete(socket)
    })
  }

  /** Whether a connection ends with its current answer. */
  get isRetired(): boolean {
    return this.#isRetired
  }

  retire(): void {
    this.#isRetired = true
  }

  /** An answer has just ended whose client may send another request on the same connection. */
  noteReusable(): void {
    this.#reusableSinceMs = performance.now()
  }

  /** How long no answer has ended in that way, milliseconds. */
  get msSinceReusable(): number {
    return performance.now() - this.#reusableSinceMs
  }

  /** Whether it accepts only probes. */
  isForProbes(socket: Socket): boolean {
    return this.#forProbes.has(socket)
  }
}
