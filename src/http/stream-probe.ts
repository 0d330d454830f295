import type { IncomingMessage, ServerResponse } from 'node:http'
import { ServiceError } from '../domain/errors.ts'
import type { Clock } from '../runtime/clock.ts'

const events = 3
const betweenMs = 100
/** Concurrent probes; each holds a connection for a fifth of a second. */
const maxAtOnce = 100

/** Whether a request to `/health` asks for a stream. */
export function isStreamProbe({ url = '' }: IncomingMessage): boolean {
  return url.endsWith('?stream')
}

/**
 * A free test stream: three events, 100 ms apart, with the headers of a real answer. A client that gets them all at
 * once is behind a proxy that buffers streams (contract 2.18).
 */
export class StreamProbes {
  readonly #clock: Clock
  #open = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** @throws ServiceError `server_busy` */
  send(response: ServerResponse, requestId: string): void {
    if (this.#open >= maxAtOnce) throw new ServiceError('server_busy', { retryAfterSeconds: 1 })
    this.#open += 1
    response.writeHead(200, [
      'Content-Type',
      'text/event-stream; charset=utf-8',
      'X-Request-Id',
      requestId,
      'Cache-Control',
      'no-store',
      'X-Accel-Buffering',
      'no',
    ])
    const sendNext = (number: number): void => {
      response.write(`event: probe\ndata: {"number":${number},"of":${events}}\n\n`)
      if (number === events) response.end()
      else timer = this.#clock.after(betweenMs, () => sendNext(number + 1))
    }
    let timer = this.#clock.after(0, () => sendNext(1))
    response.once('close', () => {
      this.#open -= 1
      timer.cancel()
    })
  }
}
