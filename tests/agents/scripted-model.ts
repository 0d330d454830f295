import type { AnswerEvent, Conversation } from '../../src/domain/conversation.ts'
import type { ConversationFormatId } from '../../src/domain/format-id.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import { formatById } from '../../src/formats/formats.ts'
import { openEventStream, sendJson, startScriptedUpstream } from '../faults/scripted-upstream.ts'

/** A provider of one format whose model is a test function: it receives each parsed request and returns the events. */
export interface ScriptedModel extends AsyncDisposable {
  readonly baseUrl: string
  /** The bodies that the provider received, in order. */
  readonly bodies: JsonObject[]
}

export async function startScriptedModel(
  id: ConversationFormatId,
  answer: (conversation: Conversation, turn: number) => readonly AnswerEvent[] | Promise<readonly AnswerEvent[]>,
): Promise<ScriptedModel> {
  const format = formatById(id)
  const upstream = await startScriptedUpstream()
  const bodies: JsonObject[] = []
  let minted = 0
  upstream.answer = async (_request, response) => {
    const body = JSON.parse(upstream.bodies.at(-1)!) as JsonObject
    bodies.push(body)
    const conversation = format.readRequest(body)
    const nowSeconds = (): number => Math.floor(Date.now() / 1000)
    const writer = format.writeAnswer({
      conversation,
      requestId: `req_scripted${bodies.length}`,
      createdAt: nowSeconds(),
      nowSeconds,
      isStored: false,
      mintId: () => `scripted${(minted += 1)}`,
    })
    const usage = { inputTokens: 9, outputTokens: 9, cachedTokens: 0, reasoningTokens: 0, source: 'counted' } as const
    const events = [
      { type: 'start' } as const,
      ...(await answer(conversation, bodies.length)),
      { type: 'usage', usage } as const,
    ]
    if (!conversation.stream) return sendJson(response, JSON.stringify(writer.writeWhole(events)))
    openEventStream(response)
    response.end(writer.writeEvents(events) + writer.writeEnd())
  }
  return { baseUrl: upstream.baseUrl, bodies, [Symbol.asyncDispose]: () => upstream.close() }
}

/** A tool call as a model sends it, with a namespace or as free text if the tool was declared so. */
export function callOf(conversation: Conversation, name: string, input: string | JsonObject): AnswerEvent[] {
  return callsOf(conversation, [[name, input]])
}

/** A tool and its input. */
export type ModelCall = readonly [name: string, input: string | JsonObject]

/** Several tool calls in one message. */
export function callsOf(conversation: Conversation, calls: readonly ModelCall[]): AnswerEvent[] {
  const made = calls.flatMap(([name, input], index) => oneCall(conversation, name, input, index))
  return [...made, { type: 'finish', reason: 'tool_calls' }]
}

function oneCall({ tools }: Conversation, name: string, input: string | JsonObject, index: number): AnswerEvent[] {
  const tool = tools.find((one) => one.type !== 'hosted' && (one.name === name || one.name.endsWith(`__${name}`)))
  if (tool === undefined || tool.type === 'hosted') throw new Error(`no tool ${name} was declared`)
  const isFree = tool.type === 'custom'
  const text = typeof input === 'string' ? (isFree ? input : JSON.stringify({ input })) : JSON.stringify(input)
  const half = Math.floor(text.length / 2)
  return [
    {
      type: 'call',
      index,
      kind: tool.type,
      id: `call_scripted${index === 0 ? '' : index}`,
      name: tool.name,
      ...(tool.namespace !== undefined && { namespace: tool.namespace }),
    },
    { type: 'call_arguments', index, text: text.slice(0, half) },
    { type: 'call_arguments', index, text: text.slice(half) },
  ]
}

/** An answer with this text. */
export function textAnswer(text: string): AnswerEvent[] {
  return [
    { type: 'text', text },
    { type: 'finish', reason: 'stop' },
  ]
}

/** Counts the image parts in a body of any format. An image inside the text of a tool result does not count. */
export function imagesIn(body: JsonObject): number {
  const text = JSON.stringify(body)
  return text.match(/[^\\]"data:image\/png;base64,|[^\\]"media_type":"image\/png"/g)?.length ?? 0
}
