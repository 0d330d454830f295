import { TextBuffer } from '../../formats/text-buffer.ts'

/** Bytes that a stream may send before its first content (contract 9.13), without comments, */
const maxBytes = 256 * 1024
/** plus this many times the size of the request: the first events of a response repeat its instructions and tools. */
const requestEchoes = 3

/** What a stream sent before its first content, for another lane to read again. */
export class EarlyStream {
  /** As latin1: whole events, and an incomplete one. */
  readonly #events = new TextBuffer()
  readonly #incomplete = new TextBuffer()
  /** Whether `#events` ends within an event or a comment: what follows is then part of it. */
  #isOpen = false

  /**
   * Adds a chunk, without its comments. `isEvent`: it had an event. `isOpen`: it ends within one, or within a comment.
   * Returns whether that is too much for a request of so many bytes.
   */
  add(chunk: Buffer, isEvent: boolean, isOpen: boolean, requestBytes: number): boolean {
    this.#incomplete.add(chunk.toString('latin1'))
    if (isEvent || (this.#isOpen && !isOpen)) {
      this.#events.add(this.#incomplete.take())
      this.#isOpen = isOpen
    } else if (!isOpen) this.#incomplete.take()
    return this.#events.length + this.#incomplete.length > maxBytes + requestEchoes * requestBytes
  }

  take(): string {
    return this.#events.take() + this.#incomplete.take()
  }
}
