import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Usage } from '../../src/domain/conversation.ts'
import type { Json } from '../../src/domain/json.ts'
import { UsageReader } from '../../src/formats/anthropic-messages/usage.ts'
import { readUsage as gemini } from '../../src/formats/gemini/usage.ts'
import { readUsage as chat } from '../../src/formats/openai-chat/usage.ts'
import { readUsage as responses } from '../../src/formats/openai-responses/usage.ts'

const messages = (usage: Json): Usage | undefined => {
  const reader = new UsageReader()
  reader.read(usage)
  return reader.usage
}

/** Reads usage in each format from its counts: input, output, cached, reasoning. */
const readers: readonly (readonly [string, (counts: readonly Json[]) => Usage | undefined])[] = [
  [
    'chat',
    ([a = null, b = null, c = null, d = null]) =>
      chat({
        prompt_tokens: a,
        completion_tokens: b,
        prompt_tokens_details: { cached_tokens: c },
        completion_tokens_details: { reasoning_tokens: d },
      }),
  ],
  [
    'responses',
    ([a = null, b = null, c = null, d = null]) =>
      responses({
        input_tokens: a,
        output_tokens: b,
        input_tokens_details: { cached_tokens: c },
        output_tokens_details: { reasoning_tokens: d },
      }),
  ],
  [
    'messages',
    ([a = null, b = null, c = null, d = null]) =>
      messages({
        input_tokens: a,
        output_tokens: b,
        cache_read_input_tokens: c,
        output_tokens_details: { thinking_tokens: d },
      }),
  ],
  [
    'gemini',
    ([a = null, b = null, c = null, d = null]) =>
      gemini({ promptTokenCount: a, candidatesTokenCount: b, cachedContentTokenCount: c, thoughtsTokenCount: d }),
  ],
]

const absurd: readonly Json[] = [2 ** 60, 2 ** 53, 1e300, 100_000_001, -1, -1e9, '7', true, {}, []]

test.each(readers)('%s: absurd counts give no usage, so that it is estimated', (_, read) => {
  expect(read([5, 7, 1, 2])).toMatchObject({ source: 'counted', cachedTokens: 1, reasoningTokens: 2 })
  for (const count of absurd) {
    for (const place of [0, 1, 2, 3])
      expect(read([5, 7, 1, 2].with(place, count as number)), JSON.stringify(count)).toBeUndefined()
  }
})

test.each(readers)('%s: for any counts, usage is whole, not negative, and safe to add', (_, read) => {
  const count = fc.oneof(fc.double(), fc.integer(), fc.maxSafeInteger(), fc.constantFrom(...absurd), fc.constant(null))
  fc.assert(
    fc.property(fc.array(count, { minLength: 4, maxLength: 4 }), (counts) => {
      const usage = read(counts)
      if (usage === undefined) return
      const { inputTokens, outputTokens, cachedTokens, reasoningTokens } = usage
      for (const tokens of [inputTokens, outputTokens, cachedTokens, reasoningTokens]) {
        expect(Number.isSafeInteger(tokens) && tokens >= 0 && tokens <= 100_000_000, `${tokens}`).toBe(true)
      }
    }),
  )
})
