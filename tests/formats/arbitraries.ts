import * as fc from 'fast-check'
import type {
  AnswerEvent,
  AssistantPart,
  Conversation,
  FinishReason,
  InputPart,
  OutputFormat,
  Tool,
  ToolCall,
  ToolChoice,
  Turn,
  Usage,
} from '../../src/domain/conversation.ts'
import type { Json, JsonObject } from '../../src/domain/json.ts'
import type { FormatId } from '../../src/formats/format.ts'
import { anyText } from '../any-text.ts'

const text = anyText({ minLength: 1, maxLength: 30 })
const name = fc.stringMatching(/^[a-zA-Z][a-zA-Z0-9-]{0,20}$/)
/** Objects as `JSON.parse` returns them: without -0. */
const object: fc.Arbitrary<JsonObject> = fc
  .dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 })
  .map((value) => JSON.parse(JSON.stringify(value)) as JsonObject)
/** `fc.webUrl` draws similar ones, but lists all characters first: see `anyText`. */
const address = fc
  .tuple(fc.constantFrom('http', 'https'), fc.domain(), fc.array(anyText({ maxLength: 8 }), { maxLength: 4 }))
  .map(([scheme, host, path]) => `${scheme}://${host}${path.map((part) => `/${encodeURIComponent(part)}`).join('')}`)
const dataUrl = fc.base64String({ minLength: 4, maxLength: 12 }).map((data) => `data:image/png;base64,${data}`)

/** Removes the fields that are undefined: in a conversation, such fields are absent. */
function present<Part extends object>(part: Part): Part {
  return Object.fromEntries(Object.entries(part).filter(([, value]) => value !== undefined)) as Part
}

const textPart: fc.Arbitrary<InputPart> = text.map((text) => ({ type: 'text', text }))
const image: fc.Arbitrary<InputPart> = fc
  .record({ url: dataUrl, detail: fc.constantFrom(undefined, 'low', 'high') })
  .map(({ url, detail }) => present({ type: 'image', url, detail }) as InputPart)
const file: fc.Arbitrary<InputPart> = fc
  .record({ data: dataUrl, filename: fc.option(name, { nil: undefined }) })
  .map(({ data, filename }) => present({ type: 'file', data, filename }) as InputPart)
const audio: fc.Arbitrary<InputPart> = fc
  .record({ data: fc.base64String(), format: fc.constantFrom('wav', 'mp3') })
  .map((part) => ({ type: 'audio', ...part }))

interface Exchange {
  readonly role: 'system' | 'developer' | 'user'
  readonly said: readonly InputPart[]
  readonly instruction: string
  readonly thought: string | undefined
  readonly answer: string | undefined
  readonly refusal: string | undefined
  readonly calls: readonly { readonly call: Omit<ToolCall, 'id' | 'type'>; readonly result: readonly InputPart[] }[]
}

/** Text that Messages accept: not blank, and without trailing whitespace, which a continued answer may not have. */
const saidText = text.map((text) => text.trimEnd()).filter((text) => text !== '')
const saidPart: fc.Arbitrary<InputPart> = saidText.map((text) => ({ type: 'text', text }))
const plainImage: fc.Arbitrary<InputPart> = dataUrl.map((url) => ({ type: 'image', url }))
const document: fc.Arbitrary<InputPart> = fc
  .record({ data: fc.base64String({ minLength: 4, maxLength: 12 }), filename: fc.option(name, { nil: undefined }) })
  .map(
    ({ data, filename }) =>
      present({ type: 'file', data: `data:application/pdf;base64,${data}`, filename }) as InputPart,
  )

/** In Messages, user and model alternate, and instructions come first. */
const messagesExchange: fc.Arbitrary<Exchange> = fc.record({
  role: fc.constant('user' as const),
  said: fc.array(fc.oneof(saidPart, plainImage, document), { minLength: 1, maxLength: 4 }),
  instruction: saidText,
  thought: fc.option(text, { nil: undefined }),
  answer: saidText,
  refusal: fc.constant(undefined),
  calls: fc.array(
    fc.record({
      call: fc.record({
        kind: fc.constant('function' as const),
        name,
        arguments: object.map((value) => JSON.stringify(value)),
      }),
      result: fc.array(fc.oneof(saidPart, plainImage, document), { maxLength: 3 }),
    }),
    { maxLength: 3 },
  ),
})

function exchange(format: FormatId): fc.Arbitrary<Exchange> {
  if (format === 'anthropic-messages') return messagesExchange
  const responses = format === 'openai-responses'
  const call = fc
    .record({
      kind: responses ? fc.constantFrom('function' as const, 'custom' as const) : fc.constant('function' as const),
      name,
      namespace: responses ? fc.option(name, { nil: undefined }) : fc.constant(undefined),
      arguments: object.map((value) => JSON.stringify(value)),
    })
    .map((value) => present(value) as Omit<ToolCall, 'id' | 'type'>)
  // Chat moves everything but text out of a result.
  const result = responses ? fc.array(fc.oneof(textPart, image), { minLength: 1, maxLength: 3 }) : fc.tuple(textPart)
  return fc.record({
    role: fc.constantFrom('system', 'developer', 'user'),
    said: fc.array(fc.oneof(textPart, image, file, audio), { minLength: 1, maxLength: 4 }),
    instruction: text,
    thought: fc.option(text, { nil: undefined }),
    answer: fc.option(text, { nil: undefined }),
    refusal: fc.option(text, { nil: undefined }),
    calls: fc.array(fc.record({ call, result }), { maxLength: 3 }),
  })
}

function turnsOf(exchanges: readonly Exchange[]): Turn[] {
  const turns: Turn[] = []
  for (const [position, { role, said, instruction, thought, answer, refusal, calls }] of exchanges.entries()) {
    turns.push({ role, parts: role === 'user' ? said : [{ type: 'text', text: instruction }] })
    const parts: AssistantPart[] = []
    if (thought !== undefined) parts.push({ type: 'reasoning', text: thought })
    if (answer !== undefined) parts.push({ type: 'text', text: answer })
    if (refusal !== undefined) parts.push({ type: 'refusal', text: refusal })
    const results: Turn[] = []
    for (const [number, { call, result }] of calls.entries()) {
      const id = `call_${position}_${number}`
      parts.push({ type: 'call', id, ...call })
      results.push({ role: 'tool', callId: id, parts: result, kind: call.kind })
    }
    if (parts.length > 0) turns.push({ role: 'assistant', parts }, ...results)
  }
  return turns
}

function tools(format: FormatId): fc.Arbitrary<Tool[]> {
  const description = fc.option(fc.string(), { nil: undefined })
  const declared = fc
    .record({ name, description, parameters: object, strict: fc.boolean() })
    .map((tool) => present({ type: 'function', ...tool }) as Tool)
  if (format === 'anthropic-messages') {
    const asObject = fc
      .record({ name, description, parameters: object.map((value) => ({ ...value, type: 'object' })) })
      .map((tool) => present({ type: 'function', ...tool }) as Tool)
    // A conversation with tool calls must declare tools.
    return fc.uniqueArray(asObject, { selector: nameOf, minLength: 1, maxLength: 4 })
  }
  if (format === 'openai-chat') return fc.uniqueArray(declared, { selector: nameOf, maxLength: 4 })
  const custom = fc
    .record({ name, description, format: fc.option(object, { nil: undefined }) })
    .map((tool) => present({ type: 'custom', ...tool }) as Tool)
  const inNamespace = fc
    .tuple(fc.oneof(declared, custom), fc.option(fc.constantFrom('files', 'agents'), { nil: undefined }))
    .map(([tool, namespace]) => present({ ...tool, namespace }) as Tool)
  return fc.uniqueArray(inNamespace, { selector: nameOf, maxLength: 5 })
}

function nameOf(tool: Tool): string {
  return tool.type === 'hosted' ? '' : tool.name
}

const outputFormat: fc.Arbitrary<OutputFormat | undefined> = fc.oneof(
  fc.constantFrom(undefined, { type: 'json_object' } as const),
  fc
    .record({ name, schema: object, description: fc.option(text, { nil: undefined }), strict: fc.boolean() })
    .map((format) => present({ type: 'json_schema', ...format }) as OutputFormat),
)

const closedFormat: fc.Arbitrary<OutputFormat | undefined> = fc.constantFrom(undefined, {
  type: 'json_schema',
  name: 'response',
  schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false },
})

/** Conversations that the format can express, as its reader returns them. */
export function arbitraryConversation(format: FormatId): fc.Arbitrary<Conversation> {
  const messages = format === 'anthropic-messages'
  return fc
    .record({
      exchanges: fc.array(exchange(format), { minLength: 1, maxLength: 4 }),
      tools: tools(format),
      mode: fc.constantFrom('auto', 'none', 'required', 'tool', undefined),
      parallel: fc.option(fc.boolean(), { nil: undefined }),
      outputFormat: messages ? closedFormat : outputFormat,
      stream: fc.boolean(),
      isInstructed: fc.boolean(),
    })
    .map(({ exchanges, tools, mode, parallel, outputFormat, stream, isInstructed }) => {
      const first = tools[0]
      const choice = first === undefined ? undefined : mode === 'tool' ? chosen(format, first) : mode && { type: mode }
      const conversation = {
        profile: 'svc-router/frontier',
        stream,
        turns: messages && isInstructed ? [instructionOf(exchanges), ...turnsOf(exchanges)] : turnsOf(exchanges),
        tools,
        toolChoice: choice,
        // In Messages it is part of the tool choice, and only of some choices.
        parallelToolCalls:
          first === undefined || (messages && (mode === undefined || mode === 'none')) ? undefined : parallel,
        outputFormat,
        sampling: {},
        streamUsage: false,
        hints: {},
      }
      return present(conversation) as Conversation
    })
}

function instructionOf([first]: readonly Exchange[]): Turn {
  return { role: 'system', parts: [{ type: 'text', text: first!.instruction }] }
}

function chosen(format: FormatId, tool: Tool): ToolChoice | undefined {
  if (tool.type === 'hosted') return undefined
  const namespace = format === 'openai-responses' ? tool.namespace : undefined
  return present({ type: 'tool', kind: tool.type, name: tool.name, namespace }) as ToolChoice
}

const logprobs: fc.Arbitrary<Json[]> = fc.array(
  fc.record({
    token: text,
    logprob: fc.double({ min: -9, max: -0.1, noNaN: true }),
    bytes: fc.constant([1]),
    top_logprobs: fc.constant([]),
  }),
  { minLength: 1, maxLength: 2 },
)
const textEvent: fc.Arbitrary<AnswerEvent> = fc.oneof(
  text.map((text) => ({ type: 'text' as const, text })),
  fc.record({ type: fc.constant('text' as const), text, logprobs }),
)
const annotation: fc.Arbitrary<AnswerEvent> = fc
  .record({ url: address, title: text, start_index: fc.nat(9), end_index: fc.nat(9) })
  .map((citation) => ({ type: 'annotation', annotation: { type: 'url_citation', ...citation } }))

/** Cached tokens are part of the input. */
function usageOf(counted: Omit<Usage, 'source'>): Usage {
  return { ...counted, cachedTokens: Math.min(counted.cachedTokens, counted.inputTokens), source: 'counted' }
}

/** Splits a text into non-empty pieces. */
function pieces(whole: string): string[] {
  return whole.match(/[\s\S]{1,7}/gu) ?? []
}

/** The events of a complete answer: parallel calls interleaved, usage before or after the end. */
export function arbitraryAnswer(): fc.Arbitrary<AnswerEvent[]> {
  return fc
    .record({
      reasoning: fc.array(text, { maxLength: 3 }),
      texts: fc.array(textEvent, { maxLength: 4 }),
      annotations: fc.array(annotation, { maxLength: 2 }),
      refusals: fc.array(text, { maxLength: 2 }),
      calls: fc.array(fc.record({ name, value: object, custom: fc.boolean() }), { maxLength: 3 }),
      mixed: fc.boolean(),
      cutOff: fc.constantFrom<(FinishReason | undefined)[]>(undefined, undefined, 'length', 'content_filter'),
      usage: fc.option(
        fc
          .record({
            inputTokens: fc.integer({ min: 1, max: 1e6 }),
            outputTokens: fc.nat(1e6),
            cachedTokens: fc.nat(9),
            reasoningTokens: fc.nat(9),
          })
          .map(({ inputTokens, outputTokens, cachedTokens, reasoningTokens }) => ({
            inputTokens,
            outputTokens,
            cachedTokens: Math.min(cachedTokens, inputTokens),
            reasoningTokens: Math.min(reasoningTokens, outputTokens),
          })),
        { nil: undefined },
      ),
      usageFirst: fc.boolean(),
    })
    .map((answer) => {
      const events: AnswerEvent[] = [{ type: 'start', id: 'backend-1', model: 'backend-model' }]
      for (const text of answer.reasoning) events.push({ type: 'reasoning', text })
      if (answer.reasoning.length > 0) events.push({ type: 'reasoning_end' })
      events.push(...answer.texts)
      if (answer.texts.length > 0) events.push(...answer.annotations)
      for (const text of answer.refusals) events.push({ type: 'refusal', text })
      const deltas: AnswerEvent[][] = []
      for (const [index, { name, value, custom }] of answer.calls.entries()) {
        const open: AnswerEvent = {
          type: 'call',
          index,
          kind: custom ? 'custom' : 'function',
          id: `call_${index}`,
          name,
        }
        const texts = pieces(JSON.stringify(value)).map((text): AnswerEvent => ({
          type: 'call_arguments',
          index,
          text,
        }))
        if (answer.mixed) events.push(open)
        deltas.push(answer.mixed ? texts : [open, ...texts])
      }
      if (answer.mixed) {
        for (let round = 0; deltas.some((list) => round < list.length); round++) {
          for (const list of deltas) if (list[round] !== undefined) events.push(list[round]!)
        }
      } else events.push(...deltas.flat())
      const reason = answer.cutOff ?? (answer.calls.length > 0 ? 'tool_calls' : 'stop')
      const ending: AnswerEvent[] = [{ type: 'finish', reason }]
      if (answer.usage !== undefined) {
        const usage: AnswerEvent = { type: 'usage', usage: usageOf(answer.usage) }
        if (answer.usageFirst) ending.unshift(usage)
        else ending.push(usage)
      }
      return [...events, ...ending]
    })
}
