import { lookup as systemLookup } from 'node:dns'
import { connect as connectTcp, isIP } from 'node:net'
import type { LookupFunction, Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions } from 'node:tls'
import type { Clock } from '../../runtime/clock.ts'
import { isPublicAddress } from './public-address.ts'
import { shortageOf } from './shortage.ts'

/** When TCP starts to probe whether a silent peer is alive. */
const tcpKeepAliveMs = 30_000

export interface ConnectorOptions {
  readonly clock: Clock
  /** DNS lookup, TCP, and TLS together. */
  readonly connectMs: number
  /** Whether only public addresses may be reached: checked before and after connecting, before any byte is sent. */
  readonly publicOnly: boolean
  /** Extra trusted certificates, PEM. */
  readonly ca: string | undefined
  /**
   * Replaces the system's name resolution. With `publicOnly`, its results are tried, and the connected address decides.
   */
  readonly lookup?: LookupFunction | undefined
  /** Called with the system's error code if this service ran out of resources for connections. */
  readonly onShortage?: ((code: string) => void) | undefined
}

/** The resolved address is not allowed (contract 21.9). */
class ForbiddenAddressError extends Error {
  override readonly name = 'ForbiddenAddressError'
  readonly code = 'ERR_FORBIDDEN_ADDRESS'

  constructor() {
    super('The address is not public.')
  }
}

/**
 * Why a call lost its connection: it never opened, it was closed, its data was not HTTP, or this service had no
 * descriptor, port, or slot for it (`not_sent`).
 */
export type Loss = 'timeout' | 'unreachable' | 'reset' | 'broken' | 'not_sent'

/**
 * Opens one connection, or reports why it cannot; calls back once, asynchronously. The connector handles the socket's
 * errors. Data goes to `onRead`, whose bytes are valid only until it returns.
 */
export type Connect = (onRead: (bytes: Buffer) => void, callback: (opened: Socket | Loss) => void) => void

/** The read buffer shared by all plain connections: each read is processed before the next one begins. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024)

/** Opens the connections of one origin: plain or TLS, HTTP/1.1 only, within `connectMs`. */
export function createConnector(origin: string, options: ConnectorOptions): Connect {
  const target = new URL(origin)
  const secure = target.protocol === 'https:'
  const hostname = target.hostname.replace(/^\[|\]$/g, '')
  const { clock, connectMs, publicOnly } = options
  const lookup = options.lookup ?? (publicOnly ? lookupPublic : undefined)
  // One origin, so one TLS session to resume.
  let session: Buffer | undefined

  return (onRead, callback) => {
    let settled = false
    let socket: Socket | undefined
    const fail = (loss: Loss): void => {
      if (settled) return
      settled = true
      timer.cancel()
      socket?.destroy()
      callback(loss)
    }
    const succeed = (opened: Socket): void => {
      if (settled) return
      settled = true
      timer.cancel()
      callback(opened)
    }
    const failWith = (error: Error): void => {
      const shortage = shortageOf(error)
      if (shortage === undefined) return fail('code' in error && error.code === 'ETIMEDOUT' ? 'timeout' : 'unreachable')
      options.onShortage?.(shortage)
      fail('not_sent')
    }
    const timer = clock.after(connectMs, () => fail('timeout'))

    if (publicOnly && isIP(hostname) !== 0 && !isPublicAddress(hostname)) {
      queueMicrotask(() => fail('unreachable'))
      return
    }
    const takeRead = (length: number): boolean => {
      onRead(readBuffer.subarray(0, length))
      return true
    }
    const tcp = connectTcp({
      host: hostname,
      port: Number(target.port) || (secure ? 443 : 80),
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: tcpKeepAliveMs,
      ...(lookup === undefined ? undefined : { lookup }),
      // Node would allocate for each read, and far more than most reads need.
      ...(secure ? undefined : { onread: { buffer: readBuffer, callback: takeRead } }),
    })
    socket = tcp
    tcp.on('error', failWith)
    tcp.once('connect', () => {
      if (settled) return
      if (publicOnly && !isPublicAddress(tcp.remoteAddress ?? '')) fail('unreachable')
      else if (!secure) succeed(tcp)
      else {
        const tls = connectTls({ socket: tcp, ...tlsOptions(hostname, options.ca, session) })
        socket = tls
        tls.on('session', (next) => {
          session = next
        })
        tls.on('error', failWith)
        tls.once('secureConnect', () => {
          tls.on('data', onRead)
          succeed(tls)
        })
        // A peer that closes during the handshake causes no error.
        tls.once('close', () => fail('unreachable'))
      }
    })
  }
}

function tlsOptions(hostname: string, ca: string | undefined, session: Buffer | undefined): ConnectionOptions {
  return {
    ...(isIP(hostname) === 0 ? { servername: hostname } : { host: hostname }),
    ALPNProtocols: ['http/1.1'],
    ...(ca === undefined ? undefined : { ca }),
    ...(session === undefined ? undefined : { session }),
  }
}

const lookupPublic: LookupFunction = (hostname, options, callback) => {
  systemLookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error !== null) return callback(error, [])
    const allowed = addresses.filter(({ address }) => isPublicAddress(address))
    const first = allowed[0]
    if (first === undefined) callback(new ForbiddenAddressError(), [])
    else if (options.all === true) callback(null, allowed)
    else callback(null, first.address, first.family)
  })
}
