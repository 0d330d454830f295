import { expect, test } from 'vitest'
import { estimateTokens } from '../../src/domain/estimate-tokens.ts'
import { openaiChat } from '../../src/formats/openai-chat/openai-chat.ts'

const english =
  'The committee met on Tuesday to discuss the proposal, and after a long debate it decided to postpone the vote until every member had read the report.'
/** What tokenizers of today make of that sentence: 29, give or take one. */
const englishTokens = 29

function countOf(content: unknown, more: object = {}): number {
  const messages = [{ role: 'user', content }]
  return estimateTokens(openaiChat.readRequest({ model: 'svc-router/frontier', messages, ...more } as never))
}

test('the estimate for prose is within a third of the real count', () => {
  const counted = countOf(english.repeat(20))
  expect(counted).toBeGreaterThan((englishTokens * 20 * 2) / 3)
  expect(counted).toBeLessThan((englishTokens * 20 * 4) / 3)
})

test('turns, tools, and the schema of the answer all increase the estimate', () => {
  const alone = countOf(english)
  const parameters = { type: 'object', properties: { city: { type: 'string' } } }
  const tools = [{ type: 'function', function: { name: 'get_weather', description: english, parameters } }]
  const schema = { type: 'object', properties: { a_long_name_of_a_member: { type: 'string' } } }
  const response_format = { type: 'json_schema', json_schema: { name: 'x', schema } }
  expect(countOf(english, { tools })).toBeGreaterThan(alone + englishTokens)
  expect(countOf(english, { response_format })).toBeGreaterThan(alone + 10)
  expect(countOf('')).toBeGreaterThan(0)
})

test('the estimate for an image does not depend on its bytes', () => {
  const image = (bytes: number): unknown => [
    { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(bytes)}` } },
  ]
  expect(countOf(image(4_000_000))).toBe(countOf(image(40)))
  expect(countOf(image(40))).toBeGreaterThan(1_000)
})

test('a document is estimated by its size, and an attached text as text', () => {
  const file = (mediaType: string, bytes: number): unknown => [
    { type: 'file', file: { filename: 'a', file_data: `data:${mediaType};base64,${'A'.repeat(bytes)}` } },
  ]
  expect(countOf(file('application/pdf', 1_000_000))).toBeGreaterThan(countOf(file('application/pdf', 1_000)) * 10)
  expect(countOf(file('application/pdf', 1_000_000))).toBeLessThan(100_000)
  expect(countOf(file('text/plain', 4_000))).toBeLessThan(1_000)
})
