// Reads one chat completion, streamed or not.

import { make } from './playground-make.js'

/** @import { ChatAnswer, ChatContent, ChatUsage, Failure, FusionReport, ToolCall, ToolCallPiece, Turn } from '../playground-types.ts' */

/** Longer raw answers are truncated. */
const maxRawCharacters = 200_000

const brokenOff = { message: 'The connection was lost. The answer is incomplete.' }
/**
 * The app's own errors are HTML pages, not JSON.
 * @type {Record<number, string>}
 */
const refused = {
  401: 'You are signed out. Sign in, then open this page again.',
  403: 'This page is out of date: you have signed in or out since you opened it. Reload it.',
}

/**
 * Collapsible reasoning text or fusion progress.
 * @param {Text | string} text
 * @param {boolean} isOpen
 */
export function thought(text, isOpen) {
  const body = make('div', { class: 'text thinking' }, text)
  return make('details', { open: isOpen }, make('summary', {}, 'Reasoning'), body)
}

/** @typedef {{ isDone: boolean, error: Failure | undefined }} StreamEnd */

/** An answer: an element that grows while it streams, then a turn of the conversation. */
export class Answer {
  #text = document.createTextNode('')
  #thoughts = document.createTextNode('')
  #thought = thought(this.#thoughts, true)
  /** Received but not rendered yet. */
  #newText = ''
  #newThoughts = ''
  #frame = 0
  #refusal = ''
  /** @type {ToolCall[]} */
  #calls = []
  #onProgress
  element
  raw = ''
  /** @type {ChatUsage | undefined} */
  usage
  /** @type {FusionReport | undefined} */
  report

  /**
   * `onProgress` receives each complete line of reasoning before the answer's text.
   * @param {string} title
   * @param {(line: string) => void} onProgress
   */
  constructor(title, onProgress) {
    this.#onProgress = onProgress
    this.#thought.hidden = true
    const body = make('div', { class: 'text' }, this.#text)
    this.element = make('li', { class: 'turn assistant' }, make('p', { class: 'who' }, title), this.#thought, body)
  }

  /**
   * Reads the whole response. Returns its error, if any.
   * @param {Response} response
   * @returns {Promise<Failure | undefined>}
   */
  async read(response) {
    const type = response.headers.get('content-type') ?? ''
    return type.startsWith('text/event-stream') && response.body !== null
      ? this.#readEvents(response.body)
      : this.#readWhole(response)
  }

  /** @param {Response} response */
  async #readWhole(response) {
    const text = await response.text()
    /** @type {ChatAnswer} */
    let body
    try {
      body = JSON.parse(text)
    } catch {
      const usual = `The app answered with status ${response.status}. Reload the page and try again.`
      return { message: refused[response.status] ?? usual }
    }
    this.raw = text
    if (body.error !== undefined) return body.error
    this.#take(body, body.choices?.[0]?.message)
    return undefined
  }

  /** @param {ReadableStream<Uint8Array<ArrayBuffer>>} body */
  async #readEvents(body) {
    const decoder = new TextDecoder()
    /** @type {StreamEnd} */
    const end = { isDone: false, error: undefined }
    let rest = ''
    for (const reader = body.getReader(); ;) {
      const { value, done } = await reader.read()
      const text = decoder.decode(value, { stream: !done })
      if (this.raw.length < maxRawCharacters) this.raw += text
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) this.#readLine(line, end)
      this.#frame ||= requestAnimationFrame(() => this.#draw())
      if (done) return end.error ?? (end.isDone ? undefined : brokenOff)
    }
  }

  /** @param {string} line @param {StreamEnd} end */
  #readLine(line, end) {
    if (!line.startsWith('data:')) return
    const data = line.slice('data:'.length).trim()
    if (data === '[DONE]') {
      end.isDone = true
      return
    }
    /** @type {ChatAnswer} */
    const event = JSON.parse(data)
    if (event.error !== undefined) end.error = event.error
    else this.#take(event, event.choices?.[0]?.delta)
  }

  /** @param {ChatAnswer} answer @param {ChatContent | undefined} said */
  #take({ usage, svc_router: ours }, said) {
    this.usage = usage ?? this.usage
    this.report = ours?.fusion ?? this.report
    if (said === undefined) return
    this.#newText += said.content ?? ''
    this.#newThoughts += said.reasoning_content ?? said.reasoning ?? ''
    this.#refusal += said.refusal ?? ''
    for (const [place, part] of (said.tool_calls ?? []).entries()) this.#takeCall(part, part.index ?? place)
  }

  /**
   * A tool call arrives in pieces: first its name, then its arguments.
   * @param {ToolCallPiece} piece
   * @param {number} index
   */
  #takeCall({ id = '', type = 'function', function: called, custom }, index) {
    const call = (this.#calls[index] ??= { id, type, [type]: { name: '' } })
    /** @type {Record<string, string>} */
    const parts = call[call.type] ?? { name: '' }
    for (const [name, text] of Object.entries(called ?? custom ?? {}))
      parts[name] = name === 'name' ? text || (parts['name'] ?? '') : (parts[name] ?? '') + text
  }

  /** Renders received text, at most once per animation frame. */
  #draw() {
    cancelAnimationFrame(this.#frame)
    this.#frame = 0
    if (this.#newThoughts !== '') {
      this.#thought.hidden = false
      this.#thoughts.appendData(this.#newThoughts)
      const isWholeLine = this.#newThoughts.endsWith('\n')
      if (isWholeLine && this.#text.length === 0) this.#onProgress(this.#newThoughts.trim().split('\n').at(-1) ?? '')
    }
    this.#text.appendData(this.#newText)
    this.#newText = this.#newThoughts = ''
  }

  /**
   * The turn for the conversation; undefined if there is no content. `failure` is the error it ended with.
   * @param {Failure | undefined} failure
   * @returns {Turn | undefined}
   */
  turn(failure) {
    this.#draw()
    const content = this.#text.data || this.#refusal
    const calls = failure === undefined ? this.#calls.filter(Boolean) : []
    if (content === '' && calls.length === 0) return undefined
    const broken = failure?.isStopped ? 'stopped' : 'incomplete'
    return {
      said: {
        role: 'assistant',
        content: content === '' ? null : content,
        ...(calls.length > 0 && { tool_calls: calls }),
      },
      thoughts: this.#thoughts.data,
      broken: failure === undefined ? undefined : broken,
    }
  }
}
