import type { AnswerEvent, FinishReason, Usage } from '../../domain/conversation.ts'
import type { JsonObject } from '../../domain/json.ts'
import { errorFields } from '../error-fields.ts'
import type { AnswerContext, AnswerWriter } from '../format.ts'
import { writeUsage } from '../openai-chat/usage.ts'
import type { StreamFailure } from '../stream-failure.ts'

const done = 'data: [DONE]\n\n'

/** Writes one answer as a text completion: only its text, since the format has nothing else. */
export class CompletionsWriter implements AnswerWriter {
  readonly #context: AnswerContext
  readonly #fields: JsonObject
  #refused = false
  #usage: Usage | undefined
  #report: JsonObject | undefined

  constructor(context: AnswerContext) {
    this.#context = context
    const { requestId, createdAt, conversation } = context
    this.#fields = {
      id: `cmpl_${requestId.replace(/^req_/, '')}`,
      object: 'text_completion',
      created: createdAt,
      model: conversation.profile,
    }
  }

  writeEvents(events: readonly AnswerEvent[]): string {
    return events.map((event) => this.#writeEvent(event)).join('')
  }

  writeKeepAlive(): string {
    return ': keep-alive\n\n'
  }

  writeEnd(): string {
    if (!this.#context.conversation.streamUsage || this.#usage === undefined) return done
    return this.#chunk({ choices: [], usage: writeUsage(this.#usage), ...this.#reported() }) + done
  }

  writeFailure(failure: StreamFailure): string {
    return `data: ${JSON.stringify({ error: errorFields(failure) })}\n\n${done}`
  }

  writeWhole(events: readonly AnswerEvent[]): JsonObject {
    let text = ''
    let reason: FinishReason = 'stop'
    for (const event of events) {
      this.#note(event)
      text += textOf(event)
      if (event.type === 'finish') reason = this.#labeled(event.reason)
    }
    return {
      ...this.#fields,
      choices: [writeChoice(text, reason)],
      ...(this.#usage !== undefined && { usage: writeUsage(this.#usage) }),
      ...this.#reported(),
    }
  }

  #writeEvent(event: AnswerEvent): string {
    this.#note(event)
    if (event.type === 'finish') {
      const last = this.#context.conversation.streamUsage ? {} : this.#reported()
      return this.#chunk({ choices: [writeChoice('', this.#labeled(event.reason))], ...last })
    }
    const text = textOf(event)
    return text === '' ? '' : this.#chunk({ choices: [writeChoice(text, null)] })
  }

  #note(event: AnswerEvent): void {
    if (event.type === 'usage') this.#usage = event.usage
    else if (event.type === 'report') this.#report = event.report
    else if (event.type === 'refusal') this.#refused = true
  }

  /** This format has no member for a model's refusal, so the reason labels it (contract 7.29). */
  #labeled(reason: FinishReason): FinishReason {
    return this.#refused && reason === 'stop' ? 'content_filter' : reason
  }

  #reported(): JsonObject {
    return this.#report === undefined ? {} : { svc_router: this.#report }
  }

  #chunk(members: JsonObject): string {
    return `data: ${JSON.stringify({ ...this.#fields, ...members })}\n\n`
  }
}

/** A refusal is also text of the model. */
function textOf(event: AnswerEvent): string {
  return event.type === 'text' || event.type === 'refusal' ? event.text : ''
}

function writeChoice(text: string, reason: FinishReason | null): JsonObject {
  return { text, index: 0, logprobs: null, finish_reason: reason }
}
