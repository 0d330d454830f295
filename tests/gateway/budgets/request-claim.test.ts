import { describe, expect, test } from 'vitest'
import { type Budget, nanoPerUsd } from '../../../src/domain/budgets.ts'
import type { JsonObject } from '../../../src/domain/json.ts'
import type { TokenPrice } from '../../../src/domain/token-price.ts'
import { anthropicMessages } from '../../../src/formats/anthropic-messages/anthropic-messages.ts'
import type { Format } from '../../../src/formats/format.ts'
import { openaiChat } from '../../../src/formats/openai-chat/openai-chat.ts'
import { openaiCompletions } from '../../../src/formats/openai-completions/openai-completions.ts'
import { openaiResponses } from '../../../src/formats/openai-responses/openai-responses.ts'
import { claimFor } from '../../../src/gateway/budgets/request-claim.ts'
import type { Backend, ModelRequest } from '../../../src/gateway/ports.ts'
import { recordedRequests } from '../../formats/exchange.ts'

const contextWindow = 200_000
/** Microdollars per million tokens. */
const rates = { input: 1_000_000, output: 10_000_000 }
const budget = { id: 'bud_1', unit: 'usd', limit: nanoPerUsd } as unknown as Budget
const text = 'Say hello.'

interface Asked {
  readonly format?: Format
  readonly body: JsonObject
  readonly model?: string
  readonly tiers?: NonNullable<TokenPrice['tiers']>
  readonly audio?: Pick<TokenPrice['rates'], 'audioInput' | 'audioOutput'>
  /** 0 if it is unknown. */
  readonly window?: number
}

/** The claim of a request with one backend. */
function claimOf({ format = openaiChat, body, model = 'm', tiers = {}, audio = {}, window = contextWindow }: Asked) {
  const messages = format === openaiChat ? { messages: [{ role: 'user', content: text }] } : {}
  const given = { model: 'p', ...messages, ...body }
  const price = { version: 'v', at: () => ({ rates: { ...rates, ...audio }, tiers }) }
  const facts = window === 0 ? {} : { contextWindow: window }
  return claimFor([budget], {
    request: { body: given, bytes: Buffer.from(JSON.stringify(given)) } as unknown as ModelRequest,
    conversation: format.readRequest(given),
    backends: [{ id: 'b', model, price, ...facts } as unknown as Backend],
    profile: 'p',
    outputLimit: format.outputLimit,
    nowMs: 0,
    calls: 1,
  }).claim
}

function userWith(part: JsonObject): JsonObject {
  return { messages: [{ role: 'user', content: [{ type: 'text', text }, part] }] }
}

function imageAt(url: string): JsonObject {
  return userWith({ type: 'image_url', image_url: { url } })
}

function inputImageAt(url: string): JsonObject {
  return { input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] }
}

function messagesWith(members: JsonObject): Asked {
  return { format: anthropicMessages, body: { messages: [], max_tokens: 1, ...members } }
}

test('of two output limits of a chat request, the larger one is held', () => {
  expect(claimOf({ body: { max_tokens: 20_000, max_completion_tokens: 1 } }).leastOutput).toBe(20_000)
})

test('best_of counts as that many answers, for each prompt', () => {
  const body = { prompt: [text, text], max_tokens: 100, n: 2, best_of: 20 }
  expect(claimOf({ format: openaiCompletions, body }).perOutputToken).toEqual({ nanoUsd: 40 * 10_000, tokens: 40 })
})

test('however many answers are asked for, the claim is in whole numbers', () => {
  const body = { prompt: Array.from({ length: 128 }, () => text), n: 2 ** 31 - 1 }
  const { nanoUsd, tokens } = claimOf({ format: openaiCompletions, body }).perOutputToken
  expect([Number.isSafeInteger(nanoUsd), Number.isSafeInteger(tokens)]).toEqual([true, true])
})

test.each<[string, Asked]>([
  ['web_search', messagesWith({ tools: [{ type: 'web_search_20250305', name: 'web_search' }] })],
  ['web_fetch', messagesWith({ tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }] })],
  ['mcp_servers', messagesWith({ mcp_servers: [{ type: 'url', url: 'https://e.example' }] })],
  ['a container', messagesWith({ container: 'c' })],
  ['mcp', { format: openaiResponses, body: { input: text, tools: [{ type: 'mcp', server_label: 'a' }] } }],
  ['a stored prompt', { format: openaiResponses, body: { input: text, prompt: { id: 'pmpt_1' } } }],
  ['web_search_options', { body: { web_search_options: {} } }],
  ['search_parameters', { body: { search_parameters: { mode: 'on' } } }],
  ['data_sources', { body: { data_sources: [{ type: 'azure_search', parameters: {} }] } }],
  ['a cached prompt', { body: { extra_body: { google: { cached_content: 'cachedContents/1' } } } }],
  ['a cached prompt of Vertex AI', { body: { google: { cached_content: 'cachedContents/1' } } }],
])('with %s, the whole window is held as input', (_, asked) => {
  expect(claimOf(asked).base).toMatchObject({ tokens: contextWindow })
  expect(claimOf({ ...asked, window: 0 }).base.tokens).toBe(2_000_000)
})

test.each<[string, Asked]>([
  ['edits', messagesWith({ context_management: { edits: [{ type: 'compact_20260112' }] } })],
  ['its own member', messagesWith({ compaction: { type: 'summarize' } })],
  ['Responses', { format: openaiResponses, body: { input: text, context_management: [{ type: 'compaction' }] } }],
])('if the provider may summarize the prompt first, asked for by %s, the input is held twice', (_, asked) => {
  const { tokens } = claimOf({ ...asked, window: 1_100 }).base
  expect(tokens).toBe(2_200)
  const others = messagesWith({ context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] } })
  expect(claimOf({ ...others, window: 1_100 }).base.tokens).toBe(1_100)
})

test('tools that the client runs hold nothing more than their bytes', () => {
  for (const tool of [{ type: 'function', name: 'f' }, { type: 'local_shell' }, { type: 'custom', name: 'c' }])
    expect(claimOf({ format: openaiResponses, body: { input: text, tools: [tool] } }).base.tokens).toBeLessThan(2_000)
})

test.each([
  ['a video', userWith({ type: 'video_url', video_url: { url: 'https://e.example/v.mp4' } })],
  ['a file in base64', userWith({ type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA' } })],
  ['a file by its ID', userWith({ type: 'file', file: { file_id: 'file_1' } })],
  ['a video as an image', imageAt('https://e.example/film.MP4?t=1')],
  ['a video as an image in base64', imageAt('data:video/mp4;base64,AAAA')],
  ['a PDF as an image in base64', imageAt('data:Application/PDF;base64,AAAA')],
  ['a PDF as an image of a Responses request', inputImageAt('https://e.example/a.pdf')],
  ['an upload', userWith({ type: 'container_upload', file_id: 'file_1' })],
  ['an earlier answer in audio', { messages: [{ role: 'assistant', audio: { id: 'audio_1' } }] }],
])('%s holds as much as a file of 100 pages', (_, body: JsonObject) => {
  const format = body['input'] === undefined ? openaiChat : openaiResponses
  expect(claimOf({ format, body, window: 1_000_000 }).base.tokens).toBeGreaterThanOrEqual(300_000)
})

test.each([
  [
    'a screenshot',
    { type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot', file_id: 'f' } },
  ],
  [
    'a screenshot at an address',
    { type: 'computer_call_output', call_id: 'c', output: { image_url: 'https://e.example/s.png' } },
  ],
  ['an earlier image', { type: 'image_generation_call', id: 'ig_1' }],
])('%s that only the provider reads holds as much as an image', (_, item) => {
  const asked = { format: openaiResponses, body: { input: [{ role: 'user', content: text }, item] } }
  expect(claimOf({ ...asked, window: 1_000_000 }).base.tokens).toBeGreaterThanOrEqual(6_000)
})

test.each([
  'https://e.example/i.png',
  'https://e.example/film.mp4/',
  'data:image/png;base64,AAAA',
  'data:;base64,AAAA',
  'x',
])('an image at %s holds only as much as an image', (url) => {
  expect(claimOf({ body: imageAt(url), window: 1_000_000 }).base.tokens).toBeLessThan(8_000)
})

test('a file of plain text holds its bytes', () => {
  const body = userWith({ type: 'file', file: { file_data: 'data:text/plain;base64,AAAA' } })
  expect(claimOf({ body }).base.tokens).toBeLessThan(2_000)
})

test.each([
  ['gpt-4o-mini', 48_169],
  ['openai/gpt-5.4-nano', 24_600],
  ['gpt-5.10', 24_600],
  ['gpt-54', 24_600],
  ['Qwen/Qwen3-VL-8B', 16_384],
  ['gpt-4o', 1_445],
])('an image holds what %s counts at most', (model, tokens) => {
  const image = userWith({ type: 'image_url', image_url: { url: 'https://e.example/i.png' } })
  expect(claimOf({ body: image, model }).base.tokens).toBeGreaterThanOrEqual(tokens)
})

test.each<[JsonObject, number]>([
  [{}, 2_500],
  [{ service_tier: 'auto' }, 2_500],
  [{ service_tier: 'default' }, 1_000],
  [{ service_tier: 'flex' }, 1_000],
  [{ service_tier: 'priority' }, 2_500],
  [{ speed: 'fast' }, 6_000],
])('%j holds the price of the most expensive tier that may be billed', (body, permille) => {
  const tiers = { flex: 500, priority: 2_500, fast: 6_000, batch: 9_000 }
  expect(claimOf({ body: { max_tokens: 1, ...body }, tiers }).perOutputToken.nanoUsd).toBe(10 * permille)
})

test.each([
  [{ type: 'advisor_20260301', name: 'advisor', model: 'claude-opus-4-6' }],
  [{ type: 'openrouter:advisor', parameters: { model: 'dearest' } }],
])('a tool that asks a model of its own is refused', (tool) => {
  const refusal: unknown = expect.objectContaining({ code: 'unsupported_parameter' })
  expect(() => claimOf({ body: { tools: [tool] } })).toThrow(refusal)
})

test.each([
  [{ type: 'function', function: { name: 'f', parameters: { model: 'x' } } }],
  [{ type: 'svc-router:fusion', model: 'x' }],
])('a tool of the client, or of this service, may name a model', (tool) => {
  expect(() => claimOf({ body: { tools: [tool] } })).not.toThrow()
})

test.each(['image_generation', 'openrouter:image_generation'])(
  'the tool %s is refused, because another model makes the images',
  (type) => {
    const asked = { format: openaiResponses, body: { input: text, tools: [{ type }] } }
    expect(() => claimOf(asked)).toThrow(
      expect.objectContaining({
        code: 'unsupported_parameter',
        facts: {
          param: 'tools',
          words: {
            problem:
              'A budget applies to this request, and the cost of the tool image_generation cannot be known in advance. Send the request without the tool image_generation.',
          },
        },
      }),
    )
  },
)

test('images that were made earlier, and a function of the client with that name, are not refused', () => {
  const tool = { type: 'function', name: 'image_generation' }
  const input = [
    { role: 'user', content: text },
    { type: 'image_generation_call', id: 'ig_1' },
  ]
  expect(() => claimOf({ format: openaiResponses, body: { input, tools: [tool] } })).not.toThrow()
})

test.each(['models', 'plugins', 'preset'])('%s is refused, because the provider chooses what it costs', (param) => {
  expect(() => claimOf({ body: { [param]: ['x'] } })).toThrow(
    expect.objectContaining({ code: 'unsupported_parameter', facts: expect.objectContaining({ param }) }),
  )
  expect(claimOf({ body: { [param]: [] } }).leastOutput).toBeGreaterThan(0)
})

describe('prices of audio', () => {
  const audio = { audioInput: 5 * rates.input, audioOutput: 5 * rates.output }

  function isHeldAtThem(asked: Asked): boolean {
    const [text, spoken] = [claimOf(asked), claimOf({ ...asked, audio })]
    const factors = [
      spoken.base.nanoUsd / text.base.nanoUsd,
      spoken.perOutputToken.nanoUsd / text.perOutputToken.nanoUsd,
    ]
    expect(factors).toBeOneOf([
      [1, 1],
      [5, 5],
    ])
    return factors[0] === 5
  }

  const clip = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }

  test.each<[string, Asked]>([
    ['text', { body: {} }],
    [
      'settings',
      { body: { max_tokens: 9, temperature: 1, metadata: { audio: 'x' }, modalities: ['text'], audio: null } },
    ],
    ['an image', { body: imageAt('data:image/png;base64,AAAA') }],
    ['functions', { body: { tools: [{ type: 'function', function: { name: 'f' } }], tool_choice: 'auto' } }],
    [
      'calls',
      {
        body: {
          messages: [
            { role: 'assistant', content: null, tool_calls: [call] },
            { role: 'tool', tool_call_id: 'c', content: text },
          ],
        },
      },
    ],
    [
      'calls of Claude',
      messagesWith({
        system: [{ type: 'text', text, cache_control: { type: 'ephemeral' } }],
        messages: [
          { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: { audio: { id: 'x' } } }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text }] }] },
        ],
      }),
    ],
    [
      'items',
      {
        format: openaiResponses,
        body: {
          input: [
            { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
            { type: 'reasoning', id: 'r', summary: [], encrypted_content: 'x' },
            { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
            { type: 'function_call_output', call_id: 'c', output: text },
          ],
        },
      },
    ],
    ['a prompt', { format: openaiCompletions, body: { prompt: [text, text], echo: true } }],
  ])('do not apply to %s (contract 46.3)', (_, asked) => {
    expect(isHeldAtThem(asked)).toBe(false)
  })

  test.each<[string, Asked]>([
    ['audio', { body: userWith(clip) }],
    ['audio in items', { format: openaiResponses, body: { input: [{ role: 'user', content: [clip] }] } }],
    ['audio as output', { body: { modalities: ['text', 'audio'], audio: { voice: 'a', format: 'wav' } } }],
    ['an earlier answer in audio', { body: { messages: [{ role: 'assistant', audio: { id: 'audio_1' } }] } }],
    ['a file', { body: userWith({ type: 'file', file: { file_id: 'file_1' } }) }],
    ['audio as an image', { body: imageAt('https://e.example/a.mp3') }],
    ['audio as an image in another format', { body: imageAt('https://e.example/a.ogg') }],
    [
      'audio as an image of an earlier answer',
      {
        body: {
          messages: [
            { role: 'user', content: text },
            { role: 'assistant', content: [{ type: 'image_url', image_url: { url: 'data:audio/ogg;base64,AAAA' } }] },
          ],
        },
      },
    ],
    ['a video', { body: userWith({ type: 'video_url', video_url: { url: 'https://e.example/v.mp4' } }) }],
    ['an unknown part', { body: userWith({ type: 'sound', sound: 'AAAA' }) }],
    ['an unknown member of a part', { body: userWith({ type: 'text', text, sound: { data: 'AAAA' } }) }],
    ['an unknown member', { body: { extra_body: { google: {} } } }],
    ['a stored item', { format: openaiResponses, body: { input: [{ type: 'item_reference', id: 'msg_1' }] } }],
    ['a stored prompt', { format: openaiResponses, body: { input: text, prompt: { id: 'pmpt_1' } } }],
    ['a hosted tool', { format: openaiResponses, body: { input: text, tools: [{ type: 'mcp', server_label: 'a' }] } }],
  ])('apply to %s', (_, asked) => {
    expect(isHeldAtThem({ ...asked, window: 1_000_000 })).toBe(true)
  })

  const formats = [openaiChat, openaiResponses, anthropicMessages]

  test.each(recordedRequests().filter(({ body }) => body !== undefined))(
    'apply to the request $file of a real client only if it names something stored, or a tool may add input',
    ({ path, body = {} }) => {
      const format = formats.find((known) => path.endsWith(known.path))
      if (format === undefined) return
      const isOpen = format.readRequest(body).tools.some(({ type }) => type === 'hosted')
      const namesStored = /"(?:item_reference|previous_response_id|additional_tools)"/.test(JSON.stringify(body))
      expect(isHeldAtThem({ format, body, window: 1_000_000 })).toBe(isOpen || namesStored)
    },
  )
})
