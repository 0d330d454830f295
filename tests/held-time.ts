const beatMs = 5
/** The service and the measurement share an event loop. Longer delays than this come from other processes of the machine. */
const heldFromMs = 6

/**
 * Measures how long this process could not run, mostly because of other processes. A test subtracts that from what it
 * measures before it compares it with a limit of milliseconds.
 */
export class HeldTime implements Disposable {
  readonly #held: { readonly fromMs: number; readonly toMs: number }[] = []
  readonly #timer: NodeJS.Timeout
  #lastMs = performance.now()

  constructor() {
    this.#timer = setInterval(() => this.#beat(), beatMs)
  }

  /** The part of a time, in milliseconds of `performance.now()`, in which this process could not run. */
  within(fromMs: number, toMs: number): number {
    // The event that ended the time may run before the timer that was due in it.
    this.#beat()
    return this.#held.reduce(
      (sum, held) => sum + Math.max(0, Math.min(toMs, held.toMs) - Math.max(fromMs, held.fromMs)),
      0,
    )
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  #beat(): void {
    const nowMs = performance.now()
    if (nowMs - this.#lastMs > heldFromMs) this.#held.push({ fromMs: this.#lastMs + beatMs, toMs: nowMs })
    this.#lastMs = nowMs
  }
}
