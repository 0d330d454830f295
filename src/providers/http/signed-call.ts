import { UpstreamError } from '../../domain/upstream.ts'
import type { UpstreamCall, UpstreamListener } from '../../gateway/ports.ts'

/** What a call with asynchronous headers needs. */
export interface SignedCallOptions {
  readonly headers: Promise<readonly string[]>
  /** Opens the actual call once the headers are available. */
  readonly open: (headers: readonly string[]) => UpstreamCall
  readonly listener: UpstreamListener
  readonly onBug: (error: unknown) => void
}

/**
 * A call whose headers are computed asynchronously. Until then it has no connection; otherwise it behaves like any
 * call.
 */
export class SignedCall implements UpstreamCall {
  #call: UpstreamCall | undefined
  #isPaused = false
  #isGone = false

  constructor({ headers, open, listener, onBug }: SignedCallOptions) {
    headers.then(
      (ready) => {
        if (this.#isGone) return
        this.#call = open(ready)
        if (this.#isPaused) this.#call.pause()
      },
      (error: unknown) => {
        if (this.#isGone) return
        this.#isGone = true
        if (!(error instanceof UpstreamError)) onBug(error)
        listener.onError(error instanceof UpstreamError ? error : new UpstreamError('unreachable'))
      },
    )
  }

  get isSent(): boolean {
    return this.#call !== undefined && this.#call.isSent !== false
  }

  get isFlushed(): boolean {
    return this.#call?.isFlushed === true
  }

  pause(): void {
    this.#isPaused = true
    this.#call?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#call?.resume()
  }

  abort(): void {
    this.#isGone = true
    this.#call?.abort()
  }
}
