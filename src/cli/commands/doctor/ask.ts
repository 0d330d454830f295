import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'

/** The limit for response bodies. Our lists are far smaller; anything larger is from another service. */
const maxBodyBytes = 1024 * 1024

/** A response; its body is truncated at the limit. */
export interface Answer {
  readonly kind: 'answer'
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** When each chunk of the body arrived, in milliseconds after the request started. */
  readonly pieceMs: readonly number[]
  readonly totalMs: number
  /** The wall clock when the headers arrived, in epoch milliseconds. */
  readonly wallMs: number
}

/** Why there was no response. `plain`: the server does not speak TLS. `closed`: it closed the connection. */
type SilenceReason = 'refused' | 'unresolved' | 'unreachable' | 'timeout' | 'certificate' | 'plain' | 'closed'

export interface NoAnswer {
  readonly kind: 'silence'
  readonly reason: SilenceReason
}

export interface Question {
  readonly headers: Readonly<Record<string, string>>
  readonly withinMs: number
  /** Makes it a POST of JSON. */
  readonly body?: string
}

/** Sends one request on a new connection and reads the whole response, with a timeout. Never throws. */
export function ask(url: string, { headers, withinMs, body }: Question): Promise<Answer | NoAnswer> {
  const beganMs = performance.now()
  const since = (): number => performance.now() - beganMs
  return new Promise((resolve) => {
    const send = url.startsWith('https:') ? httpsRequest : httpRequest
    const request = send(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      agent: false,
    })
    const settle = (outcome: Answer | NoAnswer): void => {
      clearTimeout(limit)
      resolve(outcome)
      request.destroy()
    }
    const limit = setTimeout(() => settle({ kind: 'silence', reason: 'timeout' }), withinMs)
    // Keep this listener: destroying the request may still emit an error.
    request.on('error', (error) => settle({ kind: 'silence', reason: reasonOf(error) }))
    request.once('response', (response) => {
      const wallMs = Date.now()
      read(response, since, (body_, pieceMs) =>
        settle({
          kind: 'answer',
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: body_,
          pieceMs,
          totalMs: since(),
          wallMs,
        }),
      )
      response.once('error', (error) => settle({ kind: 'silence', reason: reasonOf(error) }))
    })
    request.end(body)
  })
}

function read(
  response: IncomingMessage,
  since: () => number,
  done: (body: string, pieceMs: readonly number[]) => void,
): void {
  const pieces: Buffer[] = []
  const pieceMs: number[] = []
  let bytes = 0
  const finish = (): void => done(Buffer.concat(pieces).toString('utf8'), pieceMs)
  response.on('data', (piece: Buffer) => {
    pieces.push(piece)
    pieceMs.push(since())
    bytes += piece.length
    if (bytes > maxBodyBytes) finish()
  })
  response.once('end', finish)
}

const reasonByCode: Readonly<Record<string, SilenceReason>> = {
  ECONNREFUSED: 'refused',
  ENOTFOUND: 'unresolved',
  EAI_AGAIN: 'unresolved',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
  ETIMEDOUT: 'timeout',
  EPROTO: 'plain',
  ERR_SSL_WRONG_VERSION_NUMBER: 'plain',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'plain',
}
const certificateCode = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME/

function reasonOf(error: Error): SilenceReason {
  const { code, errors } = error as { code?: unknown; errors?: readonly Error[] }
  // A host with several addresses fails with one error per address.
  if (typeof code !== 'string') return errors?.[0] === undefined ? 'closed' : reasonOf(errors[0])
  if (certificateCode.test(code)) return 'certificate'
  return reasonByCode[code] ?? 'closed'
}
