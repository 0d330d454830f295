import { expect, test } from 'vitest'
import { cacheLifetimeMs } from '../../../src/gateway/cache/cache-lifetime.ts'
import type { Backend } from '../../../src/gateway/ports.ts'
import { hourMs } from '../../../src/runtime/durations.ts'

const dialect = {}
const claude = { format: 'anthropic-messages', model: 'claude', dialect } as unknown as Backend
const gpt = { format: 'openai-chat', model: 'gpt-5', dialect } as unknown as Backend
const fiveMinutes = hourMs / 12

test.each([
  ['{"cache_control":{"type":"ephemeral","ttl":"1h"}}', hourMs],
  ['{"cache_control":{"type":"ephemeral","ttl" \n:\t "1h"}}', hourMs],
  ['{"enum":["1h","24h"],"cache_control":{"ttl":"5m"}}', fiveMinutes],
  ['{"default":"1h","description":"\\"ttl\\":\\"1h\\""}', fiveMinutes],
  ['{"my_ttl":"1h"}', fiveMinutes],
  [':"1h"', fiveMinutes],
  ['"1h"', fiveMinutes],
  ['1h"', fiveMinutes],
  ['  "1h"', fiveMinutes],
])('a prompt for Claude with %s is stored for %i ms', (body, ms) => {
  expect(cacheLifetimeMs(claude, Buffer.from(body))).toBe(ms)
})

test.each([
  ['{"prompt_cache_retention":"24h"}', 24 * hourMs],
  ['{"prompt_cache_retention" : "24h"}', 24 * hourMs],
  ['{"tools":[{"enum":["24h"]}],"prompt_cache_retention":"in_memory"}', fiveMinutes],
  ['{"ttl":"24h"}', fiveMinutes],
])('a prompt for GPT-5 with %s is stored for %i ms', (body, ms) => {
  expect(cacheLifetimeMs(gpt, Buffer.from(body))).toBe(ms)
})

test.each([
  ['gpt-5.6', true],
  ['gpt-5.10-mini', true],
  ['openai/gpt-6', true],
  ['gpt-56', true],
  ['gpt-5', false],
  ['gpt-5.1-2025-11-13', false],
  ['gpt-41-mini', false],
  ['gpt-35-turbo', false],
  ['gpt-4-0613', false],
  ['gpt-4o', false],
])('a model named %s accepts marks: %s', (model, isMarked) => {
  expect(cacheLifetimeMs({ ...gpt, model }, Buffer.from('{}'))).toBe(isMarked ? hourMs / 2 : fiveMinutes)
})
