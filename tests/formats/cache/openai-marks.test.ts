import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../src/domain/json.ts'
import type { WriteTarget } from '../../../src/formats/format.ts'
import { relayMarks } from '../../../src/formats/openai/cache-marks.ts'

const target = {
  model: 'anthropic/claude-sonnet-5',
  stream: false,
  dialect: { cacheMarks: 'cache_control', refusedFields: [] },
  cache: { addsMarks: true, continuation: { isSeen: true, isExpected: true, began: 0, wentOn: 0 } },
} as unknown as WriteTarget
const hour = { type: 'ephemeral', ttl: '1h' }
const short = { type: 'ephemeral' }
const messages = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'One' },
  { role: 'assistant', content: 'Two' },
  { role: 'user', content: 'Three' },
]

function marksOf(body: JsonObject): string[] {
  return relayMarks('messages', { messages, ...body }, target).map(({ mark }) => mark)
}

function tools(count: number, cache_control: JsonObject): JsonObject[] {
  return Array.from({ length: count }, (_, at) => ({ type: 'function', function: { name: `f${at}` }, cache_control }))
}

describe('marks that a relayed request to Claude already has', () => {
  test('without any, the instructions, the previous request, and the end are marked', () => {
    expect(marksOf({})).toHaveLength(3)
  })

  test.each([2, 3, 4, 5])('on %s tools leave as many as fit into four', (count) => {
    expect(marksOf({ tools: tools(count, short) })).toHaveLength(Math.max(0, 4 - count))
    const inner = tools(count, short).map(({ cache_control: mark, ...tool }) => ({
      ...tool,
      function: { name: 'f', cache_control: mark! },
    }))
    expect(marksOf({ tools: inner })).toHaveLength(Math.max(0, 4 - count))
  })

  test('at the top of the body is one on the last block, and marks before it last as long', () => {
    const added = marksOf({ cache_control: hour })
    expect(added.length).toBeGreaterThan(0)
    for (const mark of added) expect(mark).toContain('"ttl":"1h"')
    expect(marksOf({ cache_control: short, tools: tools(3, short) })).toEqual([])
  })
})
