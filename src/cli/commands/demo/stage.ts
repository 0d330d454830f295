import { type Json, type JsonObject, isObject, parseObject } from '../../../domain/json.ts'
import type { RequestRecord } from '../../../domain/requests.ts'
import type { Attempt } from '../../../domain/upstream.ts'
import { quoteForShell } from '../../../runtime/quote-for-shell.ts'
import { CommandError, exitCodes } from '../../failures.ts'
import type { Piece, SafeTerminal } from '../../terminal/safe-terminal.ts'
import type { DemoService } from './demo-ports.ts'

const maxAnswerMs = 8_000
const maxShownChars = 160
const chatPath = '/chat/completions'

/** The answer to one request of a demo. */
export interface DemoAnswer {
  readonly status: number
  readonly headers: Headers
  readonly body: JsonObject
  /** The answer's text, or the error's message. */
  readonly text: string
  readonly ms: number
  /** Undefined if the request was not admitted. */
  readonly record: RequestRecord | undefined
}

/** A statement that a demo checks. */
export interface Check {
  readonly claim: string
  readonly holds: boolean
}

interface StageOptions {
  readonly service: DemoService
  readonly signal: AbortSignal
  readonly headers: readonly string[]
  readonly terminal: SafeTerminal | undefined
}

/** Where a demo runs: it sends real requests to the demo's service, and prints what happens as it happens. */
export class Stage {
  readonly service: DemoService
  readonly signal: AbortSignal
  readonly checks: Check[] = []
  readonly #shownHeaders: readonly string[]
  readonly #print: (...pieces: readonly Piece[]) => void

  /** Without a terminal it prints nothing. `headers` are those to print of each answer. */
  constructor({ service, signal, headers, terminal }: StageOptions) {
    this.service = service
    this.signal = signal
    this.#shownHeaders = headers
    this.#print = (...pieces) => terminal?.out(...pieces)
  }

  /** Begins a part of the demo. */
  title(text: string): void {
    this.#print('\n', { style: 'bold', text })
  }

  /** Prints a line about what happens. */
  note(text: string): void {
    this.#print(`  ${text}`)
  }

  /** Checks a statement, and prints whether it is true. */
  check(claim: string, holds: boolean): void {
    this.checks.push({ claim, holds })
    this.#print('  ', holds ? { style: 'green', text: 'ok' } : { style: 'red', text: 'BROKEN' }, `  ${claim}`)
  }

  /** Sends one request, and prints it with its answer. */
  async ask(body: JsonObject): Promise<DemoAnswer> {
    this.note(writeCurl(this.service.baseUrl, body))
    const answer = await this.send(body)
    this.show(answer)
    return answer
  }

  /** Sends the same request `count` times at once. */
  async askAtOnce(body: JsonObject, count: number): Promise<readonly DemoAnswer[]> {
    this.note(`for i in $(seq ${count}); do ${writeCurl(this.service.baseUrl, body)} & done; wait`)
    return Promise.all(Array.from({ length: count }, () => this.send(body)))
  }

  /** Prints an answer: its status, the headers that matter, its text, and what it took. */
  show({ status, headers, text, ms, record }: DemoAnswer): void {
    this.#print('  ', { style: 'bold', text: `HTTP ${status}` }, ` after ${Math.round(ms)} ms`)
    for (const name of this.#shownHeaders) {
      const value = headers.get(name)
      if (value !== null) this.note(`${name}: ${value}`)
    }
    this.note(`${status === 200 ? 'answer: ' : 'message:'}  ${shorten(text)}`)
    if (record === undefined) return
    if (record.fusions === undefined) this.note(`attempts: ${record.attempts.map(writeAttempt).join(', then ')}`)
    this.note(`charged:  ${record.charged} of ${record.units} quota units`)
  }

  async send(body: JsonObject): Promise<DemoAnswer> {
    const startedMs = performance.now()
    const { response, raw } = await this.#fetch(this.#init(body))
    const ms = performance.now() - startedMs
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    const answer = isStream ? undefined : parseObject(raw)
    const id = response.headers.get('x-request-id') ?? ''
    // A request that was rejected before admission has no record to wait for.
    const isAdmitted = response.status < 400 || response.status >= 500
    return {
      status: response.status,
      headers: response.headers,
      body: answer ?? {},
      text: isStream ? streamedText(raw) : textOf(answer),
      ms,
      record: isAdmitted ? await this.service.recordOf(id) : undefined,
    }
  }

  /** Sends a request to `/responses` of the service or of a provider, and returns its answer without printing either. */
  async post(baseUrl: string, body: JsonObject, headers: Readonly<Record<string, string>> = {}): Promise<JsonObject> {
    const { response, raw } = await this.#fetch(this.#init(body, headers), `${baseUrl}/responses`)
    const answer = parseObject(raw)
    if (response.status === 200 && answer !== undefined) return answer
    throw new CommandError(
      exitCodes.failure,
      `${baseUrl} answered ${response.status}: ${shorten(textOf(answer))}`,
      'this is a bug of the demo: report it',
    )
  }

  #init(body: JsonObject, headers: Readonly<Record<string, string>> = {}): RequestInit {
    return {
      method: 'POST',
      headers: { ...headers, authorization: `Bearer ${this.service.key.reveal()}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }
  }

  async #fetch(
    init: RequestInit,
    url = `${this.service.baseUrl}${chatPath}`,
  ): Promise<{ readonly response: Response; readonly raw: string }> {
    const signal = AbortSignal.any([this.signal, AbortSignal.timeout(maxAnswerMs)])
    try {
      const response = await fetch(url, { ...init, signal })
      return { response, raw: await response.text() }
    } catch {
      this.signal.throwIfAborted()
      throw new CommandError(
        exitCodes.unreachable,
        `the service of the demo did not answer within ${maxAnswerMs / 1000} s`,
        'run the demo again; if it fails again, the machine may be too busy, or a firewall blocks 127.0.0.1',
      )
    }
  }
}

/** The units that answers were charged, by the records of the service. */
export function chargedFor(answers: readonly DemoAnswer[]): number {
  return answers.reduce((sum, { record }) => sum + (record?.charged ?? 0), 0)
}

/** A chat request with one message. */
export function chatRequest(model: string, content: string, extra: JsonObject = {}): JsonObject {
  return { model, messages: [{ role: 'user', content }], ...extra }
}

function writeCurl(baseUrl: string, body: JsonObject): string {
  const url = quoteForShell(`${baseUrl}${chatPath}`)
  return `curl -i ${url} -H "authorization: Bearer $SVC_ROUTER_API_KEY" -H 'content-type: application/json' -d ${quoteForShell(JSON.stringify(body))}`
}

function writeAttempt({ backend, outcome, status, ms }: Attempt): string {
  return `${backend} ${outcome}${status === undefined ? '' : ` (${status})`} ${Math.round(ms)} ms`
}

function textOf(answer: JsonObject | undefined): string {
  const { error, choices } = answer ?? {}
  if (isObject(error)) return writeText(error['message'])
  const [choice] = Array.isArray(choices) ? choices : []
  const message = isObject(choice) ? choice['message'] : undefined
  return isObject(message) ? writeText(message['content']) : ''
}

function streamedText(raw: string): string {
  return raw
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => deltaOf(parseObject(line.slice('data: '.length))))
    .join('')
}

function deltaOf(chunk: JsonObject | undefined): string {
  const [choice] = Array.isArray(chunk?.['choices']) ? chunk['choices'] : []
  const delta = isObject(choice) ? choice['delta'] : undefined
  return isObject(delta) ? writeText(delta['content']) : ''
}

function writeText(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

function shorten(text: string): string {
  const flat = text.replaceAll(/\s+/g, ' ').trim()
  return flat.length > maxShownChars ? `${flat.slice(0, maxShownChars)}…` : flat
}
