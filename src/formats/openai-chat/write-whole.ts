import type { AnswerEvent, FinishReason, Usage } from '../../domain/conversation.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import { CallIds } from '../call-ids.ts'
import { unwrapInput } from '../custom-tools.ts'
import { shownModel, type AnswerContext } from '../format.ts'
import { writeServiceTier } from '../openai/service-tier.ts'
import { ToolNames } from '../tool-names.ts'
import { writeUsage } from './usage.ts'

interface CollectedCall {
  readonly event: Extract<AnswerEvent, { readonly type: 'call' }>
  text: string
}

/** Builds a whole chat completion from all of its events: one choice with text and calls together. */
export function writeWhole(events: readonly AnswerEvent[], id: string, context: AnswerContext): JsonObject {
  const { createdAt } = context
  const collected = new CollectedAnswer(events)
  const { logprobs, reason, usage, report } = collected
  return {
    id,
    created: createdAt,
    model: shownModel(context),
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: writeMessage(collected, context),
        logprobs: logprobs.length === 0 ? null : { content: logprobs, refusal: null },
        finish_reason: reason,
      },
    ],
    ...(usage !== undefined && { usage: writeUsage(usage) }),
    ...writeServiceTier(usage),
    ...(report !== undefined && { svc_router: report }),
  }
}

/** The combined content of an answer's events. */
class CollectedAnswer {
  text: string | undefined
  refusal: string | undefined
  reasoning = ''
  reason: FinishReason = 'stop'
  usage: Usage | undefined
  report: JsonObject | undefined
  readonly logprobs: Json[] = []
  readonly annotations: Json[] = []
  readonly calls = new Map<number, CollectedCall>()

  constructor(events: readonly AnswerEvent[]) {
    for (const event of events) this.#add(event)
  }

  #add(event: AnswerEvent): void {
    switch (event.type) {
      case 'text':
        this.text = (this.text ?? '') + event.text
        for (const token of event.logprobs ?? []) this.logprobs.push(token)
        break
      case 'refusal':
        this.refusal = (this.refusal ?? '') + event.text
        break
      case 'reasoning':
        this.reasoning += event.text
        break
      case 'annotation': {
        const annotation = writeAnnotation(event.annotation)
        if (annotation !== undefined) this.annotations.push(annotation)
        break
      }
      case 'call':
        this.calls.set(event.index, { event, text: '' })
        break
      case 'call_arguments': {
        const call = this.calls.get(event.index)
        if (call === undefined) throw new Error('arguments of a call that is not open')
        call.text += event.text
        break
      }
      case 'usage':
        this.usage = event.usage
        break
      case 'finish':
        this.reason = event.reason
        break
      case 'report':
        this.report = event.report
        break
      case 'start':
      case 'service_call':
      case 'reasoning_end':
        break
    }
  }
}

function writeMessage(collected: CollectedAnswer, context: AnswerContext): JsonObject {
  const { text, refusal, reasoning, annotations, calls } = collected
  const isSilent = text === undefined && (calls.size > 0 || refusal !== undefined)
  return {
    role: 'assistant',
    content: isSilent ? null : (text ?? ''),
    refusal: refusal ?? null,
    annotations,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(calls.size > 0 && { tool_calls: writeCalls(calls, context) }),
  }
}

/** One entry of `tool_calls`, without its index. */
export function writeCall(id: string, kind: 'function' | 'custom', name: string, text: string): JsonObject {
  if (kind === 'custom') return { id, type: kind, custom: { name, input: text } }
  return { id, type: kind, function: { name, arguments: text } }
}

/** A citation in chat's form; undefined for kinds that chat does not have. */
export function writeAnnotation(annotation: JsonObject): JsonObject | undefined {
  const { type, ...citation } = annotation
  return type === 'url_citation' ? { type, url_citation: citation } : undefined
}

function writeCalls(calls: ReadonlyMap<number, CollectedCall>, context: AnswerContext): JsonObject[] {
  const ids = new CallIds(context.mintId)
  const names = new ToolNames(context.conversation.tools)
  const written: JsonObject[] = []
  for (const { event, text } of calls.values()) {
    const { kind, name, wrapped } = names.identify(event)
    const whole = wrapped ? unwrapInput(text) : kind === 'function' ? text || '{}' : text
    written.push(writeCall(ids.unique(event.id), kind, name, whole))
  }
  return written
}
