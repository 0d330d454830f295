import { expect, test } from 'vitest'
import { cacheUses, writeMisses, writeReadShare } from '../../src/domain/cache-usage.ts'
import { describeVerdict, verdictIn } from '../../src/domain/cache-verdict.ts'

const group = { keyId: 'k', client: 'codex', inputTokens: 1_000, readTokens: 0 } as const

test('reasons of one key and client become one line, the most frequent miss first', () => {
  const uses = cacheUses([
    { ...group, reason: 'expired', turns: 1 },
    { ...group, reason: 'hit', turns: 20, readTokens: 999 },
    { ...group, reason: 'first', turns: 2 },
    { ...group, reason: 'tools', turns: 4 },
    { ...group, keyId: 'other', reason: 'hit', turns: 90, inputTokens: 0 },
  ])
  expect(uses.map(({ keyId, turns }) => [keyId, turns])).toEqual([
    ['other', 90],
    ['k', 27],
  ])
  expect(writeMisses(uses[1]!)).toBe('4 × the tools changed, 1 × the provider no longer stored the prompt')
  expect(writeReadShare(uses[1]!)).toBe('24%')
  expect([writeMisses(uses[0]!), writeReadShare(uses[0]!)]).toEqual(['none', 'none'])
})

test('a verdict is one line with its figures', () => {
  const verdict = { reason: 'item', item: 14, before: 90_000, expected: 20_000, read: 19_968, client: 'codex' } as const
  expect(describeVerdict(verdict)).toBe(
    'item 14 changed: 19,968 tokens read, 90,000 in the previous prompt, of which this backend was expected to read 20,000',
  )
  expect(describeVerdict({ reason: 'first', before: 0, expected: 0, read: 0, client: 'other' })).toBe(
    'no earlier request began like this one',
  )
})

test('a reason of a later version is not shown', () => {
  const later = { reason: 'moon_phase', before: 0, expected: 0, client: 'other' } as never
  expect(verdictIn([{ cache: later }])).toBeUndefined()
  expect(verdictIn([])).toBeUndefined()
})
