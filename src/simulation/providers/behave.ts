import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { JsonObject } from '../../domain/json.ts'
import type { ScriptStep, StepKind } from './script.ts'

/** One request and its default answer. */
export interface Exchange {
  readonly response: ServerResponse
  readonly step: ScriptStep
  readonly stream: boolean
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
  readonly tokenDelayMs: number
  readonly whole: () => JsonObject
  readonly frames: () => Iterable<string>
  /** The event that reports a failure, as number `sequence` of the stream. */
  readonly errorFrame: (sequence: number) => string
  /** The end of a stream after its last event; empty if there is none. */
  readonly ending: string
  /** The body of an error. */
  readonly errorBody: ErrorBody
  /** One text event of this many bytes. */
  readonly hugeFrame: (bytes: number) => string
  /** Marks the connection as closed by the simulation itself. */
  readonly leave: () => void
}

type ErrorBody = (type: string, code: string, message: string) => JsonObject

const simulatedHeader = { 'x-simulated': 'true' }
/** Time for written data to be sent. */
const flushMs = 15
const defaultHugeBytes = 2 * 1024 * 1024

const errorTypes: Readonly<Record<number, readonly [type: string, code: string]>> = {
  400: ['invalid_request_error', 'invalid_request'],
  401: ['authentication_error', 'invalid_api_key'],
  403: ['permission_error', 'permission_denied'],
  408: ['server_error', 'request_timeout'],
  413: ['invalid_request_error', 'request_too_large'],
  422: ['invalid_request_error', 'unprocessable'],
  429: ['rate_limit_error', 'rate_limit_exceeded'],
  529: ['overloaded_error', 'overloaded'],
}

/** Runs a request's step. Ends early, without an error, when the client disconnects. */
export async function behave(exchange: Exchange): Promise<void> {
  try {
    await behaviours[exchange.step.do](exchange)
  } catch (error) {
    if (!exchange.signal.aborted) throw error
  }
}

const behaviours: Readonly<Record<StepKind, (exchange: Exchange) => Promise<void> | void>> = {
  answer: sendAnswer,
  status: ({ response, step, errorBody }) => sendStatus(response, step.status ?? 500, errorBody, step),
  context_length_exceeded: ({ response, step, errorBody }) =>
    sendStatus(response, 400, errorBody, step, 'context_length_exceeded'),
  reset(exchange) {
    exchange.leave()
    exchange.response.socket?.resetAndDestroy()
  },
  silence() {},
  async slow_first(exchange) {
    if (!exchange.stream) return behaviours.slow_headers(exchange)
    openStream(exchange)
    await delay(exchange.step.ms ?? 0, undefined, { signal: exchange.signal })
    await sendAnswer(exchange)
  },
  async slow_headers(exchange) {
    await delay(exchange.step.ms ?? 0, undefined, { signal: exchange.signal })
    await sendAnswer(exchange)
  },
  async broken_first_event(exchange) {
    const garbage = exchange.step.with === 'garbage'
    if (exchange.stream) await sendFrames(exchange, [garbage ? 'data: {"id":"chatcmpl-\n\n' : exchange.errorFrame(0)])
    else
      sendWhole(exchange.response, garbage ? '{"id":"chatcmpl-' : JSON.stringify(refusalBody(500, exchange.errorBody)))
    exchange.response.end()
  },
  async empty(exchange) {
    if (exchange.stream) await sendFrames(exchange, [])
    else {
      const nothing = { choices: [], output: [], content: null, candidates: [], data: [] }
      sendWhole(exchange.response, JSON.stringify({ ...exchange.whole(), ...nothing }))
    }
    exchange.response.end()
  },
  html({ response }) {
    response.writeHead(200, { ...simulatedHeader, 'content-type': 'text/html; charset=utf-8' })
    response.end('<!doctype html><title>Simulated</title><p>This simulated page is not what you asked for.')
  },
  async cut(exchange) {
    await sendPart(exchange)
    // A reset overtakes data that is still in flight.
    await delay(flushMs, undefined, { signal: exchange.signal })
    const { by = 'fin' } = exchange.step
    exchange.leave()
    if (by === 'end') exchange.response.end()
    else if (by === 'fin') exchange.response.socket?.end()
    else exchange.response.socket?.resetAndDestroy()
  },
  async stall(exchange) {
    await sendPart(exchange)
  },
  async error_event(exchange) {
    if (!exchange.stream) return sendStatus(exchange.response, 500, exchange.errorBody, exchange.step)
    const sent = await sendPart(exchange)
    await sendFrames(exchange, [exchange.errorFrame(sent) + exchange.ending])
    exchange.response.end()
  },
  async no_done(exchange) {
    if (!exchange.stream) return sendAnswer(exchange)
    await sendFrames(exchange, without(exchange.ending, exchange.frames()))
    exchange.response.end()
  },
  async huge_line(exchange) {
    if (!exchange.stream) return sendAnswer(exchange)
    await sendFrames(exchange, [exchange.hugeFrame(exchange.step.bytes ?? defaultHugeBytes)])
    await sendAnswer(exchange)
  },
}

async function sendAnswer(exchange: Exchange): Promise<void> {
  if (exchange.stream) {
    await sendFrames(exchange, exchange.frames())
    exchange.response.end()
  } else {
    sendWhole(exchange.response, JSON.stringify(exchange.whole()))
    exchange.response.end()
  }
}

/** Sends the first `afterEvents` events, or half of a whole answer; returns the number of events sent. */
async function sendPart(exchange: Exchange): Promise<number> {
  if (!exchange.stream) {
    const text = JSON.stringify(exchange.whole())
    exchange.response.writeHead(200, { ...simulatedHeader, 'content-type': 'application/json' })
    exchange.response.write(text.slice(0, text.length / 2))
    return 0
  }
  return sendFrames(exchange, exchange.frames(), exchange.step.afterEvents ?? 1)
}

async function sendFrames(
  exchange: Exchange,
  frames: Iterable<string>,
  most = Number.POSITIVE_INFINITY,
): Promise<number> {
  const { response, signal } = exchange
  const delayMs = exchange.step.tokenDelayMs ?? exchange.tokenDelayMs
  const { delayAfterEvents = 1 } = exchange.step
  openStream(exchange)
  let sent = 0
  if (most === 0) return sent
  for (const frame of frames) {
    if (delayMs > 0 && sent >= delayAfterEvents) await delay(delayMs, undefined, { signal })
    if (!response.write(frame)) await once(response, 'drain', { signal })
    sent += 1
    if (sent >= most) break
  }
  return sent
}

function openStream({ response }: Exchange): void {
  if (response.headersSent) return
  response.writeHead(200, {
    ...simulatedHeader,
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
  })
  response.flushHeaders()
}

function sendWhole(response: ServerResponse, text: string): void {
  response.writeHead(200, {
    ...simulatedHeader,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  })
  response.write(text)
}

/** Sends a status and an error body like those of real providers. */
export function sendStatus(
  response: ServerResponse,
  status: number,
  errorBody: ErrorBody,
  step: Partial<ScriptStep> = {},
  code?: string,
): void {
  response.writeHead(status, {
    ...simulatedHeader,
    'content-type': 'application/json',
    ...(step.retryAfter === undefined ? undefined : { 'retry-after': step.retryAfter }),
  })
  response.end(step.body ?? JSON.stringify(refusalBody(status, errorBody, code)))
}

function refusalBody(status: number, errorBody: ErrorBody, code?: string): JsonObject {
  const [type, usual] = errorTypes[status] ?? ['server_error', 'server_error']
  const message =
    code === undefined ? `This is a simulated ${status}.` : `This is a simulated ${status}: prompt is too long.`
  return errorBody(type, code ?? usual, message)
}

function* without(ending: string, frames: Iterable<string>): Generator<string> {
  for (const frame of frames) if (frame !== ending) yield frame
}
