/**
 * Shares reads of the same value. A caller never gets a value that was read before it asked: everybody who asks during a
 * read shares the next one, which starts when that read has ended. So each name causes at most one read at a time.
 */
export class SharedReads<Value> {
  readonly #running = new Map<string, Promise<Value>>()
  readonly #next = new Map<string, Promise<Value>>()

  /** Rejects as `read` does. */
  read(name: string, read: () => Promise<Value>): Promise<Value> {
    const waiting = this.#next.get(name)
    if (waiting !== undefined) return waiting
    const running = this.#running.get(name)
    if (running === undefined) return this.#start(name, read)
    const start = (): Promise<Value> => {
      this.#next.delete(name)
      return this.#start(name, read)
    }
    const next = running.then(start, start)
    this.#next.set(name, next)
    return next
  }

  #start(name: string, read: () => Promise<Value>): Promise<Value> {
    const started = read()
    this.#running.set(name, started)
    const end = (): void => {
      this.#running.delete(name)
    }
    started.then(end, end)
    return started
  }
}
