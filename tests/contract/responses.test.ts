import type { Kysely } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { StoredResponse } from '../../src/domain/stored-responses.ts'
import { StoreUnavailable } from '../../src/runtime/store-unavailable.ts'
import { createResponseStore, TooManySaves } from '../../src/storage/response-store.ts'
import type { ResponseList } from '../../src/storage/responses.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { enginesFor } from './engines.ts'

function responseOf(id: string, changes: Partial<StoredResponse> = {}): StoredResponse {
  return {
    id,
    accountId: 'acc_1',
    previousId: undefined,
    createdAtMs: 1_000,
    links: 1,
    chainBytes: 10,
    sealedResponse: `sealed ${id}`,
    sealedInput: `sealed input of ${id}`,
    sealedOutput: `sealed output of ${id}`,
    ...changes,
  }
}

describe.each(enginesFor('stored responses'))('stored responses on %s', (_name, engine) => {
  let store: ResponseList
  /** A second connection to the same data, like that of another node. */
  let other: ResponseList
  let db: Kysely<Tables>

  beforeAll(() => engine.start())
  afterAll(() => engine.stop())
  beforeEach(async () => {
    const open = await engine.fresh()
    db = await open()
    store = createResponseStore(db)
    other = createResponseStore(await open())
  })
  afterEach(async () => {
    await store.close()
    await other.close()
  })

  /** The IDs of a chain, newest first. */
  const chainOf = async (id: string, { account = 'acc_1', sinceMs = 0, maxLinks = 100 } = {}) =>
    (await other.chain(account, id, sinceMs, maxLinks)).map((turn) => turn.id)

  test('a response is found as it was saved, and only by its own account', async () => {
    const saved = responseOf('resp_1', { createdAtMs: 4_102_444_800_123, chainBytes: 5_000_000_000 })
    await store.save(saved, ['d1'])
    expect(await other.find('acc_1', 'resp_1', 0)).toEqual(saved)
    expect(await other.find('acc_2', 'resp_1', 0)).toBeUndefined()
    expect(await other.find('acc_1', 'resp_2', 0)).toBeUndefined()
  })

  test('every query omits responses created at or before the given time', async () => {
    await store.save(responseOf('resp_1', { createdAtMs: 500 }), ['d1'])
    for (const [sinceMs, isThere] of [
      [499, true],
      [500, false],
      [501, false],
    ] as const) {
      expect((await other.find('acc_1', 'resp_1', sinceMs)) !== undefined).toBe(isThere)
      expect((await other.locations('acc_1', ['d1'], sinceMs, 10)).length > 0).toBe(isThere)
      expect((await chainOf('resp_1', { sinceMs })).length > 0).toBe(isThere)
    }
    expect(await other.remove('acc_1', 'resp_1', 500)).toBe(false)
    expect(await other.remove('acc_1', 'resp_1', 499)).toBe(true)
  })

  test('a chain is read newest first, is bounded, and ends at a link that is missing, too old, or of another account', async () => {
    for (let n = 1; n <= 5; n++) {
      const previousId = n === 1 ? undefined : `resp_${n - 1}`
      await store.save(responseOf(`resp_${n}`, { previousId, createdAtMs: n * 100, links: n }), [])
    }
    expect(await chainOf('resp_5')).toEqual(['resp_5', 'resp_4', 'resp_3', 'resp_2', 'resp_1'])
    expect(await chainOf('resp_5', { maxLinks: 2 })).toEqual(['resp_5', 'resp_4'])
    expect(await chainOf('resp_5', { sinceMs: 250 })).toEqual(['resp_5', 'resp_4', 'resp_3'])
    expect(await chainOf('resp_5', { account: 'acc_2' })).toEqual([])
    const [newest] = await other.chain('acc_1', 'resp_5', 0, 1)
    expect(newest).toEqual({
      id: 'resp_5',
      previousId: 'resp_4',
      createdAtMs: 500,
      links: 5,
      chainBytes: 10,
      sealedInput: 'sealed input of resp_5',
      sealedOutput: 'sealed output of resp_5',
    })
    await other.remove('acc_1', 'resp_3', 0)
    expect(await chainOf('resp_5')).toEqual(['resp_5', 'resp_4'])
    await store.save(responseOf('resp_x', { accountId: 'acc_2', previousId: 'resp_1' }), [])
    expect(await chainOf('resp_x', { account: 'acc_2' })).toEqual(['resp_x'])
  })

  test('items are found in the newest responses first, and only in those of the account', async () => {
    await store.save(responseOf('resp_1', { createdAtMs: 100 }), ['d1', 'd2', 'd2'])
    await store.save(responseOf('resp_2', { createdAtMs: 200 }), ['d2'])
    await store.save(responseOf('resp_3', { createdAtMs: 300, accountId: 'acc_2' }), ['d2'])
    const places = await other.locations('acc_1', ['d1', 'd2', 'd3'], 0, 10)
    expect(places[0]).toEqual({ digest: 'd2', responseId: 'resp_2', createdAtMs: 200 })
    expect(places.slice(1).map(({ digest, responseId }) => [digest, responseId])).toEqual(
      expect.arrayContaining([
        ['d1', 'resp_1'],
        ['d2', 'resp_1'],
      ]),
    )
    expect(places).toHaveLength(3)
    expect(await other.locations('acc_1', ['d1', 'd2'], 0, 1)).toHaveLength(1)
    expect(await other.locations('acc_1', [], 0, 10)).toEqual([])
  })

  test('deleting a response deletes its items, once, and only for its own account', async () => {
    await store.save(responseOf('resp_1'), ['d1'])
    expect(await other.remove('acc_2', 'resp_1', 0)).toBe(false)
    const removals = await Promise.all([store.remove('acc_1', 'resp_1', 0), other.remove('acc_1', 'resp_1', 0)])
    expect(removals.filter(Boolean)).toHaveLength(1)
    expect(await db.selectFrom('stored_items').selectAll().execute()).toEqual([])
  })

  test('expired responses are deleted in bounded steps with their items', async () => {
    for (const n of [1, 2, 3, 4, 5]) await store.save(responseOf(`resp_${n}`, { createdAtMs: n }), [`d${n}`])
    expect(await other.deleteUntil(4, 3)).toBe(3)
    expect(await other.deleteUntil(4, 3)).toBe(1)
    expect(await other.deleteUntil(4, 3)).toBe(0)
    expect(await store.find('acc_1', 'resp_5', 0)).toBeDefined()
    expect(await db.selectFrom('stored_items').select('digest').execute()).toEqual([{ digest: 'd5' }])
  })

  test('simultaneous saves from two nodes, with thousands of items, are all stored', async () => {
    const digests = Array.from({ length: 1200 }, (_, index) => `digest ${index}`)
    await Promise.all(
      Array.from({ length: 60 }, (_, n) =>
        (n % 2 === 0 ? store : other).save(responseOf(`resp_${n}`), n === 7 ? digests : []),
      ),
    )
    const { count } = await db
      .selectFrom('stored_responses')
      .select((row) => row.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    expect(count).toBe(60)
    expect(await store.locations('acc_1', digests, 0, 5000)).toHaveLength(1200)
  })

  test('a failed save reports its failure, and the next one succeeds', async () => {
    await store.save(responseOf('resp_1'), [])
    await expect(store.save(responseOf('resp_1'), ['d9'])).rejects.toThrow()
    expect(await store.locations('acc_1', ['d9'], 0, 10)).toEqual([])
    await store.save(responseOf('resp_2'), [])
    expect(await other.find('acc_1', 'resp_2', 0)).toBeDefined()
  })

  test("an account's stored text is bounded: its own oldest responses are deleted, never those of others", async () => {
    const bounded = createResponseStore(db, 1_000)
    const sized = (id: string, n: number, bytes: number, accountId = 'acc_1'): StoredResponse =>
      responseOf(id, {
        accountId,
        createdAtMs: n,
        sealedResponse: '',
        sealedInput: '',
        sealedOutput: 'x'.repeat(bytes),
      })
    const bytesOf = async (): Promise<unknown> =>
      db.selectFrom('stored_bytes').select(['account_id', 'bytes']).orderBy('account_id').execute()
    await bounded.save(sized('resp_other', 1, 900, 'acc_2'), ['other'])
    for (const n of [1, 2, 3, 4, 5, 6, 7, 8])
      expect(await bounded.save(sized(`resp_${n}`, n, 100), [`d${n}`])).toBe(true)
    expect(await bounded.save(sized('resp_big', 9, 500), [])).toBe(true)
    // Five rows of a hundred bytes were deleted, because four were too few.
    expect(await Promise.all([5, 6].map(async (n) => (await other.find('acc_1', `resp_${n}`, 0))?.id))).toEqual([
      undefined,
      'resp_6',
    ])
    expect(await bytesOf()).toEqual([
      { account_id: 'acc_1', bytes: 800 },
      { account_id: 'acc_2', bytes: 900 },
    ])
    expect(await other.locations('acc_1', ['d1', 'd6'], 0, 10)).toHaveLength(1)
    expect(await bounded.save(sized('resp_too_big', 10, 1_001), [])).toBe(false)
    expect(await other.find('acc_1', 'resp_too_big', 0)).toBeUndefined()
    await other.remove('acc_1', 'resp_big', 0)
    await other.deleteUntil(5, 100)
    expect(await bytesOf()).toEqual([{ account_id: 'acc_1', bytes: 300 }])
  })

  test('the queue of unsaved responses is bounded', async () => {
    const sealedInput = 'x'.repeat(30 * 1024 * 1024)
    const saves = [1, 2, 3, 4].map((n) => store.save(responseOf(`resp_${n}`, { sealedInput }), []))
    const outcomes = await Promise.allSettled(saves)
    const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []))
    expect(refused.filter((reason) => reason instanceof TooManySaves).length).toBeGreaterThan(0)
    // A slow disk may reject one that is not too many, but nothing else may.
    for (const reason of refused) if (!(reason instanceof TooManySaves)) expect(reason).toBeInstanceOf(StoreUnavailable)
  })
})
