import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { closeServer, listen, shareAmongAddresses } from '../runtime/listening.ts'

/** Several Prometheus servers and a person with a browser. */
const maxConnections = 64
const headerBytes = 8 * 1024
const headerMs = 5_000
const requestMs = 10_000
const checkMs = 2_000
const silentMs = 60_000
const drainMs = 1_000

/** What is served: a registry, or those of several workers. */
export interface ServedMetrics {
  readonly contentType: string
  metrics(): Promise<string>
}

/** The listener for Prometheus. */
export interface MetricsListening extends AsyncDisposable {
  readonly port: number
}

/**
 * Serves the metrics at `/metrics` and nothing else, on its own listener, so that neither clients nor browsers reach
 * them (contract 28.13). Simultaneous requests share one reading.
 * @throws the system's error if the address is unavailable
 */
export async function serveMetrics(
  registry: ServedMetrics,
  { host, port }: { readonly host: string; readonly port: number },
  onBug: (error: unknown) => void,
): Promise<MetricsListening> {
  let reading: Promise<string> | undefined
  const read = (): Promise<string> =>
    (reading ??= registry.metrics().finally(() => {
      reading = undefined
    }))
  const server = createServer(
    {
      maxHeaderSize: headerBytes,
      headersTimeout: headerMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: checkMs,
    },
    ({ url = '', method = '' }, response) => {
      if (url.split('?', 1)[0] !== '/metrics') return send(response, 404, 'Not found. The metrics are at /metrics.\n')
      if (method !== 'GET' && method !== 'HEAD') return send(response, 405, 'Use GET.\n', { Allow: 'GET, HEAD' })
      read().then(
        (text) => send(response, 200, text, { 'Content-Type': registry.contentType }),
        (error: unknown) => {
          onBug(error)
          send(response, 500, 'The metrics could not be read. See internal_error in the log.\n')
        },
      )
    },
  )
  shareAmongAddresses(server, maxConnections)
  server.setTimeout(silentMs)
  await listen(server, { host, port })
  return { port: (server.address() as AddressInfo).port, [Symbol.asyncDispose]: () => closeServer(server, drainMs) }
}

function send(response: ServerResponse, status: number, text: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    ...headers,
  })
  response.end(text)
}
