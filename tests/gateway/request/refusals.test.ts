import { describe, expect, test } from 'vitest'
import { ServiceError } from '../../../src/domain/errors.ts'
import type { ServiceEvent } from '../../../src/domain/events.ts'
import type { RequestOutcome } from '../../../src/domain/requests.ts'
import { FakeGateway } from '../fake-gateway.ts'
import { settled } from '../manual-clock.ts'

const clients = ['openai-chat', 'openai-responses', 'anthropic-messages', 'openai-completions'] as const
type ClientFormat = (typeof clients)[number]
const providers = ['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini'] as const
type ProviderFormat = (typeof providers)[number]

const refusalText = 'I cannot help with that.'
const providerText = 'PROVIDER TEXT at 10.0.0.7'

/** What a provider sends. A list is a stream's events; `status` is 200 unless given. */
interface Refusal {
  readonly what: string
  readonly status?: number
  readonly whole?: object
  readonly events?: readonly object[]
  /** Whether text of the answer came before it. */
  readonly isAfterContent?: boolean
}

const chatChunk = (delta: object, reason: string | null = null): object => ({
  id: 'c',
  object: 'chat.completion.chunk',
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: reason }],
})
const chatWhole = (message: object, reason: string): object => ({
  id: 'c',
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: reason }],
})
const chatFinish = (reason: string): Refusal[] => [
  {
    what: `${reason} without content`,
    whole: chatWhole({ content: null }, reason),
    events: [chatChunk({ role: 'assistant' }), chatChunk({}, reason)],
  },
  {
    what: `${reason} after content`,
    isAfterContent: true,
    whole: chatWhole({ content: 'Well, ' }, reason),
    events: [chatChunk({ role: 'assistant', content: 'Well, ' }), chatChunk({}, reason)],
  },
]

const response = (status: string, rest: object = {}): object => ({
  id: 'r',
  object: 'response',
  model: 'm',
  status,
  ...rest,
})
const message = (part: object): object => ({
  type: 'message',
  id: 'i',
  role: 'assistant',
  status: 'completed',
  content: [part],
})
const filtered = { incomplete_details: { reason: 'content_filter' } }
const added = { type: 'response.output_item.added', output_index: 0, item: { type: 'message', id: 'i', content: [] } }
const created = { type: 'response.created', response: response('in_progress') }
const responsesText = [
  created,
  added,
  { type: 'response.output_text.delta', output_index: 0, item_id: 'i', delta: 'Well, ' },
]

const messageStart = { type: 'message_start', message: { id: 'm', type: 'message', model: 'm', content: [] } }
const messagesText = [
  messageStart,
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Well, ' } },
]
const stopRefusal = [{ type: 'message_delta', delta: { stop_reason: 'refusal' } }, { type: 'message_stop' }]

const geminiText = { responseId: 'g', candidates: [{ content: { parts: [{ text: 'Well, ' }] } }] }
const geminiFinish = (reason: string): Refusal[] => [
  {
    what: `${reason} without content`,
    whole: { responseId: 'g', candidates: [{ finishReason: reason }] },
    events: [{ responseId: 'g', candidates: [{ finishReason: reason }] }],
  },
  {
    what: `${reason} after content`,
    isAfterContent: true,
    whole: { responseId: 'g', candidates: [{ content: { parts: [{ text: 'Well, ' }] }, finishReason: reason }] },
    events: [geminiText, { candidates: [{ finishReason: reason }] }],
  },
]

/** Refusals that are answers of each format (contract 7.29). */
const answers: Readonly<Record<ProviderFormat, readonly Refusal[]>> = {
  'openai-chat': [
    ...chatFinish('content_filter'),
    ...chatFinish('guardrail_intervened'),
    ...chatFinish('sensitive'),
    {
      what: 'the text of a refusal',
      whole: chatWhole({ content: null, refusal: refusalText }, 'stop'),
      events: [chatChunk({ role: 'assistant', refusal: refusalText }), chatChunk({}, 'stop')],
    },
  ],
  'openai-responses': [
    {
      what: 'content_filter without content',
      whole: response('incomplete', { ...filtered, output: [] }),
      events: [created, { type: 'response.incomplete', response: response('incomplete', { ...filtered, output: [] }) }],
    },
    {
      what: 'content_filter after content',
      isAfterContent: true,
      whole: response('incomplete', { ...filtered, output: [message({ type: 'output_text', text: 'Well, ' })] }),
      events: [
        ...responsesText,
        { type: 'response.incomplete', response: response('incomplete', { ...filtered, output: [] }) },
      ],
    },
    {
      what: 'the text of a refusal',
      whole: response('completed', { output: [message({ type: 'refusal', refusal: refusalText })] }),
      events: [
        created,
        added,
        { type: 'response.refusal.delta', output_index: 0, item_id: 'i', delta: refusalText },
        { type: 'response.completed', response: response('completed', { output: [] }) },
      ],
    },
  ],
  'anthropic-messages': [
    {
      what: 'refusal without content',
      whole: { id: 'm', type: 'message', model: 'm', content: [], stop_reason: 'refusal' },
      events: [messageStart, ...stopRefusal],
    },
    {
      what: 'refusal after content',
      isAfterContent: true,
      whole: {
        id: 'm',
        type: 'message',
        model: 'm',
        content: [{ type: 'text', text: 'Well, ' }],
        stop_reason: 'refusal',
      },
      events: [...messagesText, { type: 'content_block_stop', index: 0 }, ...stopRefusal],
    },
  ],
  gemini: ['SAFETY', 'PROHIBITED_CONTENT', 'MODEL_ARMOR'].flatMap(geminiFinish),
}

const openaiErrors: readonly (readonly [what: string, status: number, body: object])[] = [
  [
    'OpenAI: a flagged prompt',
    400,
    {
      error: {
        message: 'Invalid prompt: your prompt was flagged as potentially violating our usage policy.',
        type: 'invalid_request_error',
        param: null,
        code: 'invalid_prompt',
      },
    },
  ],
  [
    'OpenAI: content_policy_violation',
    400,
    { error: { message: providerText, type: 'invalid_request_error', param: null, code: 'content_policy_violation' } },
  ],
  [
    'OpenAI: cyber_policy',
    403,
    { error: { message: providerText, type: 'invalid_request', param: null, code: 'cyber_policy' } },
  ],
  [
    'Azure',
    400,
    {
      error: {
        message: 'The response was filtered',
        type: null,
        param: 'prompt',
        code: 'content_filter',
        status: 400,
        innererror: { code: 'ResponsibleAIPolicyViolation', content_filter_result: {} },
      },
    },
  ],
  [
    'OpenRouter',
    403,
    {
      error: {
        code: 403,
        message: 'This model requires moderation. Your input was flagged for "violence".',
        metadata: { reasons: ['violence'], flagged_input: providerText },
      },
    },
  ],
  [
    'OpenRouter, by its reasons',
    403,
    { error: { code: 403, message: 'Input flagged by moderation', metadata: { reasons: ['violence'] } } },
  ],
  [
    'xAI',
    403,
    {
      code: 'The caller does not have permission to execute the specified operation',
      error: 'Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO',
    },
  ],
  [
    'DeepSeek',
    400,
    {
      error: {
        message: 'Content Exists Risk',
        type: 'invalid_request_error',
        param: null,
        code: 'invalid_request_error',
      },
    },
  ],
  [
    'Alibaba',
    400,
    {
      error: {
        message: 'Input data may contain inappropriate content.',
        type: 'data_inspection_failed',
        code: 'data_inspection_failed',
      },
    },
  ],
]
/** Refusals that are errors of each format. */
const errors: Readonly<Record<ProviderFormat, typeof openaiErrors>> = {
  'openai-chat': openaiErrors,
  'openai-responses': openaiErrors,
  'anthropic-messages': [
    [
      'Anthropic',
      400,
      {
        type: 'error',
        error: { type: 'invalid_request_error', message: 'Output blocked by content filtering policy' },
      },
    ],
    ...openaiErrors.slice(4, 6),
  ],
  gemini: [
    [
      'Google: a blocked prompt',
      200,
      { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, usageMetadata: { promptTokenCount: 9 } },
    ],
    [
      'Google: an error',
      400,
      {
        error: {
          code: 400,
          message: 'The prompt was blocked because it violates the content policy.',
          status: 'INVALID_ARGUMENT',
        },
      },
    ],
  ],
}

const opening: Readonly<Record<ProviderFormat, readonly object[]>> = {
  'openai-chat': [chatChunk({ role: 'assistant', content: 'Well, ' })],
  'openai-responses': responsesText,
  'anthropic-messages': messagesText,
  gemini: [geminiText],
}

const bodies: Readonly<Record<ClientFormat, object>> = {
  'openai-chat': { messages: [{ role: 'user', content: 'Hi' }] },
  'openai-responses': { input: 'Hi', store: false },
  'anthropic-messages': { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 99 },
  'openai-completions': { prompt: 'Hi' },
}

/** How each client reads that an answer is a refusal. */
const labels: Readonly<Record<ClientFormat, RegExp>> = {
  'openai-chat': /"finish_reason":"(?:content_filter|guardrail_intervened|sensitive)"|"refusal":"I cannot help/,
  'openai-responses': /"incomplete_details":\{"reason":"content_filter"\}|"type":"(?:response\.)?refusal/,
  'anthropic-messages': /"stop_reason":"refusal"/,
  'openai-completions': /"finish_reason":"content_filter"/,
}

interface Seen {
  readonly error: ServiceError | undefined
  readonly text: string
  readonly outcome: RequestOutcome
  readonly line: ServiceEvent | undefined
  /** How many backends were asked. */
  readonly asked: number
}

/** One request that the first of two backends refuses. */
async function ask(client: ClientFormat, provider: ProviderFormat, stream: boolean, refusal: Refusal): Promise<Seen> {
  const gateway = new FakeGateway([provider, 'openai-chat'])
  const ended = gateway.answer(client, { ...bodies[client], stream }).then(
    () => undefined,
    (error: unknown) => error,
  )
  await settled()
  send(gateway, refusal, stream)
  await settled()
  const [first, second] = gateway.backends
  // A second backend that was asked must end, so that the test does.
  if (second!.requests.length > 0) {
    second!.head(503, 'application/json')
    second!.end()
  }
  const error = await ended
  if (error !== undefined && !(error instanceof ServiceError)) throw error
  return {
    error,
    text: gateway.sink.text,
    outcome: gateway.settled[0]!.outcome,
    line: gateway.line,
    asked: first!.requests.length + second!.requests.length,
  }
}

function send({ backends }: FakeGateway, { status = 200, whole, events }: Refusal, stream: boolean): void {
  const [first] = backends
  const isStream = stream && events !== undefined && status === 200
  first!.head(status, isStream ? 'text/event-stream' : 'application/json')
  if (isStream) for (const event of events) first!.send(frame(event))
  else first!.send(JSON.stringify(whole))
  first!.end()
}

function frame(event: object): string {
  const { type } = event as { type?: unknown }
  const name =
    typeof type === 'string' && /^(?:response\.|message|content_block|error)/.test(type) ? `event: ${type}\n` : ''
  return `${name}data: ${JSON.stringify(event)}\n\n`
}

function expectFinal({ asked, text, error, outcome, line }: Seen, charged: number): void {
  expect(asked).toBe(1)
  expect(outcome.attempts).toMatchObject([{ backend: 'b0', refused: true }])
  expect(line).toMatchObject({ refused: true, failed: undefined })
  expect(outcome.charged).toBe(charged)
  expect(`${text} ${error?.message}`).not.toContain(providerText)
}

const pairs = clients.flatMap((client) => providers.map((provider) => [client, provider] as const))
const shapes = [true, false] as const

describe.each(pairs)('a refusal to a client of %s by a backend of %s is final', (client, provider) => {
  const cases = answers[provider].flatMap((refusal) => shapes.map((stream) => ({ ...refusal, stream })))

  test.each(cases)('$what, streamed: $stream', async ({ stream, ...refusal }) => {
    const seen = await ask(client, provider, stream, refusal)
    expect(seen.error).toBeUndefined()
    expect(seen.text).toMatch(labels[client])
    expect(seen.outcome.errorCode).toBeUndefined()
    expectFinal(seen, 1)
    if (refusal.isAfterContent === true) expect(seen.text).toContain('Well, ')
  })

  const rejections = errors[provider].flatMap((error) => shapes.map((stream) => [...error, stream] as const))

  test.each(rejections)('%s, as a response with status %i and %o, streamed: %s', async (_, status, body, stream) => {
    const seen = await ask(client, provider, stream, { what: '', status, whole: body, events: [body] })
    expect(seen.error?.code).toBe('content_rejected')
    expect(seen.error?.status).toBe(400)
    expect(seen.error?.facts.words?.['rule']).toBe(': a content filter blocked the request or its answer')
    expect(seen.error?.facts.upstream).toBe('b0')
    expect(seen.outcome.errorCode).toBe('content_rejected')
    expectFinal(seen, 0)
  })

  test.each(errors[provider])('%s, as an event before content (%i)', async (_, __, body) => {
    const seen = await ask(client, provider, true, { what: '', events: [body] })
    expect(seen.error?.facts.words?.['rule']).toBe(': a content filter blocked the request or its answer')
    expectFinal(seen, 0)
  })

  test.each(errors[provider])('%s, as an event after content (%i)', async (_, __, body) => {
    const seen = await ask(client, provider, true, { what: '', events: [...opening[provider], body] })
    expect(seen.text).toContain('Well, ')
    expect(seen.text).toContain('content_rejected')
    expect(seen.text).toContain('a content filter blocked the request')
    expect(seen.outcome.errorCode).toBe('content_rejected')
    expectFinal(seen, 1)
  })
})

test('refusals never open a circuit breaker', async () => {
  const gateway = new FakeGateway(['openai-chat', 'openai-chat'])
  for (const [, status, body] of [...openaiErrors, ...openaiErrors]) {
    const ended = gateway.answer('openai-chat', { ...bodies['openai-chat'] }).catch((error: unknown) => error)
    await settled()
    send(gateway, { what: '', status, whole: body }, false)
    expect(await ended).toMatchObject({ code: 'content_rejected' })
  }
  expect(gateway.backends.map(({ requests }) => requests.length)).toEqual([2 * openaiErrors.length, 0])
})

test.each([
  [401, 'Your account was deactivated because it violated our usage policies.'],
  [403, 'Your account was deactivated because it violated our usage policies.'],
  [429, 'Too many requests to the content filter.'],
  [503, 'The content filter is overloaded.'],
])('%i with the message "%s" is no refusal', async (status, message) => {
  const gateway = new FakeGateway(['openai-chat', 'openai-chat'])
  const ended = gateway.answer('openai-chat', { ...bodies['openai-chat'] }).catch((error: unknown) => error)
  await settled()
  send(gateway, { what: '', status, whole: { error: { message } } }, false)
  await settled()
  const [, second] = gateway.backends
  expect(second!.requests).toHaveLength(1)
  second!.head(503, 'application/json')
  second!.end()
  await ended
  expect(gateway.settled[0]!.outcome.attempts.some(({ refused }) => refused)).toBe(false)
})

test('a model that may call the fusion tool is not asked again after a refusal that the client has not seen', async () => {
  const gateway = new FakeGateway(['openai-chat', 'openai-chat'])
  const body = { ...bodies['openai-chat'], stream: true, tools: [{ type: 'svc-router:fusion' }] }
  const ended = gateway.answer('openai-chat', body).catch((error: unknown) => error)
  await settled()
  const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'svc_router_fusion', arguments: '' } }
  const [, , body400] = openaiErrors[0]!
  send(gateway, { what: '', events: [chatChunk({ role: 'assistant', tool_calls: [call] }), body400] }, true)
  await settled()
  expect(gateway.backends.map(({ requests }) => requests.length)).toEqual([1, 0])
  expect(await ended).toMatchObject({ code: 'content_rejected' })
})
