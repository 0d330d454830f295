import type { Kysely } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { NewConversationItem, StoredConversation } from '../../src/domain/conversations.ts'
import { createConversationStore } from '../../src/storage/conversation-store.ts'
import type { RetainedConversations } from '../../src/storage/conversations.ts'
import { createResponseStore } from '../../src/storage/response-store.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { enginesFor } from './engines.ts'

const conversationOf = (id: string, changes: Partial<StoredConversation> = {}): StoredConversation => ({
  id,
  accountId: 'acc_1',
  createdAtMs: 1_000,
  lastUsedAtMs: 1_000,
  items: 0,
  bytes: 0,
  sealedMetadata: `metadata of ${id}`,
  ...changes,
})
const itemOf = (name: string, bytes = 10): NewConversationItem => ({ digest: `d ${name}`, bytes, sealed: name })
const limits = { nowMs: 2_000, sinceMs: 0, maxItems: 2_000, maxBytes: 1_000_000, skipsDuplicates: false }

describe.each(enginesFor('conversations'))('conversations on %s', (_name, engine) => {
  let store: RetainedConversations
  /** A second connection to the same data, like that of another node. */
  let other: RetainedConversations
  let db: Kysely<Tables>
  let second: Kysely<Tables>

  beforeAll(() => engine.start())
  afterAll(() => engine.stop())
  beforeEach(async () => {
    const open = await engine.fresh()
    db = await open()
    second = await open()
    store = createConversationStore(db)
    other = createConversationStore(second)
  })
  afterEach(async () => {
    await db.destroy()
    await second.destroy()
  })

  const textsOf = async (id: string, order: 'asc' | 'desc' = 'asc', after?: string, limit = 5_000) =>
    (
      await other.listItems('acc_1', id, { order, limit, ...(after !== undefined && { afterDigest: `d ${after}` }) })
    )?.map(({ sealed }) => sealed)
  const storedBytes = async (): Promise<unknown> =>
    db.selectFrom('stored_bytes').select(['account_id', 'bytes', 'conversation_bytes']).execute()

  test('only its own account finds a conversation and its items, in both orders and page by page', async () => {
    await store.add(conversationOf('conv_1'))
    expect(
      await store.append(
        'acc_1',
        'conv_1',
        ['a', 'b', 'c'].map((name) => itemOf(name)),
        limits,
      ),
    ).toBeUndefined()
    expect(await other.find('acc_1', 'conv_1', 0)).toEqual(
      conversationOf('conv_1', { items: 3, bytes: 30, lastUsedAtMs: 2_000 }),
    )
    expect(await textsOf('conv_1')).toEqual(['a', 'b', 'c'])
    expect(await textsOf('conv_1', 'desc', undefined, 2)).toEqual(['c', 'b'])
    expect(await textsOf('conv_1', 'desc', 'b')).toEqual(['a'])
    expect(await textsOf('conv_1', 'asc', 'x')).toBeUndefined()
    expect(await other.find('acc_2', 'conv_1', 0)).toBeUndefined()
    expect(await other.listItems('acc_2', 'conv_1', { order: 'asc', limit: 9 })).toEqual([])
    expect(await other.findItem('acc_2', 'conv_1', 'd a')).toBeUndefined()
    expect(await other.append('acc_2', 'conv_1', [itemOf('x')], limits)).toBe('not_found')
    expect(await other.removeItems('acc_2', 'conv_1', ['d a'])).toBe(0)
    expect(await other.remove('acc_2', 'conv_1', 0)).toBe(false)
    expect(await other.update('acc_2', 'conv_1', 'x', { nowMs: 1, sinceMs: 0 })).toBeUndefined()
    expect(await textsOf('conv_1')).toEqual(['a', 'b', 'c'])
  })

  test('an append is rejected as a whole for its item count, its bytes, an existing ID, or the storage limit of the account', async () => {
    await store.add(conversationOf('conv_1'))
    await store.append('acc_1', 'conv_1', [itemOf('a')], limits)
    const two = [itemOf('b'), itemOf('c')]
    expect(await store.append('acc_1', 'conv_1', two, { ...limits, maxItems: 2 })).toBe('full')
    expect(await store.append('acc_1', 'conv_1', two, { ...limits, maxBytes: 29 })).toBe('full')
    expect(await store.append('acc_1', 'conv_1', [itemOf('b'), itemOf('a')], limits)).toBe('duplicate')
    expect(await store.append('acc_1', 'conv_1', [itemOf('b'), itemOf('b')], limits)).toBe('duplicate')
    const bounded = createConversationStore(db, 2_000)
    expect(await bounded.append('acc_1', 'conv_1', [{ ...itemOf('b'), sealed: 'x'.repeat(700) }], limits)).toBe(
      'no_room',
    )
    expect(await textsOf('conv_1')).toEqual(['a'])
    const skipping = { ...limits, skipsDuplicates: true }
    expect(await store.append('acc_1', 'conv_1', [itemOf('a'), itemOf('b')], skipping)).toBeUndefined()
    expect(await textsOf('conv_1')).toEqual(['a', 'b'])
  })

  test('turns that end at the same time are each appended whole, in the order in which they end', async () => {
    await store.add(conversationOf('conv_1'))
    await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        (n % 2 === 0 ? store : other).append('acc_1', 'conv_1', [itemOf(`${n} in`), itemOf(`${n} out`)], limits),
      ),
    )
    const texts = (await textsOf('conv_1'))!
    expect(texts).toHaveLength(40)
    for (let at = 0; at < texts.length; at += 2) expect(texts[at + 1]).toBe(texts[at]!.replace('in', 'out'))
    expect(await other.find('acc_1', 'conv_1', 0)).toMatchObject({ items: 40, bytes: 400 })
  })

  test('every use extends the life of a conversation, and an expired one is not found even before it is swept', async () => {
    await store.add(conversationOf('conv_1'))
    expect(await other.find('acc_1', 'conv_1', 1_000)).toBeUndefined()
    expect(await other.append('acc_1', 'conv_1', [itemOf('a')], { ...limits, sinceMs: 1_000 })).toBe('not_found')
    await other.update('acc_1', 'conv_1', 'new', { nowMs: 5_000, sinceMs: 0 })
    expect(await other.find('acc_1', 'conv_1', 4_999)).toMatchObject({ sealedMetadata: 'new' })
    await store.append('acc_1', 'conv_1', [itemOf('a')], { ...limits, nowMs: 9_000 })
    await store.deleteUntil(8_999, 10)
    expect(await textsOf('conv_1')).toEqual(['a'])
    await store.deleteUntil(9_000, 10)
    expect(await textsOf('conv_1')).toEqual([])
    expect(await db.selectFrom('conversations').selectAll().execute()).toEqual([])
  })

  test('deleting a conversation deletes all its items in steps and releases their bytes', async () => {
    await store.add(conversationOf('conv_1'))
    await store.append(
      'acc_1',
      'conv_1',
      Array.from({ length: 1_234 }, (_, n) => itemOf(`item ${n}`)),
      limits,
    )
    await store.add(conversationOf('conv_2', { accountId: 'acc_2' }))
    await store.append('acc_2', 'conv_2', [itemOf('kept')], limits)
    const bytes = 'metadata of conv_2'.length + 1024 + 4 + 256
    expect(await store.remove('acc_1', 'conv_1', 0)).toBe(true)
    expect(await store.remove('acc_1', 'conv_1', 0)).toBe(false)
    expect(await db.selectFrom('conversation_items').select('sealed').execute()).toEqual([{ sealed: 'kept' }])
    expect(await storedBytes()).toEqual([{ account_id: 'acc_2', bytes, conversation_bytes: bytes }])
    await store.update('acc_2', 'conv_2', 'short', { nowMs: 1_000, sinceMs: 0 })
    expect(await store.removeItems('acc_2', 'conv_2', ['d kept', 'd x'])).toBe(1)
    expect(await storedBytes()).toEqual([{ account_id: 'acc_2', bytes: 1029, conversation_bytes: 1029 }])
    expect(await store.find('acc_2', 'conv_2', 0)).toMatchObject({ items: 0, bytes: 0 })
  })

  test("conversations count toward an account's stored text: responses are evicted to make room, conversations never are", async () => {
    const answers = createResponseStore(db, 6_000)
    const bounded = createConversationStore(db, 6_000)
    const save = (id: string, bytes: number): Promise<boolean> =>
      answers.save(
        {
          id,
          accountId: 'acc_1',
          previousId: undefined,
          createdAtMs: 1,
          links: 1,
          chainBytes: 1,
          sealedResponse: '',
          sealedInput: '',
          sealedOutput: 'x'.repeat(bytes),
        },
        [],
      )
    expect(await save('resp_1', 4_000)).toBe(true)
    expect(await bounded.add(conversationOf('conv_1'))).toBe(true)
    const large = [{ ...itemOf('a'), sealed: 'x'.repeat(3_000) }]
    expect(await bounded.append('acc_1', 'conv_1', large, limits)).toBeUndefined()
    expect(await answers.find('acc_1', 'resp_1', 0)).toBeUndefined()
    expect(await save('resp_2', 1_000)).toBe(true)
    expect(await save('resp_3', 4_000), 'conversations leave too little room').toBe(false)
    expect(await answers.find('acc_1', 'resp_2', 0), 'nothing goes in vain').toBeDefined()
    expect(await textsOf('conv_1')).toHaveLength(1)
  })

  test("an account's conversations are listed newest first, page by page", async () => {
    for (const n of [1, 2, 3]) await store.add(conversationOf(`conv_${n}`, { createdAtMs: n === 3 ? 2 : n }))
    await store.add(conversationOf('conv_9', { accountId: 'acc_2' }))
    const page = await other.listOf('acc_1', 0, undefined, 2)
    expect(page.map(({ id }) => id)).toEqual(['conv_3', 'conv_2'])
    expect((await other.listOf('acc_1', 0, page[1], 2)).map(({ id }) => id)).toEqual(['conv_1'])
    expect(await other.listOf('acc_1', 1_000, undefined, 9)).toEqual([])
  })
})
