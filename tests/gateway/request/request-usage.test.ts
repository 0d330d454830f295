import { expect, test } from 'vitest'
import type { Conversation, Usage } from '../../../src/domain/conversation.ts'
import { formatById, relayById } from '../../../src/formats/formats.ts'
import type { Lane } from '../../../src/gateway/lanes/lane.ts'
import { openLane } from '../../../src/gateway/lanes/open-lane.ts'
import type { Backend } from '../../../src/gateway/ports.ts'
import { isTierKnown, usageOf } from '../../../src/gateway/request/request-usage.ts'
import { contextOf } from '../../formats/exchange.ts'
import { goodAnswers } from '../provider-faults.ts'

const turns = [{ role: 'user', parts: [{ type: 'text', text: 'Say hello.' }] }]

function laneOf(members: Partial<Lane>): Lane {
  return { usage: undefined, estimatedTokens: 3, ...members } as unknown as Lane
}

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
  const read = usageOf({ lane: laneOf({ usage }), bill: { price: undefined } }, conversation, 1_000)
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

test.each([
  ['priority', undefined, 'priority'],
  ['Flex', 'priority', 'flex'],
  ['default', 'priority', undefined],
  ['auto', 'priority', 'priority'],
  [undefined, 'flex', 'flex'],
  [undefined, 'auto', undefined],
  [undefined, 'scale', undefined],
  [undefined, undefined, undefined],
])('an estimate of an answer on tier %s to a request for %s has the tier %s', (serviceTier, requested, expected) => {
  const price = { rates: { input: 1, output: 1 }, tiers: { flex: 500, priority: 2_000 } }
  const conversation = { turns, tools: [], hints: { serviceTier: requested } } as unknown as Conversation
  const used = usageOf({ lane: laneOf({ serviceTier }), bill: { price } }, conversation, 1_000)
  expect([used.source, used.serviceTier]).toEqual(['estimated', expected])
  expect(isTierKnown(laneOf({ serviceTier }), requested)).toBe(
    ![serviceTier, requested].every((name) => name === undefined || name === 'auto'),
  )
})

test('an estimate keeps the usual tier that a provider reported, whatever the request asked for', () => {
  const price = { rates: { input: 1, output: 1 }, tiers: { priority: 2_000 } }
  const conversation = { turns, tools: [], hints: { serviceTier: 'priority' } } as unknown as Conversation
  const usage: Usage = { inputTokens: 10, outputTokens: 0, cachedTokens: 0, reasoningTokens: 0, source: 'estimated' }
  expect(usageOf({ lane: laneOf({ usage }), bill: { price } }, conversation, 1_000).serviceTier).toBeUndefined()
})

test.each([
  ['openai-chat', goodAnswers['openai-chat'].opening.replace('"choices"', '"service_tier":"flex","choices"')],
  ['openai-responses', 'data: {"type":"response.created","response":{"id":"r","service_tier":"flex"}}\n\n'],
] as const)('a stream of %s names its tier from its beginning, relayed and translated', (id, opening) => {
  const request = formatById(id).readRequest({ model: 'p', messages: [], input: 'x', stream: true })
  const backend = { dialect: { streamUsage: true } } as unknown as Backend
  const format = formatById(id)
  for (const relay of [relayById(id), undefined]) {
    const lane = openLane({ context: contextOf(request), client: format, backend, backendFormat: format, relay })
    lane.push(Buffer.from(opening))
    expect(lane.serviceTier).toBe('flex')
  }
})
