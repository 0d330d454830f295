import type { IncomingMessage } from 'node:http'
import type { Clock } from '../runtime/clock.ts'
import { freeBytes } from '../runtime/gathered-bytes.ts'

interface DiscardLimits {
  readonly clock: Clock
  readonly timeoutMs: number
}

/** How much of a rejected request's body is read and discarded, so that its sender reads the error. */
const maxDiscardedBytes = 128 * 1024 * 1024
/** The same for a sender that was rejected because it sends too much at once. */
const maxDiscardedWhenBusy = 256 * 1024
/** A sender that pauses this long in the middle of a rejected body will not send the rest. */
const maxPauseMs = 1_000
/** The same for a sender that was rejected because it holds too much, including its connection. */
const maxPauseWhenBusyMs = 250

/**
 * Callers write their whole body before they read, so the rest of a rejected body is read for at most `timeoutMs` to
 * let them read the error. `isBusy`: rejected because the sender holds too much.
 */
export function discardRest(request: IncomingMessage, isBusy: boolean, { clock, timeoutMs }: DiscardLimits): void {
  request.resume()
  if (request.complete) return
  const end = (): void => void request.destroy()
  const pauseMs = isBusy ? maxPauseWhenBusyMs : maxPauseMs
  let pause = clock.after(pauseMs, end)
  const limit = clock.after(timeoutMs, end)
  let discarded = 0
  request.on('data', (chunk: Buffer) => {
    pause.cancel()
    pause = clock.after(pauseMs, end)
    discarded += chunk.length
    freeBytes(chunk)
    if (discarded > (isBusy ? maxDiscardedWhenBusy : maxDiscardedBytes)) end()
  })
  for (const event of ['end', 'close']) {
    request.on(event, () => {
      pause.cancel()
      limit.cancel()
    })
  }
}
