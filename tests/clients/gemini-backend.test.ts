import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/domain/json.ts'
import { Service } from '../service.ts'

let service: Service
const weather = { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } }
const question = 'What is the weather in Oslo and Bergen?'

beforeAll(async () => {
  service = await Service.start({ formats: ['gemini', 'openai-chat'] })
})
afterAll(() => service.stop())
beforeEach(() => {
  for (const provider of service.providers) provider.script([])
})

interface ChatMessage {
  readonly content: string | null
  readonly tool_calls?: readonly {
    readonly id: string
    readonly function: { readonly name: string; readonly arguments: string }
  }[]
}
interface Item extends JsonObject {
  readonly type: string
  readonly call_id?: string
  readonly encrypted_content?: string
}

async function messageOf(response: Response): Promise<ChatMessage> {
  const body = (await response.json()) as { choices: { message: ChatMessage }[] }
  return body.choices[0]!.message
}

function lastBody(): { contents: { parts: JsonObject[] }[] } {
  return JSON.parse(service.providers[0]!.captured().at(-1)!.body) as { contents: { parts: JsonObject[] }[] }
}

describe('a backend of format gemini', () => {
  test('it answers chat, non-streaming and streamed, with usage', async () => {
    const response = await service.chat()
    expect(response.status).toBe(200)
    expect(response.headers.get('x-svc-router-upstream')).toBe('alpha')
    const body = (await response.json()) as { usage: { prompt_tokens: number }; model: string; choices: JsonObject[] }
    expect(JSON.stringify(body.choices)).toContain('This is a simulated answer from alpha. You said: \\"Say hello.\\".')
    expect(body.model).toBe('svc-router/frontier')
    const streamed = await service.chat({ stream: true, stream_options: { include_usage: true } })
    const text = await streamed.text()
    expect(text).toContain('"finish_reason":"stop"')
    expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true)
    expect(text).toContain(`"prompt_tokens":${body.usage.prompt_tokens}`)
    expect(service.providers[0]!.captured().map(({ path }) => path)).toEqual([
      '/v1/models/gemini-3-alpha:generateContent',
      '/v1/models/gemini-3-alpha:streamGenerateContent?alt=sse',
    ])
  })

  test('it answers responses, with its thoughts as a summary', async () => {
    const response = await service.responses({ stream: true, reasoning: { effort: 'high', summary: 'auto' } })
    const text = await response.text()
    expect(text).toContain('response.reasoning_summary_text.delta')
    expect(text).toContain('event: response.completed')
  })

  test('it calls tools in two steps from chat, which cannot store signatures', async () => {
    const tools = [{ type: 'function', function: weather }]
    const messages: object[] = [{ role: 'user', content: question }]
    const first = await messageOf(await service.chat({ messages, tools }))
    expect(first.tool_calls?.map((call) => call.function.arguments)).toEqual(['{"city":"Oslo"}', '{"city":"Bergen"}'])
    messages.push({ role: 'assistant', ...first })
    for (const { id } of first.tool_calls!)
      messages.push({ role: 'tool', tool_call_id: id, content: `weather of ${id}` })
    const second = await service.chat({ messages, tools })
    expect(second.headers.get('x-svc-router-retry-count')).toBe('0')
    expect((await messageOf(second)).content).toContain('The tool answered: "weather of')
  })

  test('it gets its signature back with the call from responses, and no other backend does', async () => {
    const tools = [{ type: 'function', ...weather }]
    const input: JsonObject[] = [{ role: 'user', content: question }]
    const first = (await (await service.responses({ input, tools, store: false })).json()) as { output: Item[] }
    const sealed = first.output.find(({ type }) => type === 'reasoning')?.encrypted_content
    const signature = /^svcr1\.[\w-]{12}\.(.+)$/.exec(sealed ?? '')?.[1]
    expect(signature).toBeDefined()
    input.push(...first.output)
    for (const { type, call_id: id } of first.output) {
      if (type === 'function_call') input.push({ type: 'function_call_output', call_id: id, output: 'rain' })
    }
    const second = await service.responses({ input, tools, store: false })
    expect(second.status).toBe(200)
    const signatures = lastBody().contents.flatMap(({ parts }) =>
      parts.filter((part) => part['functionCall'] !== undefined).map((part) => part['thoughtSignature']),
    )
    expect(signatures).toEqual([signature, undefined])

    service.providers[0]!.script([{ do: 'status', status: 503 }])
    const elsewhere = await service.responses({ input, tools, store: false })
    expect(elsewhere.headers.get('x-svc-router-upstream')).toBe('beta')
    expect(service.providers[1]!.captured().at(-1)!.body).not.toContain(signature)
  })

  test('it accepts structured output and images', async () => {
    const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
    const structured = await service.chat({
      response_format: { type: 'json_schema', json_schema: { name: 'c', schema } },
    })
    expect(JSON.parse((await messageOf(structured)).content!)).toHaveProperty('city')
    const content = [
      { type: 'text', text: 'See' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
    ]
    const image = await messageOf(await service.chat({ messages: [{ role: 'user', content }] }))
    expect(image.content).toContain('I received 1 image.')
  })

  test.each([
    [
      'a wrong key',
      400,
      { code: 400, status: 'INVALID_ARGUMENT', details: [{ reason: 'API_KEY_INVALID' }], message: 'secret' },
    ],
    ['an exhausted quota', 429, { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'secret' }],
    ['an overloaded model', 503, { code: 503, status: 'UNAVAILABLE', message: 'secret' }],
  ])('it fails over at %s', async (_, status, error) => {
    const own = await Service.start({ formats: ['gemini', 'openai-chat'] })
    try {
      own.providers[0]!.script([{ do: 'status', status, body: JSON.stringify({ error }) }])
      const response = await own.chat()
      expect([response.status, response.headers.get('x-svc-router-upstream')]).toEqual([200, 'beta'])
      expect(await response.text()).not.toContain('secret')
    } finally {
      await own.stop()
    }
  })

  test('a prompt that Google blocks as content is rejected without asking another backend', async () => {
    const blocked = { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 3 } }
    service.providers[0]!.script([{ do: 'status', status: 200, body: JSON.stringify(blocked) }])
    const before = service.providers[1]!.counts().requests
    const response = await service.chat()
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      error: { code: 'content_rejected', source: 'provider', retryable: false },
    })
    expect(service.providers[1]!.counts().requests).toBe(before)
  })

  test.each([
    ['that is aborted', { do: 'cut', afterEvents: 2 }],
    ['that is truncated but well formed', { do: 'cut', afterEvents: 2, by: 'end' }],
    ['that is broken by an error', { do: 'error_event', afterEvents: 2, tokenDelayMs: 30 }],
  ] as const)('a stream %s never counts as complete', async (_, step) => {
    service.providers[0]!.script([step])
    const text = await (await service.chat({ stream: true })).text()
    expect(text).toContain('"code":"upstream_broken"')
    expect(text).not.toContain('"finish_reason":"stop"')
  })

  test('a stream that fails before its first word is answered by another backend', async () => {
    service.providers[0]!.script([{ do: 'broken_first_event' }])
    const response = await service.chat({ stream: true })
    const text = await response.text()
    expect(response.headers.get('x-svc-router-retry-count')).toBe('1')
    expect(text).toContain('"finish_reason":"stop"')
  })
})
