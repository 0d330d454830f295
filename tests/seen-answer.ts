import type { JsonObject } from '../src/domain/json.ts'
import { eventsOf } from './spec/fused-answers.ts'

/** The content of an answer that a client sees, for any format, streamed or not. */
export interface SeenAnswer {
  text: string
  readonly calls: { readonly id: string; readonly name: string }[]
  /** Items of a response that are neither messages, reasoning nor calls. */
  readonly items: JsonObject[]
  /** `svc_router.fusion`. */
  report: JsonObject | undefined
  usage: Readonly<Record<string, number>> | undefined
  finish: string | undefined
}

interface Part {
  readonly type?: string
  readonly id?: string
  readonly name?: string
  readonly text?: string
}

interface Wire {
  readonly type?: string
  readonly object?: string
  readonly svc_router?: { readonly fusion: JsonObject }
  readonly usage?: Readonly<Record<string, number>> | null
  readonly choices?: readonly {
    readonly delta?: Said
    readonly message?: Said
    readonly finish_reason?: string | null
  }[]
  readonly content?: readonly Part[]
  readonly content_block?: Part
  readonly delta?: Part & { readonly stop_reason?: string }
  readonly stop_reason?: string | null
  readonly response?: Wire
  readonly status?: string
  readonly output?: readonly (JsonObject & Part & { readonly call_id?: string; readonly content?: readonly Part[] })[]
}

interface Said {
  readonly content?: string | null
  readonly tool_calls?: readonly { readonly id?: string; readonly function: { readonly name: string } }[]
}

/** Reads the body of an answer, streamed or not. */
export function seenIn(body: string): SeenAnswer {
  const seen: SeenAnswer = { text: '', calls: [], items: [], report: undefined, usage: undefined, finish: undefined }
  const all = body.startsWith('{') ? [JSON.parse(body) as Wire] : (eventsOf(body) as unknown as Wire[])
  for (const value of all) {
    if (value.object === 'response') seeResponse(seen, value)
    else if (value.type === 'response.completed') seeResponse(seen, value.response!)
    else see(seen, value)
  }
  return seen
}

function see(seen: SeenAnswer, value: Wire): void {
  seen.report = value.svc_router?.fusion ?? seen.report
  seen.usage = value.usage ?? seen.usage
  if (value.choices === undefined) seeMessage(seen, value)
  else for (const choice of value.choices) seeChoice(seen, choice)
}

function seeChoice(seen: SeenAnswer, { delta, message, finish_reason: reason }: NonNullable<Wire['choices']>[number]) {
  const said = delta ?? message
  seen.text += said?.content ?? ''
  for (const { id, function: called } of said?.tool_calls ?? [])
    if (id !== undefined) seen.calls.push({ id, name: called.name })
  seen.finish = reason ?? seen.finish
}

function seeMessage(seen: SeenAnswer, { type, content = [], content_block: block, delta, stop_reason: stop }: Wire) {
  if (type === 'message') for (const one of content) seeBlock(seen, one)
  if (block !== undefined) seeBlock(seen, block)
  if (delta?.type === 'text_delta') seen.text += delta.text ?? ''
  seen.finish = delta?.stop_reason ?? stop ?? seen.finish
}

function seeBlock(seen: SeenAnswer, { type, text, id, name }: Part): void {
  seen.text += text ?? ''
  if (type === 'tool_use') seen.calls.push({ id: id!, name: name! })
}

function seeResponse(seen: SeenAnswer, { output, usage, svc_router: said, status }: Wire): void {
  for (const item of output ?? []) {
    if (item.type === 'message') for (const part of item.content ?? []) seen.text += part.text ?? ''
    else if (item.type === 'function_call') seen.calls.push({ id: item.call_id!, name: item.name! })
    else if (item.type !== 'reasoning') seen.items.push(item)
  }
  seen.usage = usage ?? undefined
  seen.report = said?.fusion
  seen.finish = status
}
