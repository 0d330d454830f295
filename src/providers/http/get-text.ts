import { UpstreamError } from '../../domain/upstream.ts'
import { Call } from './call.ts'
import { endpointOf } from './endpoint.ts'
import type { UpstreamPools } from './upstream-pools.ts'

/** Time limits for connecting and for receiving the whole text. */
const connectMs = 2_000
const limitMs = 5_000
const maxBytes = 256 * 1024

/**
 * Fetches a public text: sends no credential, follows no redirect, and accepts only a complete 200 answer. @throws
 * UpstreamError, never with any of the answer's text
 */
export function getText(url: string, pools: UpstreamPools, requestId: string): Promise<string> {
  const { origin, path } = endpointOf(url, '')
  const { clock, userAgent, onBug } = pools
  const lines = [
    `GET ${path === '' ? '/' : path} HTTP/1.1`,
    `host: ${new URL(origin).host}`,
    'accept: application/json',
    'accept-encoding: identity',
    `user-agent: ${userAgent}`,
  ]
  const head = `${lines.join('\r\n')}\r\n`
  const options = { clock, onBug, head }
  const pool = pools.pool({ origin, credential: 'none', connectMs, publicOnly: false })
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    const timer = clock.after(limitMs, () => giveUp(new UpstreamError('timeout')))
    const call = new Call(
      options,
      pool,
      { body: '', stream: false, requestId },
      {
        onHead: ({ status }) => status === 200 || giveUp(new UpstreamError('server_error', { status })),
        onData(chunk) {
          bytes += chunk.length
          if (bytes <= maxBytes) chunks.push(Buffer.from(chunk))
          else giveUp(new UpstreamError('broken'))
        },
        onEnd() {
          timer.cancel()
          resolve(Buffer.concat(chunks).toString('utf8'))
        },
        onError(error) {
          timer.cancel()
          reject(error)
        },
      },
    )
    function giveUp(error: UpstreamError): void {
      timer.cancel()
      call.abort()
      reject(error)
    }
    if (pool.retired) return call.refuse()
    pools.touch(pool)
    pool.take(call)
  })
}
