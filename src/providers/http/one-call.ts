import { UpstreamError } from '../../domain/upstream.ts'
import { Call } from './call.ts'
import { baseUrlProblem } from './endpoint.ts'
import type { UpstreamPools } from './upstream-pools.ts'

const connectMs = 2_000
const maxBytes = 256 * 1024

interface OneCall {
  readonly method: 'GET' | 'POST'
  readonly url: string
  /** Header lines besides those that every call has. */
  readonly headers: readonly string[]
  readonly body: string
  /** Limit for the whole call, milliseconds. */
  readonly limitMs: number
  /** Only calls with the same one share connections. */
  readonly sharedBy: string
  /** Whether only public addresses may be reached (contract 21.9). */
  readonly publicOnly: boolean
  readonly requestId: string
  readonly accepts: (status: number) => boolean
}

/**
 * Fetches a public text: sends no credential, follows no redirect, and accepts only a complete 200 answer. @throws
 * UpstreamError, never with any of the answer's text
 */
export function getText(url: string, pools: UpstreamPools, requestId: string): Promise<string> {
  const headers = ['accept: application/json']
  const accepts = (status: number): boolean => status === 200
  const none = { body: '', sharedBy: 'none', publicOnly: false }
  return callOnce(pools, { ...none, method: 'GET', url, headers, limitMs: 5_000, requestId, accepts })
}

/** A message of this service to a URL of its operator, or of an account. */
export interface JsonPost {
  readonly url: string
  /** Header lines, such as `x-name: value`. */
  readonly headers: readonly string[]
  readonly body: string
  /** The account whose URL it is: its messages share connections with no other, and reach only public addresses if `publicOnly`. */
  readonly account?: { readonly id: string; readonly publicOnly: boolean }
}

/**
 * Sends JSON, and accepts a complete answer with a status of 200 to 299. Follows no redirect. @throws UpstreamError, never
 * with any of the answer's text
 */
export async function postJson(post: JsonPost, pools: UpstreamPools, requestId: string): Promise<void> {
  const headers = ['content-type: application/json', ...post.headers]
  const accepts = (status: number): boolean => status >= 200 && status < 300
  const { url, body, account } = post
  const reach = { sharedBy: account?.id ?? 'none', publicOnly: account?.publicOnly ?? false }
  await callOnce(pools, { ...reach, method: 'POST', url, headers, body, limitMs: 10_000, requestId, accepts })
}

function callOnce(pools: UpstreamPools, given: OneCall): Promise<string> {
  const { method, url, headers, body, limitMs, sharedBy, publicOnly, requestId, accepts } = given
  if (baseUrlProblem(url) !== undefined) throw new TypeError('the URL is invalid')
  const { origin, host, pathname, search } = new URL(url)
  const { clock, userAgent, onBug } = pools
  const lines = [
    `${method} ${pathname}${search} HTTP/1.1`,
    `host: ${host}`,
    'accept-encoding: identity',
    `user-agent: ${userAgent}`,
    ...headers,
  ]
  const options = { clock, onBug, head: `${lines.join('\r\n')}\r\n` }
  const pool = pools.pool({ origin, credential: sharedBy, connectMs, publicOnly })
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    const timer = clock.after(limitMs, () => giveUp(new UpstreamError('timeout')))
    const call = new Call(
      options,
      pool,
      { body, stream: false, requestId },
      {
        onHead: ({ status }) => accepts(status) || giveUp(new UpstreamError('server_error', { status })),
        onData(chunk) {
          bytes += chunk.length
          // Nobody reads the answer to a message.
          if (bytes <= maxBytes) void (method === 'GET' && chunks.push(Buffer.from(chunk)))
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
