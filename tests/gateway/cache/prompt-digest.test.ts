import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../src/domain/json.ts'
import { formatById } from '../../../src/formats/formats.ts'
import { JsonScan } from '../../../src/formats/json-scan.ts'
import { changeBetween, digestPrompt, type PromptDigest } from '../../../src/gateway/cache/prompt-digest.ts'
import { KeyedDigest } from '../../../src/runtime/keyed-digest.ts'

const digest = new KeyedDigest(new Uint8Array(32))
const system = { role: 'system', content: 'Be brief. '.repeat(20) }
const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }]

/** A conversation of so many items, alternating. */
function items(count: number, text = (index: number): string => `Item ${index}`): JsonObject[] {
  return Array.from({ length: count }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: text(index),
  }))
}

function read(messages: readonly JsonObject[], more: JsonObject = {}, earlier: readonly PromptDigest[] = []) {
  const body: JsonObject = { model: 'p', tools, ...more, messages: [system, ...messages] }
  const bytes = Buffer.from(JSON.stringify(body))
  const scan = new JsonScan({ maxDepth: 50, maxTokens: 100_000, maxMembers: 100_000 })
  scan.push(bytes)
  const conversation = formatById('openai-chat').readRequest(body)
  return digestPrompt(digest, { bytes, members: scan.members(bytes) }, conversation, earlier)
}

describe('a prompt that continues an earlier one', () => {
  const before = read(items(5))

  test('differs nowhere', () => {
    expect(changeBetween(before, read(items(9)))).toEqual({ at: 'end', bytes: before.ends[2] })
  })

  test('has the same digests whether or not the earlier ones are known', () => {
    const { tools: sameTools, system: sameSystem, settings, items: digests, raw } = read(items(9))
    const continued = read(items(9), {}, [before])
    expect(continued).toMatchObject({ tools: sameTools, system: sameSystem, settings, items: digests, raw, whole: '' })
  })

  test('takes the digests of an earlier one only if all its items are the same', () => {
    const changed = items(9, (index) => (index === 2 ? 'Changed' : `Item ${index}`))
    expect(read(changed, {}, [before]).items).toEqual(read(changed).items)
  })

  test('differs nowhere after it was shortened', () => {
    expect(changeBetween(before, read(items(3))).at).toBe('end')
  })

  test('has the answers that followed', () => {
    expect(read(items(9)).answersAfter(5)).toBe(2)
    expect(read(items(7)).answersAfter(5)).toBe(1)
  })
})

describe('a prompt in which something changed', () => {
  const before = read(items(7))

  test.each([
    ['the tools', read(items(7), { tools: [] }), { at: 'tools', bytes: 0 }],
    [
      'the order of keys in a tool',
      read(items(7), { tools: [{ function: tools[0]!.function, type: 'function' }] }),
      { at: 'tools' },
    ],
    ['the effort', read(items(7), { reasoning_effort: 'high' }), { at: 'settings', bytes: before.ends[1] }],
    ['the choice of tools', read(items(7), { tool_choice: 'required' }), { at: 'settings' }],
    ['the first item', read(items(7, (index) => `${index} item`)), { at: 'item', item: 1, bytes: before.ends[1] }],
    [
      'a later item',
      read(items(9, (index) => (index === 3 ? 'Item 3.' : `Item ${index}`))),
      { at: 'item', item: 4, bytes: expect.any(Number) },
    ],
  ])('says that it was %s', (_, now, change) => {
    expect(changeBetween(before, now)).toMatchObject(change)
  })

  test('says that it was the system prompt, and that the tools are the same', () => {
    const other = { ...system, content: 'Be long.' }
    const body: JsonObject = { model: 'p', tools, messages: [other, ...items(7)] }
    const bytes = Buffer.from(JSON.stringify(body))
    const scan = new JsonScan({ maxDepth: 50, maxTokens: 1_000, maxMembers: 1_000 })
    scan.push(bytes)
    const now = digestPrompt(
      digest,
      { bytes, members: scan.members(bytes) },
      formatById('openai-chat').readRequest(body),
      [],
    )
    expect(changeBetween(before, now)).toEqual({ at: 'system', bytes: before.ends[0] })
  })

  test('notices that text moved from one item to the next', () => {
    const moved = [
      { role: 'user', content: 'ab' },
      { role: 'user', content: 'c' },
    ]
    expect(read(moved).items).not.toEqual(
      read([
        { role: 'user', content: 'a' },
        { role: 'user', content: 'bc' },
      ]).items,
    )
    expect(read(moved).whole).not.toBe(
      read([
        { role: 'user', content: 'a' },
        { role: 'user', content: 'bc' },
      ]).whole,
    )
  })
})

test('a prompt has at most 1,024 digests of items', () => {
  const long = read(items(3_000))
  expect(long.items).toHaveLength(1_024)
  expect(long.count).toBe(3_000)
  const continued = read(items(3_002), {}, [long])
  expect(continued.items).toEqual(long.items)
  expect(changeBetween(long, continued).at).toBe('end')
})

test('marks for caching are not part of a prompt', () => {
  const message = (mark: object): JsonObject => ({
    model: 'p',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Why?', ...mark }] }],
  })
  const of = (body: JsonObject) =>
    digestPrompt(
      digest,
      { bytes: Buffer.alloc(0), members: [] },
      formatById('anthropic-messages').readRequest(body),
      [],
    )
  expect(of({ ...message({ cache_control: { type: 'ephemeral' } }), max_tokens: 5 }).items).toEqual(
    of({ ...message({}), max_tokens: 5 }).items,
  )
})

test('a client that moves its marks with every turn keeps the digests of its items', () => {
  const text = (index: number, isMarked: boolean): JsonObject => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: [{ type: 'text', text: `Item ${index}`, ...(isMarked && { cache_control: { type: 'ephemeral' } }) }],
  })
  const of = (count: number, earlier: readonly PromptDigest[]) => {
    const messages = Array.from({ length: count }, (_, index) => text(index, index >= count - 2))
    const body: JsonObject = { model: 'p', max_tokens: 5, messages }
    const bytes = Buffer.from(JSON.stringify(body))
    const scan = new JsonScan({ maxDepth: 50, maxTokens: 1_000, maxMembers: 1_000 })
    scan.push(bytes)
    const conversation = formatById('anthropic-messages').readRequest(body)
    return digestPrompt(digest, { bytes, members: scan.members(bytes) }, conversation, earlier)
  }
  const before = of(5, [])
  const now = of(7, [before])
  expect(now.items).toEqual(of(7, []).items)
  expect(changeBetween(before, now).at).toBe('end')
  // The next turn finds these by the digest without marks, too.
  expect(now.whole).not.toBe('')
})

test('another key gives other digests', () => {
  const other = new KeyedDigest(new Uint8Array(32).fill(1))
  const bytes = Buffer.from('some text')
  expect(other.of(bytes)).not.toBe(digest.of(bytes))
  expect(other.shortOf('some text')).not.toBe(digest.shortOf('some text'))
  expect(digest.of(bytes)).toMatch(/^[\w-]{22}$/)
})
