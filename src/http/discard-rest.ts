import type { IncomingMessage } from 'node:http'

/** Of a refused request's body this much is read and thrown away, so that its sender gets to read the refusal. */
const maxDiscardedBytes = 128 * 1024 * 1024

/** Callers write their whole body before they read: it is taken, so that they get to read why it was refused. */
export function discardRest(request: IncomingMessage): void {
  let discarded = 0
  request.on('data', (chunk: Buffer) => {
    discarded += chunk.length
    if (discarded > maxDiscardedBytes) request.destroy()
  })
  request.resume()
}
