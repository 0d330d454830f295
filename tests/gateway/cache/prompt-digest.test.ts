import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../src/domain/json.ts'
import { formatById } from '../../../src/formats/formats.ts'
import { JsonScan } from '../../../src/formats/json-scan.ts'
import { changeBetween, digestOf, digestPrompt, type PromptDigest } from '../../../src/gateway/cache/prompt-digest.ts'

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
  return digestPrompt({ bytes, members: scan.members(bytes) }, conversation, earlier)
}

describe('a prompt that continues an earlier one', () => {
  const before = read(items(5))

  test('differs nowhere', () => {
    expect(changeBetween(before, read(items(9)))).toEqual({ at: 'end', bytes: before.ends[2] })
  })

  test('has the same digests whether or not the earlier ones are known', () => {
    const { tools: sameTools, system: sameSystem, settings, items: digests, raw } = read(items(9))
    const continued = read(items(9), {}, [before])
    expect(continued).toMatchObject({ tools: sameTools, system: sameSystem, settings, items: digests, raw })
  })

  test('takes the digests of an earlier one only if all its items are the same', () => {
    const changed = items(9, (index) => (index === 2 ? 'Changed' : `Item ${index}`))
    expect(read(changed, {}, [before]).items).toEqual(read(changed).items)
  })

  test('takes the digests of the longest earlier one that it continues', () => {
    const shorter = { ...digestOf(read(items(3))), settings: 1 }
    const other = { ...digestOf(read(items(6, (index) => `Other ${index}`))), settings: 2 }
    for (const earlier of [
      [shorter, before, other],
      [other, before, shorter],
    ])
      expect(read(items(9), {}, earlier).settings).toBe(before.settings)
    expect(read(items(9), {}, [other, shorter]).settings).toBe(1)
  })

  test('has other digests if one byte of an earlier item changed, in any position', () => {
    const body = items(5)
    for (let at = 0; at < 5; at += 1) {
      const changed = body.with(at, { ...body[at]!, content: `item ${at}` })
      expect(changeBetween(before, read(changed))).toMatchObject({ at: 'item', item: at + 1 })
    }
  })

  test('takes no digests of an earlier one if bytes were added or removed anywhere, or changed at its end', () => {
    const long = items(5, (index) => `Item ${index}, ${'and more of it, '.repeat(500)}`)
    const earlier = read(long)
    const append = (body: readonly JsonObject[]): readonly JsonObject[] => [...body, { role: 'user', content: 'Next' }]
    expect(read(append(long), {}, [earlier]).follows).toBe(earlier)
    for (let at = 0; at < 5; at += 1) {
      const { content } = long[at] as { readonly content: string }
      for (const other of [
        `${content}.`,
        content.slice(1),
        `x${content}`,
        ...(at === 4 ? [`${content.slice(0, -2)}. `] : []),
      ])
        expect(read(append(long.with(at, { ...long[at]!, content: other })), {}, [earlier]).follows).toBeUndefined()
    }
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
    const now = digestPrompt({ bytes, members: scan.members(bytes) }, formatById('openai-chat').readRequest(body), [])
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
    digestPrompt({ bytes: Buffer.alloc(0), members: [] }, formatById('anthropic-messages').readRequest(body), [])
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
    return digestPrompt({ bytes, members: scan.members(bytes) }, conversation, earlier)
  }
  const before = of(5, [])
  const now = of(7, [before])
  expect(now.items).toEqual(of(7, []).items)
  expect(changeBetween(before, now).at).toBe('end')
})
