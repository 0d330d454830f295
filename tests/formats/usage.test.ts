import { assert, integer, property, record } from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AnswerEvent, Usage } from '../../src/domain/conversation.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import { anthropicMessages } from '../../src/formats/anthropic-messages/anthropic-messages.ts'
import { UsageReader, writeUsage as writeMessagesUsage } from '../../src/formats/anthropic-messages/usage.ts'
import { readUsage as readGeminiUsage } from '../../src/formats/gemini/usage.ts'
import { readUsage as readChatUsage, writeUsage as writeChatUsage } from '../../src/formats/openai-chat/usage.ts'
import {
  readUsage as readResponsesUsage,
  writeUsage as writeResponsesUsage,
} from '../../src/formats/openai-responses/usage.ts'

function readMessagesUsage(...reports: JsonObject[]): Usage | undefined {
  const reader = new UsageReader()
  for (const report of reports) reader.read(report)
  return reader.usage
}

const plain = { inputTokens: 100, outputTokens: 10, cachedTokens: 0, reasoningTokens: 0, source: 'counted' }

describe('usage of an Anthropic answer', () => {
  test('the calls that summarized the prompt count, too, although the totals do not contain them', () => {
    const iterations = [
      { type: 'compaction', input_tokens: 180_000, cache_read_input_tokens: 500, output_tokens: 3_500 },
      { type: 'message', input_tokens: 23_000, output_tokens: 1_000 },
    ]
    const whole = { ...plain, inputTokens: 203_500, cachedTokens: 500, outputTokens: 4_500 }
    expect(readMessagesUsage({ input_tokens: 23_000, output_tokens: 1_000, iterations })).toEqual(whole)
    const start = { input_tokens: 23_000, output_tokens: 1 }
    expect(readMessagesUsage(start, { output_tokens: 1_000, iterations })).toEqual(whole)
    // With `pause_after_compaction`, nothing else was written.
    expect(readMessagesUsage({ input_tokens: 0, output_tokens: 0, iterations: iterations.slice(0, 1) })).toEqual({
      ...whole,
      inputTokens: 180_500,
      outputTokens: 3_500,
    })
  })

  test('what the calls that summarized the prompt wrote to a cache has its lifetime', () => {
    const created = { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 400 }
    const call = { type: 'compaction', input_tokens: 10, output_tokens: 5, cache_creation: created }
    const iterations = [{ ...call, cache_creation_input_tokens: 500 }]
    const counts = { input_tokens: 20, output_tokens: 7, cache_creation_input_tokens: 50 }
    const own = { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 30 }
    const expected = { ...plain, inputTokens: 580, outputTokens: 12, cacheWriteTokens: 550, cacheWrite1hTokens: 430 }
    expect(readMessagesUsage({ ...counts, cache_creation: own, iterations })).toMatchObject(expected)
    // The answer itself wrote nothing, and the total is not stated.
    expect(readMessagesUsage({ input_tokens: 20, output_tokens: 7, iterations: [call] })).toMatchObject({
      ...expected,
      inputTokens: 530,
      cacheWriteTokens: 500,
      cacheWrite1hTokens: 400,
    })
  })

  const start = {
    input_tokens: 12,
    cache_read_input_tokens: 300,
    cache_creation_input_tokens: 50,
    cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 30 },
    output_tokens: 1,
    service_tier: 'standard',
    inference_geo: 'us',
  }
  const whole = {
    inputTokens: 362,
    outputTokens: 9,
    cachedTokens: 300,
    cacheWriteTokens: 50,
    cacheWrite1hTokens: 30,
    reasoningTokens: 0,
    region: 'us',
    source: 'counted',
  }

  test('writes are split by lifetime, and a zero in a later event erases nothing', () => {
    const end = {
      input_tokens: 0,
      cache_read_input_tokens: 0,
      cache_creation_input_tokens: 0,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
      output_tokens: 9,
    }
    expect(readMessagesUsage(start, end)).toEqual(whole)
    expect(readMessagesUsage(start, { output_tokens: 9 })).toEqual(whole)
  })

  test('writes count even if only their lifetimes are reported', () => {
    const { cache_creation_input_tokens: _total, ...rest } = start
    expect(readMessagesUsage(rest, { output_tokens: 9 })).toEqual(whole)
  })

  test('fast processing, other tiers, and web searches are read', () => {
    const searches = { server_tool_use: { web_search_requests: 2 } }
    expect(readMessagesUsage({ ...start, ...searches, speed: 'fast' })).toMatchObject({
      serviceTier: 'fast',
      webSearches: 2,
    })
    expect(readMessagesUsage({ ...start, service_tier: 'priority' })).toMatchObject({ serviceTier: 'priority' })
  })

  test('a stream that is cut after its start has the input that it reported', () => {
    const reader = anthropicMessages.readAnswer()
    const message = { id: 'msg_1', type: 'message', model: 'claude', usage: start }
    const events = reader.readEvent(JSON.stringify({ type: 'message_start', message }), 'message_start')
    const usage = events.find((event): event is AnswerEvent & { type: 'usage' } => event.type === 'usage')?.usage
    expect(usage).toEqual({ ...whole, outputTokens: 1, source: 'estimated', isInputCounted: true })
  })
})

describe('reasoning that a provider counts beside the answer', () => {
  // Figures of an answer of xAI: the total is the sum of the three.
  const counts = { prompt_tokens: 32, completion_tokens: 9, total_tokens: 135 }
  const details = { reasoning_tokens: 94 }

  test('is part of the output', () => {
    const whole = { ...plain, inputTokens: 32, outputTokens: 103, reasoningTokens: 94 }
    expect(readChatUsage({ ...counts, completion_tokens_details: details })).toEqual(whole)
    const named = { input_tokens: 32, output_tokens: 9, total_tokens: 135, output_tokens_details: details }
    expect(readResponsesUsage(named)).toEqual(whole)
  })

  test('counts once if it is part of the answer, and if the total does not show it', () => {
    const inside = { ...plain, inputTokens: 32, outputTokens: 103, reasoningTokens: 94 }
    const part = { prompt_tokens: 32, completion_tokens: 103, completion_tokens_details: details }
    expect(readChatUsage({ ...part, total_tokens: 135 })).toEqual(inside)
    expect(readChatUsage(part)).toEqual(inside)
    expect(readChatUsage({ ...counts, total_tokens: 134, completion_tokens_details: details })?.outputTokens).toBe(9)
  })
})

describe('usage of a chat answer', () => {
  const usage = { prompt_tokens: 100, completion_tokens: 10 }

  test.each<[string, JsonObject, Partial<Usage>]>([
    [
      'OpenAI',
      { prompt_tokens_details: { cached_tokens: 64, cache_write_tokens: 30 } },
      { cachedTokens: 64, cacheWriteTokens: 30 },
    ],
    [
      'DeepSeek',
      { prompt_tokens_details: {}, prompt_cache_hit_tokens: 64, prompt_cache_miss_tokens: 36 },
      { cachedTokens: 64 },
    ],
    [
      'DeepSeek with a zero',
      { prompt_tokens_details: { cached_tokens: 0 }, prompt_cache_hit_tokens: 64 },
      { cachedTokens: 64 },
    ],
    ['Moonshot', { cached_tokens: 64 }, { cachedTokens: 64 }],
    ['a gateway with the names of Anthropic', { cache_creation_input_tokens: 30 }, { cacheWriteTokens: 30 }],
    [
      'an audio model',
      { prompt_tokens_details: { audio_tokens: 40 }, completion_tokens_details: { audio_tokens: 5 } },
      { audioInputTokens: 40, audioOutputTokens: 5 },
    ],
    [
      'a provider whose parts are larger than their sums',
      {
        prompt_tokens_details: {
          cached_tokens: 500,
          audio_tokens: 500,
          image_tokens: 500,
          cache_write_tokens: 500,
          cache_creation_token_details: { ephemeral_1h_input_tokens: 900 },
        },
        completion_tokens_details: { reasoning_tokens: 500, audio_tokens: 500, image_tokens: 500 },
      },
      {
        reasoningTokens: 10,
        cachedTokens: 100,
        audioInputTokens: 100,
        imageInputTokens: 100,
        cacheWriteTokens: 100,
        cacheWrite1hTokens: 100,
        audioOutputTokens: 10,
        imageOutputTokens: 10,
      },
    ],
    ['OpenRouter', { cost: 0.00014775 }, { statedCost: '147750000' }],
    [
      'OpenRouter with an own key',
      { cost: 0.001, is_byok: true, cost_details: { upstream_inference_cost: 0.02 } },
      { statedCost: '21000000000' },
    ],
    ['Perplexity', { cost: { total_cost: 0.5 } }, { statedCost: '500000000000' }],
    ['xAI', { cost_in_usd_ticks: 37_756_000 }, { statedCost: '3775600000' }],
    ['a cost that is none', { cost: -1 }, {}],
  ])('of %s', (_of, more, expected) => {
    expect(readChatUsage({ ...usage, ...more })).toEqual({ ...plain, ...expected })
  })

  test('the service tier is the one beside it, unless it is the usual one', () => {
    expect(readChatUsage(usage, 'flex')).toEqual({ ...plain, serviceTier: 'flex' })
    expect(readChatUsage(usage, 'default')).toEqual(plain)
    expect(readChatUsage(usage, 'a tier of many words, which has no price')).toEqual({ ...plain, serviceTier: 'other' })
  })
})

test('usage of Gemini has its modalities and tier', () => {
  const usage = {
    promptTokenCount: 90,
    toolUsePromptTokenCount: 10,
    cachedContentTokenCount: 40,
    candidatesTokenCount: 7,
    thoughtsTokenCount: 3,
    promptTokensDetails: [
      { modality: 'TEXT', tokenCount: 20 },
      { modality: 'AUDIO', tokenCount: 50 },
      { modality: 'IMAGE', tokenCount: 20 },
    ],
    cacheTokensDetails: [{ modality: 'AUDIO', tokenCount: 30 }],
    candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 5 }],
    trafficType: 'ON_DEMAND_PRIORITY',
  }
  expect(readGeminiUsage(usage)).toEqual({
    ...plain,
    cachedTokens: 40,
    reasoningTokens: 3,
    audioInputTokens: 50,
    imageInputTokens: 20,
    cachedAudioTokens: 30,
    imageOutputTokens: 5,
    serviceTier: 'priority',
  })
  expect(readGeminiUsage({ ...usage, trafficType: 'ON_DEMAND' })).not.toHaveProperty('serviceTier')
})

describe('every translation of usage conserves it', () => {
  const count = integer({ min: 0, max: 100_000 })
  const counted = record({
    fresh: count,
    read: count,
    written5m: count,
    written1h: count,
    output: count,
    reasoning: count,
  })
  const formats: Readonly<Record<string, (usage: Usage) => Usage | undefined>> = {
    'openai-chat': (usage) => readChatUsage(writeChatUsage(usage)),
    'openai-responses': (usage) => readResponsesUsage(writeResponsesUsage(usage)),
    'anthropic-messages': (usage) => readMessagesUsage(writeMessagesUsage(usage)),
  }

  test.each(Object.keys(formats))('in %s', (format) => {
    assert(
      property(counted, ({ fresh, read, written5m, written1h, output, reasoning }) => {
        const report: JsonObject = {
          input_tokens: fresh,
          cache_read_input_tokens: read,
          cache_creation_input_tokens: written5m + written1h,
          cache_creation: { ephemeral_5m_input_tokens: written5m, ephemeral_1h_input_tokens: written1h },
          output_tokens: output,
          output_tokens_details: { thinking_tokens: Math.min(output, reasoning) },
        }
        const usage = readMessagesUsage(report)
        if (usage === undefined) return
        // OpenAI's formats have one count of writes.
        const { cacheWrite1hTokens, ...rest } = usage
        const isSplit = format === 'anthropic-messages' && cacheWrite1hTokens !== undefined
        expect(formats[format]!(usage)).toEqual(isSplit ? usage : rest)
      }),
      { numRuns: 500 },
    )
  })
})

describe('counts that cannot be (contract 10.13)', () => {
  test('usage without input is not usage: it is estimated', () => {
    expect(readChatUsage({ completion_tokens: 5 })).toBeUndefined()
    expect(readChatUsage({ prompt_tokens: 0, completion_tokens: 5 })).toBeUndefined()
    expect(readResponsesUsage({ output_tokens: 5 })).toBeUndefined()
    expect(readMessagesUsage({ output_tokens: 5 })).toBeUndefined()
  })

  test('no more than the input was read from a cache', () => {
    const usage = { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 1_000_000 } }
    expect(readChatUsage(usage)).toMatchObject({ inputTokens: 10, cachedTokens: 10 })
  })

  test('a stated cost above 1,000 USD, and more than 1,000 searches, are not used', () => {
    const counts = { prompt_tokens: 10, completion_tokens: 5 }
    expect(readChatUsage({ ...counts, cost: 1_000 })?.statedCost).toBe('1000000000000000')
    for (const absurd of [{ cost: 1_000.01 }, { cost: 1e6 }, { cost_in_usd_ticks: 1.01e13 }])
      expect(readChatUsage({ ...counts, ...absurd })).toMatchObject({ inputTokens: 10 })
    for (const absurd of [{ cost: 1_000.01 }, { cost: 1e6 }, { cost_in_usd_ticks: 1.01e13 }])
      expect(readChatUsage({ ...counts, ...absurd })?.statedCost).toBeUndefined()
    const searched = (web_search_requests: number) =>
      readMessagesUsage({ input_tokens: 10, output_tokens: 5, server_tool_use: { web_search_requests } })?.webSearches
    expect([searched(1_000), searched(1_001)]).toEqual([1_000, undefined])
  })
})
