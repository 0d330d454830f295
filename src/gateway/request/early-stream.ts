import { TextBuffer } from '../../formats/text-buffer.ts'
import type { Lane } from '../lanes/lane.ts'

/** The limit on a stream before its first content, in bytes without comments (contract 9.13). */
const maxBytes = 256 * 1024
/** The limit grows by this many times the request's length: the first events repeat its instructions and tools. */
const requestEchoes = 3

/** What a stream sent before its first content, for another lane to read again. */
export class EarlyStream {
  /** As latin1: whole events, and an incomplete one. */
  readonly #events = new TextBuffer()
  readonly #incomplete = new TextBuffer()
  /** Whether `#events` ends within an event or a comment: what follows is then part of it. */
  #isOpen = false

  /** Adds a chunk that the lane has read, without its comments. */
  add(chunk: Buffer, { alive, waiting }: Pick<Lane, 'alive' | 'waiting'>): void {
    this.#incomplete.add(chunk.toString('latin1'))
    const isOpen = waiting > 0
    if (alive || (this.#isOpen && !isOpen)) {
      this.#events.add(this.#incomplete.take())
      this.#isOpen = isOpen
    } else if (!isOpen) this.#incomplete.take()
  }

  /** Whether this is too much for a request of this length. */
  isTooLong(requestLength: number): boolean {
    return this.#events.length + this.#incomplete.length > maxBytes + requestEchoes * requestLength
  }

  take(): string {
    return this.#events.take() + this.#incomplete.take()
  }
}
