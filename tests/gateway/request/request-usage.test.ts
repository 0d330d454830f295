import { expect, test } from 'vitest'
import type { Conversation, Usage } from '../../../src/domain/conversation.ts'
import type { Lane } from '../../../src/gateway/lanes/lane.ts'
import { usageOf } from '../../../src/gateway/request/request-usage.ts'

const turns = [{ role: 'user', parts: [{ type: 'text', text: 'Say hello.' }] }]

function sourceOf(counts: Partial<Usage>, sampling: Conversation['sampling'] = {}): Usage['source'] {
  const usage: Usage = {
    inputTokens: 10,
    outputTokens: 5,
    cachedTokens: 0,
    reasoningTokens: 0,
    source: 'counted',
    ...counts,
  }
  const conversation = { turns, tools: [], hints: {}, sampling } as unknown as Conversation
  const read = usageOf({ usage, estimatedTokens: 3 } as unknown as Lane, conversation, 1_000)
  if (read.source === 'estimated') expect(read.outputTokens).toBe(3)
  return read.source
}

test('counts far above what a request allows are estimated (contract 10.13)', () => {
  expect(sourceOf({ inputTokens: 50_000_000 })).toBe('estimated')
  expect(sourceOf({ outputTokens: 50_000_000 })).toBe('estimated')
  expect(sourceOf({ outputTokens: 300_000 }, { maxOutputTokens: 100 })).toBe('estimated')
})

test('counts that files, tools, reasoning, or several answers explain are used', () => {
  expect(sourceOf({ inputTokens: 2_000_000 })).toBe('counted')
  expect(sourceOf({ outputTokens: 60_000 }, { maxOutputTokens: 100 })).toBe('counted')
  expect(sourceOf({ outputTokens: 300_000 }, { maxOutputTokens: 100_000 })).toBe('counted')
  expect(sourceOf({ outputTokens: 300_000 }, { choices: 2 })).toBe('counted')
  expect(sourceOf({ outputTokens: 300_000 }, { choices: 1, candidates: 2 })).toBe('counted')
})
