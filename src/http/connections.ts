import type { Socket } from 'node:net'
import { FairShare } from '../domain/fair-share.ts'
import { addressGroup } from '../domain/networks.ts'

/** Connections beyond the limit, for probes alone. */
const reserved = 256
/** How long one of them may last. */
const reservedMs = 5_000

/**
 * Counts open connections, shared fairly among addresses. Those beyond the limit or an address's share are taken too, but
 * are only for `/health` and `/ready`, and not for long: of too many of these the oldest is closed, so that a probe gets
 * its answer however many connections others hold (contract 29.8).
 */
export class Connections {
  readonly #share: FairShare
  readonly #forProbes = new Set<Socket>()

  constructor(limit: number) {
    this.#share = new FairShare(limit)
  }

  /** As many as are open at once, probes included. */
  get max(): number {
    // The one that pushes the oldest out is open before that is closed.
    return this.#share.limit + reserved * 2
  }

  /** Counts a connection until it is closed. */
  add(socket: Socket): void {
    const address = addressGroup(socket.remoteAddress ?? '')
    if (this.#share.take(address)) {
      socket.once('close', () => this.#share.give(address))
      return
    }
    for (const oldest of this.#forProbes) {
      if (this.#forProbes.size < reserved) break
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

  /** Whether only probes are answered on it. */
  isForProbes(socket: Socket): boolean {
    return this.#forProbes.has(socket)
  }
}
