import { UpstreamError } from '../domain/upstream.ts'
import type { UpstreamCall, UpstreamListener } from '../gateway/ports.ts'

/** What a call that waits for its headers is made of. */
export interface SignedCallParts {
  readonly headers: Promise<readonly string[]>
  /** Opens the call itself once they are there. */
  readonly open: (headers: readonly string[]) => UpstreamCall
  readonly listener: UpstreamListener
  readonly onBug: (error: unknown) => void
}

/** A call whose headers have to be waited for. Until they are there it has no connection; everything else is as in a call. */
export class SignedCall implements UpstreamCall {
  #call: UpstreamCall | undefined
  #isPaused = false
  #isGone = false

  constructor({ headers, open, listener, onBug }: SignedCallParts) {
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
