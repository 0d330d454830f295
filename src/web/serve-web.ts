import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Clock } from '../runtime/clock.ts'
import { closeServer, listen, shareAmongAddresses } from '../runtime/listening.ts'
import { setSecurityHeaders } from './http/security-headers.ts'
import type { WebListener } from './web-listener.ts'

const headerBytes = 16 * 1024
const headerMs = 10_000
const requestMs = 30_000
const checkMs = 2_000
const keepAliveMs = 75_000
/** Idle timeout of a connection. */
const silentMs = 60_000
/** Time for requests in progress to complete at shutdown. */
const drainMs = 5_000
/** After this time, clients try again (`Retry-After`), and pages that could not be opened are opened again. */
const againMs = 1_000
const notYet = 'Not available yet. Try again in a second.\n'
const upgraded = 'The service was upgraded and must be restarted. Try again after that.\n'

/** The pages cannot be opened, because the service was upgraded and not restarted. */
export class ServiceUpgraded extends Error {
  override readonly name = 'ServiceUpgraded'
}

/** The listening server of the web app. */
export interface WebListening extends AsyncDisposable {
  readonly port: number
  /**
   * Serves requests from now on; before that, they get a 503 with `Retry-After`. The first request calls `open`. If that
   * fails, requests get a 503 for a second, and then the next one calls `open` again.
   */
  serve(open: () => Promise<WebListener>): void
}

export interface ListenForWebOptions {
  readonly host: string
  readonly port: number
  /** Whether other processes listen on the same port. */
  readonly sharesPort?: boolean | undefined
  /** Maximum number of open connections. */
  readonly connections: number
  readonly clock: Pick<Clock, 'monotonicMs'>
}

/**
 * Opens the app's port. The pages are opened later, because they need to know both ports.
 * @throws the system error if the address is in use or not available
 */
export async function listenForWeb(options: ListenForWebOptions): Promise<WebListening> {
  const { connections } = options
  let open: (() => Promise<WebListener>) | undefined
  let listener: WebListener | undefined
  const server = createServer(
    {
      maxHeaderSize: headerBytes,
      headersTimeout: headerMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: checkMs,
      keepAliveTimeout: keepAliveMs,
      noDelay: true,
    },
    async (request, response) => {
      if (listener !== undefined) return listener(request, response)
      if (open === undefined) return tryLater(response, notYet)
      try {
        listener = await open()
      } catch (error) {
        return tryLater(response, error instanceof ServiceUpgraded ? upgraded : notYet)
      }
      // The client may have disconnected in the meantime.
      if (response.destroyed) return
      return listener(request, response)
    },
  )
  shareAmongAddresses(server, connections)
  server.setTimeout(silentMs)
  await listen(server, options)
  return {
    port: (server.address() as AddressInfo).port,
    serve(given) {
      open = openOnce(given, options.clock)
    },
    [Symbol.asyncDispose]: () => closeServer(server, drainMs),
  }
}

/** Calls `open` once for all requests. If it fails, requests get its error until `againMs` later. */
function openOnce(open: () => Promise<WebListener>, clock: Pick<Clock, 'monotonicMs'>): () => Promise<WebListener> {
  let opened: Promise<WebListener> | undefined
  let failedMs: number | undefined
  const tryOpen = async (): Promise<WebListener> => {
    try {
      return await open()
    } catch (error) {
      failedMs = clock.monotonicMs()
      throw error
    }
  }
  return () => {
    if (failedMs !== undefined && clock.monotonicMs() - failedMs >= againMs) opened = failedMs = undefined
    return (opened ??= tryOpen())
  }
}

function tryLater(response: ServerResponse, text: string): void {
  const headers = new Headers({
    'Content-Type': 'text/plain;charset=UTF-8',
    'Retry-After': String(againMs / 1_000),
  })
  setSecurityHeaders(headers, false)
  response.statusCode = 503
  response.setHeaders(headers).end(text)
}
