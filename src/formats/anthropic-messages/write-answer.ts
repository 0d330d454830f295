import type { AnswerEvent, FinishReason, Usage } from '../../domain/conversation.ts'
import type { JsonObject } from '../../domain/json.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import { CallIds } from '../call-ids.ts'
import { shownModel, type AnswerContext, type AnswerWriter } from '../format.ts'
import type { StreamFailure } from '../stream-failure.ts'
import { ToolNames } from '../tool-names.ts'
import { type AnswerBlock, RedactedBlock, TextBlock, ThinkingBlock, ToolUseBlock } from './answer-block.ts'
import { readEncrypted } from './encrypted-reasoning.ts'
import { writeStopReason } from './finish-reason.ts'
import { failureFrame, frame, pingFrame } from './frames.ts'
import { writeUsage } from './usage.ts'

/**
 * Writes one answer as messages: content blocks in sequence, each opened, filled, and closed. If several arrive
 * interleaved, such as parallel calls with mixed arguments, the later ones wait until the open one has ended.
 */
export class MessagesWriter implements AnswerWriter {
  readonly #context: AnswerContext
  readonly #id: string
  readonly #callIds: CallIds
  #names: ToolNames | undefined
  /** The open block, followed by the waiting ones. */
  readonly #blocks: AnswerBlock[] = []
  #isOpen = false
  #nextIndex = 0
  readonly #calls = new Map<number, ToolUseBlock>()
  #begun = false
  #usage: Usage | undefined
  #reason: FinishReason = 'stop'
  #refused = false
  #report: JsonObject | undefined

  constructor(context: AnswerContext) {
    this.#context = context
    this.#id = `msg_${context.requestId.replace(/^req_/, '')}`
    this.#callIds = new CallIds(context.mintId)
  }

  writeEvents(events: readonly AnswerEvent[]): string {
    let out = ''
    for (const event of events) {
      if (event.type === 'usage') this.#usage = event.usage
      else if (event.type !== 'start') {
        if (!this.#begun) out += this.#begin()
        this.#take(event)
        out += this.#flush(event.type === 'finish')
      }
    }
    return out
  }

  writeKeepAlive(): string {
    return pingFrame
  }

  /** Usage may arrive after the end of the answer, but must be written before it. */
  writeEnd(): string {
    const opening = this.#begun ? '' : this.#begin()
    const delta = { stop_reason: this.#stopReason, stop_sequence: null }
    const end = { delta, usage: writeUsage(this.#usage), ...this.#extraFields }
    return opening + frame('message_delta', end) + frame('message_stop', {})
  }

  writeFailure(failure: StreamFailure): string {
    return failureFrame(failure)
  }

  writeWhole(events: readonly AnswerEvent[]): JsonObject {
    for (const event of events) {
      if (event.type === 'usage') this.#usage = event.usage
      else if (event.type !== 'start') this.#take(event)
    }
    const content = this.#blocks.map((block) => block.whole)
    return this.#message(content, this.#stopReason)
  }

  /** This format has no part for a model's refusal, so the reason labels it (contract 7.29). */
  get #stopReason(): string {
    const isLabeled = this.#refused && this.#reason === 'stop'
    return writeStopReason(isLabeled ? 'content_filter' : this.#reason, this.#calls.size)
  }

  #begin(): string {
    this.#begun = true
    return frame('message_start', { message: this.#message([], null) })
  }

  #message(content: readonly JsonObject[], reason: string | null): JsonObject {
    return {
      id: this.#id,
      type: 'message',
      role: 'assistant',
      model: shownModel(this.#context),
      content,
      stop_reason: reason,
      stop_sequence: null,
      usage: writeUsage(this.#usage),
      ...this.#extraFields,
    }
  }

  get #extraFields(): JsonObject {
    return this.#report === undefined ? {} : { svc_router: this.#report }
  }

  /** Adds the event's content to its block. */
  #take(event: AnswerEvent): void {
    switch (event.type) {
      case 'text':
        this.#text().add(event.text)
        break
      case 'refusal':
        this.#refused = true
        this.#text().add(event.text)
        break
      case 'annotation':
        this.#text().cite(event.annotation)
        break
      case 'reasoning':
        this.#thought().add(event.text)
        break
      case 'reasoning_end':
        this.#endThought(event.sealed)
        break
      case 'call':
        this.#openCall(event)
        break
      case 'call_arguments': {
        const call = this.#calls.get(event.index)
        if (call === undefined) throw new UpstreamError('broken')
        call.add(event.text)
        break
      }
      case 'finish':
        this.#reason = event.reason
        break
      case 'report':
        this.#report = event.report
        break
      case 'start':
      case 'usage':
      case 'service_call':
    }
  }

  #text(): TextBlock {
    const last = this.#blocks.at(-1)
    if (last instanceof TextBlock) return last
    const block = new TextBlock()
    this.#blocks.push(block)
    return block
  }

  #thought(): ThinkingBlock {
    const last = this.#blocks.at(-1)
    if (last instanceof ThinkingBlock && !last.isEnded) return last
    const block = new ThinkingBlock()
    this.#blocks.push(block)
    return block
  }

  #endThought(sealed: string | undefined): void {
    const last = this.#blocks.at(-1)
    if (last instanceof ThinkingBlock && !last.isEnded) last.seal(sealed)
    else if (sealed !== undefined) this.#blocks.push(silentThought(sealed))
  }

  #openCall(event: Extract<AnswerEvent, { readonly type: 'call' }>): void {
    this.#names ??= new ToolNames(this.#context.conversation.tools)
    const { kind, name, wrapped } = this.#names.identify(event)
    const block = new ToolUseBlock(this.#callIds.unique(event.id), name, kind === 'custom' && !wrapped)
    this.#calls.set(event.index, block)
    this.#blocks.push(block)
  }

  /** Flushes the open block, and opens the next ones if it has ended. */
  #flush(isLast: boolean): string {
    let out = ''
    for (;;) {
      const block = this.#blocks[0]
      if (block === undefined) return out
      if (!this.#isOpen) out += block.open(this.#nextIndex++)
      this.#isOpen = true
      out += block.flush()
      const hasEnded = isLast || block.isEnded || (this.#blocks.length > 1 && block.canEnd)
      if (!hasEnded) return out
      out += block.close()
      this.#blocks.shift()
      this.#isOpen = false
    }
  }
}

/** A block for reasoning that arrived encrypted and without text. */
function silentThought(sealed: string): AnswerBlock {
  const opened = readEncrypted(sealed)
  if (opened !== undefined && 'data' in opened) return new RedactedBlock(opened.data)
  const block = new ThinkingBlock()
  block.seal(sealed)
  return block
}
