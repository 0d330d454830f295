import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseObject } from '../../domain/json.ts'
import { aborted } from '../../runtime/aborted.ts'
import { isRejected, type SimulatedCache } from '../caches/simulated-cache.ts'
import { behave, sendStatus } from './behave.ts'
import { chatErrorBody } from './chat.ts'
import { hasForeignSeal } from './encrypted-reasoning.ts'
import { formatAnswersAt, type FormatAnswers } from './format-answers.ts'
import { unsignedStep, withPath } from './gemini.ts'
import { hasOrphanedOutput } from './prompt.ts'
import { readScript, Script, type ScriptStep } from './script.ts'
import { textsIn } from './texts-in.ts'

const host = '127.0.0.1'
const maxBodyBytes = 64 * 1024 * 1024
const maxRemembered = 100
const keepAliveMs = 75_000

export interface SimulatedOptions {
  /** Its name, included in every answer. */
  readonly name: string
  /** 0, the default, picks a free port. */
  readonly port?: number
  /** Delay between two events of a stream; default 0. */
  readonly tokenDelayMs?: number
  /** Stores the last requests with their bodies, for tests. Default false: no prompt is stored. */
  readonly capture?: boolean
  /**
   * Serves `PUT /script` and `GET /counts`, for tests in another process. Default false: only this process can script
   * failures.
   */
  readonly control?: boolean
  /** Overrides the text of an answer, given the text of the request; undefined keeps the default text. */
  readonly say?: ((request: string) => string | undefined) | undefined
  /** The prompt cache of each path, such as `/v1/messages`: it decides the input that usage reports, and rejects marks. */
  readonly caches?: Readonly<Record<string, SimulatedCache>> | undefined
}

export interface SimulatedProvider {
  readonly name: string
  readonly port: number
  /** `http://127.0.0.1:PORT/v1` */
  readonly baseUrl: string
  /**
   * Replaces the rest of the script: one step for each of the next requests. With `control`, `PUT /script` does the
   * same.
   */
  script(steps: readonly ScriptStep[]): void
  /** With `control` also available at `GET /counts`. */
  counts(): SimulatedCounts
  /** With `capture`: the last requests, oldest first. */
  captured(): readonly CapturedRequest[]
  /** Closes the port and every connection. */
  close(): Promise<void>
}

interface SimulatedCounts {
  /** Answer requests since the start. */
  readonly requests: number
  readonly open: number
  /** Answers that the client disconnected from early. */
  readonly aborted: number
  /** Times of the last 100 of them, epoch milliseconds. */
  readonly abortedAtMs: readonly number[]
  /** Connections accepted since the start. */
  readonly connections: number
  readonly stepsLeft: number
}

interface CapturedRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

/**
 * Starts a simulated provider: a real HTTP server on 127.0.0.1 that supports every provider format, says in every
 * answer and in `x-simulated` that it is simulated, and can be scripted to fail. @throws what `listen` throws
 */
export async function startSimulatedProvider(options: SimulatedOptions): Promise<SimulatedProvider> {
  const { name, port = 0, tokenDelayMs = 0, capture = false, control = false, say, caches = {} } = options
  // Different from the ids of another simulated provider, or of this one before a restart: a conversation may contain
  // both.
  const idPrefix = `sim${name.replace(/[^A-Za-z0-9]/g, '').slice(0, 12)}${Date.now().toString(36)}`
  const script = new Script()
  const captured: CapturedRequest[] = []
  const counter = new RequestCounter()
  const counts = (): SimulatedCounts => ({ ...counter.counts(), stepsLeft: script.left })

  const answer = async (request: IncomingMessage, response: ServerResponse, speaker: FormatAnswers): Promise<void> => {
    const counted = counter.begin(response)
    const text = await readBody(request)
    if (text === undefined) return sendStatus(response, 413, speaker.errorBody)
    if (capture) remember(captured, { path: request.url ?? '', headers: request.headers, body: text })
    const given = parseObject(text)
    if (given === undefined) return sendStatus(response, 400, speaker.errorBody)
    const body = withPath(given, request.url ?? '')
    if (hasForeignSeal(name, body)) {
      return sendStatus(response, 400, speaker.errorBody, {}, 'invalid_encrypted_content')
    }
    if (hasOrphanedOutput(body)) return sendStatus(response, 400, speaker.errorBody, { body: orphanedOutputBody })
    const step = withWords(unsignedStep(body) ?? script.next(), say?.(textsIn(body)))
    const cache = caches[(request.url ?? '').split('?')[0]!]?.ask(body, { nowMs: Date.now() })
    if (cache !== undefined && isRejected(cache)) return sendStatus(response, 400, speaker.errorBody)
    const stamp = {
      id: `${idPrefix}${counted.number.toString(36).padStart(5, '0')}`,
      createdAt: Math.floor(Date.now() / 1000),
      cache,
    }
    response.setHeader('x-request-id', `simulated-${stamp.id}`)
    await behave({
      ...speaker.answers(name, body, step, stamp),
      ending: speaker.ending,
      errorBody: speaker.errorBody,
      response,
      step,
      tokenDelayMs,
      signal: counted.signal,
      leave: counted.leave,
    })
  }

  const server = createServer({ keepAliveTimeout: keepAliveMs, requestTimeout: 0 }, (request, response) => {
    const url = (request.url ?? '').split('?')[0]!
    const path = `${request.method} ${url}`
    const speaker = request.method === 'POST' ? formatAnswersAt(url) : undefined
    const done =
      speaker !== undefined
        ? answer(request, response, speaker)
        : control && path === 'PUT /script'
          ? takeScript(request, response, script)
          : control && path === 'GET /counts'
            ? sendValue(response, counts())
            : sendOther(path, response, name)
    // A failure here is a bug of the simulation, and is reported to the caller.
    Promise.resolve(done).catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined))
  })
  server.on('connection', () => counter.connected())
  const listening = await listenOn(server, port)
  return {
    name,
    port: listening,
    baseUrl: `http://${host}:${listening}/v1`,
    script: (steps) => script.replace(readScript(steps)),
    counts,
    captured: () => captured,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** @returns the actual port, if `port` is 0. @throws what `listen` throws */
async function listenOn(server: Server, port: number): Promise<number> {
  server.listen(port, host)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

const orphanedOutputBody = JSON.stringify({
  error: {
    message: 'No tool call found for function call output.',
    type: 'invalid_request_error',
    param: 'input',
    code: null,
  },
})

/** Counts requests and connections. */
class RequestCounter {
  readonly #abortedAtMs: number[] = []
  #requests = 0
  #open = 0
  #aborted = 0
  #connections = 0

  connected(): void {
    this.#connections += 1
  }

  /** Counts a request until its response closes. `leave` says that the provider closes it early on purpose. */
  begin(response: ServerResponse): {
    readonly number: number
    readonly signal: AbortSignal
    readonly leave: () => void
  } {
    this.#requests += 1
    this.#open += 1
    const disconnected = new AbortController()
    let ours = false
    response.once('close', () => {
      this.#open -= 1
      if (!response.writableFinished && !ours) {
        this.#aborted += 1
        remember(this.#abortedAtMs, performance.timeOrigin + performance.now())
      }
      disconnected.abort(aborted)
    })
    const leave = (): void => {
      ours = true
    }
    return { number: this.#requests, signal: disconnected.signal, leave }
  }

  counts(): Omit<SimulatedCounts, 'stepsLeft'> {
    return {
      requests: this.#requests,
      open: this.#open,
      aborted: this.#aborted,
      abortedAtMs: [...this.#abortedAtMs],
      connections: this.#connections,
    }
  }
}

/** Overrides the answer's text, unless the step sets it. */
function withWords(step: ScriptStep, text: string | undefined): ScriptStep {
  return text === undefined || step.do !== 'answer' || step.text !== undefined ? step : { ...step, text }
}

async function takeScript(request: IncomingMessage, response: ServerResponse, script: Script): Promise<void> {
  try {
    script.replace(readScript(JSON.parse((await readBody(request)) ?? '')))
    response.writeHead(204).end()
  } catch (error) {
    const problem = error instanceof TypeError ? error.message : 'The script is not valid JSON.'
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ problem }))
  }
}

function sendOther(path: string, response: ServerResponse, name: string): void {
  if (path !== 'GET /v1/models') return sendStatus(response, 404, chatErrorBody)
  const model = { id: `simulated-${name}`, object: 'model', created: 0, owned_by: 'simulated' }
  sendValue(response, { object: 'list', data: [model] })
}

function sendValue(response: ServerResponse, value: object): void {
  response.writeHead(200, { 'content-type': 'application/json', 'x-simulated': 'true' }).end(JSON.stringify(value))
}

/** The body as text; undefined if it is longer than 64 MB. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes <= maxBodyBytes) chunks.push(chunk)
  }
  return bytes > maxBodyBytes ? undefined : Buffer.concat(chunks).toString('utf8')
}

function remember<T>(list: T[], entry: T): void {
  list.push(entry)
  if (list.length > maxRemembered) list.shift()
}
