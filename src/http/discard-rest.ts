import type { IncomingMessage } from 'node:http'
import { freeBytes } from '../domain/gathered-bytes.ts'

/** Of a refused request's body this much is read and thrown away, so that its sender gets to read the refusal. */
const maxDiscardedBytes = 128 * 1024 * 1024
/** The same for a sender who was refused because it sends too much at once. */
const maxDiscardedWhenBusy = 256 * 1024
/** A sender that stops for this long in the middle of a refused body is not going to send the rest. */
const maxPauseMs = 1_000
/** The same for a sender that was refused because it holds too much: its connection is part of that. */
const maxPauseWhenBusyMs = 250

/**
 * Callers write their whole body before they read: it is taken for at most `limitMs`, so that they get to read why it was
 * refused. `isBusy`: it was refused because its sender holds too much.
 */
export function discardRest(request: IncomingMessage, isBusy: boolean, limitMs: number): void {
  request.resume()
  if (request.complete) return
  const end = (): void => void request.destroy()
  const timer = setTimeout(end, isBusy ? maxPauseWhenBusyMs : maxPauseMs)
  const limit = setTimeout(end, limitMs)
  let discarded = 0
  request.on('data', (chunk: Buffer) => {
    timer.refresh()
    discarded += chunk.length
    freeBytes(chunk)
    if (discarded > (isBusy ? maxDiscardedWhenBusy : maxDiscardedBytes)) end()
  })
  for (const event of ['end', 'close']) {
    request.on(event, () => {
      clearTimeout(timer)
      clearTimeout(limit)
    })
  }
}
