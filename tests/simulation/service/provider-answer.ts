import { Buffer } from 'node:buffer'
import type { JsonObject } from '../../../src/domain/json.ts'
import type { FormatAnswers } from '../../../src/simulation/providers/format-answers.ts'
import type { Treatment } from './provider-faults.ts'
import type { ProviderCall } from './provider.ts'
import type { Network, SimulatedSocket } from './sockets.ts'
import { secretStart } from './template.ts'

/** Text that a provider writes into errors: it must not appear in any response, log, or record. */
export const providerSecret = `${secretStart}of-provider`

type CallEnd = 'keep' | 'fin' | 'rst' | 'abandoned'

/** Sends what a treatment says, piece by piece. */
export class CallAnswer {
  readonly #socket: SimulatedSocket
  readonly #network: Network
  readonly #call: ProviderCall
  readonly #format: FormatAnswers
  readonly #onEnd: (how: CallEnd) => void
  readonly #isClosed: () => boolean
  readonly #body: JsonObject
  #isOpen = false

  constructor(
    socket: SimulatedSocket,
    network: Network,
    call: ProviderCall,
    format: FormatAnswers,
    onEnd: (how: CallEnd) => void,
    isClosed: () => boolean,
  ) {
    this.#socket = socket
    this.#network = network
    this.#call = call
    this.#format = format
    this.#onEnd = onEnd
    this.#isClosed = isClosed
    this.#body = JSON.parse(call.body) as JsonObject
  }

  start(): void {
    const { treatment } = this.#call
    switch (treatment.kind) {
      case 'answer':
        return this.#after(treatment.firstMs, () => this.#answer(treatment.paceMs, treatment.closes))
      case 'reset':
        return this.#after(treatment.afterMs, () => this.#onEnd('rst'))
      case 'status':
        return this.#after(treatment.afterMs, () =>
          this.#sendStatus(treatment.status, treatment.retryAfter, treatment.code),
        )
      case 'silence':
        if (treatment.headers) this.#open(true)
        return
      case 'page':
        return this.#after(treatment.afterMs, () => {
          this.#sendWhole(200, `<!doctype html><p>${providerSecret}`, 'text/html')
          this.#onEnd('keep')
        })
      case 'empty':
        return this.#after(treatment.afterMs, () => {
          this.#open(this.#answers.stream)
          this.#close()
        })
      case 'bad_first':
        return this.#after(treatment.afterMs, () => {
          const garbage = treatment.with === 'garbage'
          this.#open(this.#answers.stream)
          if (!this.#answers.stream)
            this.#chunk(garbage ? `{"id":"${providerSecret}` : `{"error":{"message":"${providerSecret}"}}`)
          else this.#chunk(garbage ? `data: {"id":"${providerSecret}\n\n` : this.#answers.errorFrame(0))
          this.#close()
        })
      case 'broken':
        return this.#after(10, () => this.#break(treatment))
      case 'odd':
        return this.#after(10, () => this.#oddAnswer(treatment))
    }
  }

  get #answers(): ReturnType<FormatAnswers['answers']> {
    const { provider, text, number } = this.#call
    return this.#format.answers(
      provider,
      this.#body,
      { do: 'answer', text },
      { id: `${provider}${number}`, createdAt: 1_700_000_000 },
    )
  }

  #answer(paceMs: number, closes: boolean): void {
    const answers = this.#answers
    if (!answers.stream) {
      this.#complete()
      this.#sendWhole(200, JSON.stringify(answers.whole()), 'application/json', closes ? 'connection: close\r\n' : '')
      return this.#onEnd(closes ? 'fin' : 'keep')
    }
    this.#open(true, closes)
    this.#sendFrames([...answers.frames()], paceMs, () => {
      this.#complete()
      this.#close(closes)
    })
  }

  #break({ afterEvents, by, paceMs }: Extract<Treatment, { kind: 'broken' }>): void {
    const answers = this.#answers
    if (!answers.stream) {
      const text = JSON.stringify(answers.whole())
      this.#send(headOf(200, 'application/json', `content-length: ${Buffer.byteLength(text)}\r\n`))
      this.#send(text.slice(0, text.length / 2))
      if (by === 'stall') return
      return this.#after(20, () => this.#onEnd(by === 'rst' ? 'rst' : 'fin'))
    }
    this.#open(true)
    // Never the terminal events.
    const frames = [...answers.frames()]
    const part = frames.slice(0, Math.min(afterEvents, Math.max(0, frames.length - 4)))
    this.#sendFrames(part, paceMs, () => {
      if (by === 'stall') return
      if (by === 'error') this.#chunk(answers.errorFrame(part.length) + this.#format.ending)
      if (by === 'odd_error')
        this.#chunk(`event: error\ndata: {"detail":"${providerSecret}"}\n\n${this.#format.ending}`)
      if (by === 'garbage') this.#chunk(`data: {"broken${providerSecret}\n\n${this.#format.ending}`)
      if (by === 'fin' || by === 'rst') this.#after(20, () => this.#onEnd(by))
      else this.#close()
    })
  }

  #oddAnswer({ what, paceMs }: Extract<Treatment, { kind: 'odd' }>): void {
    const answers = this.#answers
    const stop = '"finish_reason":"stop"'
    const change = (text: string): string => {
      if (what === 'huge_usage') return withHugeUsage(text)
      return what === 'abort_reason' ? text.replace(stop, '"finish_reason":"abort"') : text
    }
    if (!answers.stream) {
      const text = JSON.stringify(answers.whole())
      if (change(text) === text || what === 'huge_usage') this.#complete()
      this.#sendWhole(200, change(text), 'application/json')
      return this.#onEnd('keep')
    }
    const given = [...answers.frames()]
    let frames = given.map(change)
    if (what === 'no_done') frames = frames.filter((frame) => frame !== this.#format.ending)
    // Content once more, as from a server that repeats itself.
    if (what === 'trailing') frames.push(frames[frames.length >> 1]!)
    // Only chat has this reason; an answer that ends with it is not complete.
    const isAborted = what === 'abort_reason' && given.some((frame) => frame.includes(stop))
    this.#open(true)
    this.#sendFrames(frames, paceMs, () => {
      if (!isAborted) this.#complete()
      this.#close()
    })
  }

  #sendFrames(frames: readonly string[], paceMs: number, done: () => void, from = 0): void {
    const frame = frames[from]
    if (frame === undefined) return done()
    this.#chunk(frame)
    // Many events arrive together.
    if (this.#network.dice.chance(0.6)) this.#sendFrames(frames, paceMs, done, from + 1)
    else this.#after(paceMs, () => this.#sendFrames(frames, paceMs, done, from + 1))
  }

  #sendStatus(status: number, retryAfter: string | undefined, code = 'simulated'): void {
    const words = code === 'context_length_exceeded' ? 'prompt is too long' : 'simulated'
    const body = JSON.stringify(this.#format.errorBody('simulated_error', code, `${words}: ${providerSecret}`))
    this.#sendWhole(status, body, 'application/json', retryAfter === undefined ? '' : `retry-after: ${retryAfter}\r\n`)
    this.#onEnd('keep')
  }

  #sendWhole(status: number, text: string, type: string, more = ''): void {
    this.#send(headOf(status, type, `content-length: ${Buffer.byteLength(text)}\r\n${more}`) + text)
  }

  #open(isStream: boolean, closes = false): void {
    if (this.#isOpen) return
    this.#isOpen = true
    const type = isStream ? 'text/event-stream; charset=utf-8' : 'application/json'
    this.#send(headOf(200, type, `transfer-encoding: chunked\r\n${closes ? 'connection: close\r\n' : ''}`))
  }

  #chunk(text: string): void {
    if (text !== '') this.#send(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
  }

  #close(closes = false): void {
    this.#send('0\r\n\r\n')
    this.#onEnd(closes ? 'fin' : 'keep')
  }

  #complete(): void {
    if (!this.#isClosed()) this.#call.completedMs = this.#network.timeline.nowMs
  }

  /** Sends text, sometimes in two pieces that are read separately. */
  #send(text: string): void {
    if (this.#isClosed()) return
    this.#call.lastSentMs = this.#network.timeline.nowMs
    const bytes = Buffer.from(text, 'utf8')
    const cut = this.#network.dice.chance(0.1) ? this.#network.dice.upTo(bytes.length) : bytes.length
    this.#socket.send(bytes.subarray(0, cut))
    if (cut < bytes.length) this.#socket.send(bytes.subarray(cut))
  }

  #after(ms: number, run: () => void): void {
    this.#network.timeline.after(ms, () => {
      if (this.#isClosed()) this.#onEnd('abandoned')
      else run()
    })
  }
}

function headOf(status: number, type: string, more: string): string {
  return `HTTP/1.1 ${status} Simulated\r\ncontent-type: ${type}\r\nx-request-id: upstream-id\r\n${more}\r\n`
}

/** A token count that no integer column holds. */
function withHugeUsage(text: string): string {
  return text.replace(/"(prompt_tokens|input_tokens)":\d+/, '"$1":1152921504606846976')
}
