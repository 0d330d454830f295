import type { Kysely } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { StoredCacheSession } from '../../src/gateway/cache/session-store.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { createStore, type Store } from '../../src/storage/store.ts'
import { someRecord } from '../audit-record.ts'
import { enginesFor } from './engines.ts'

const row = (session: string, changes: Partial<StoredCacheSession> = {}): StoredCacheSession => ({
  accountId: 'acc_1',
  session,
  state: `state of ${session}`,
  updatedMs: 1_000,
  expiresMs: 2_000,
  ...changes,
})

describe.each(enginesFor('cache sessions'))('sessions on %s', (_, engine) => {
  let db: Kysely<Tables>
  let store: Store
  beforeAll(() => engine.start())
  afterAll(() => engine.stop())
  beforeEach(async () => {
    const open = await engine.fresh()
    db = await open()
    store = createStore(db)
    for (const id of ['acc_1', 'acc_2'])
      await store.addAccount({ id, name: id, planId: 'free', suspended: false, createdAtMs: 1 }, someRecord())
    return () => db.destroy()
  })

  test('are found by their account only', async () => {
    await store.saveCacheSessions([row('b'), row('a')])
    expect(await store.findCacheSession('acc_1', 'a')).toEqual(row('a'))
    expect(await store.findCacheSession('acc_2', 'a')).toBeUndefined()
    expect(await store.findCacheSession('acc_1', 'c')).toBeUndefined()
  })

  test('stay as the later of two processes wrote them', async () => {
    await store.saveCacheSessions([row('a', { state: 'later', updatedMs: 5_000 })])
    await store.saveCacheSessions([row('a', { state: 'earlier', updatedMs: 4_000 }), row('b')])
    expect((await store.findCacheSession('acc_1', 'a'))?.state).toBe('later')
    expect(await store.findCacheSession('acc_1', 'b')).toEqual(row('b'))
  })

  test('of an account that was deleted are not stored', async () => {
    await store.saveCacheSessions([row('a', { accountId: 'acc_3' }), row('a')])
    expect(await store.findCacheSession('acc_3', 'a')).toBeUndefined()
    expect(await store.findCacheSession('acc_1', 'a')).toBeDefined()
  })

  test('are deleted when they expired, at most so many at once', async () => {
    await store.saveCacheSessions([row('a'), row('b', { expiresMs: 1_500 }), row('c', { expiresMs: 9_000 })])
    expect(await store.deleteCacheSessions(5_000, 1)).toBe(1)
    expect(await store.findCacheSession('acc_1', 'b')).toBeUndefined()
    expect(await store.deleteCacheSessions(5_000, 10)).toBe(1)
    expect(await store.findCacheSession('acc_1', 'c')).toBeDefined()
  })

  test('of one account are at most 5,000, and the oldest are deleted first', async () => {
    await store.saveCacheSessions([row('other', { accountId: 'acc_2' })])
    for (let from = 0; from < 5_200; from += 200)
      await store.saveCacheSessions(
        Array.from({ length: 200 }, (__, index) => row(`s${from + index}`, { updatedMs: 1_000 + from + index })),
      )
    const { count } = await db
      .selectFrom('cache_sessions')
      .select((one) => one.fn.countAll<number>().as('count'))
      .where('account_id', '=', 'acc_1')
      .executeTakeFirstOrThrow()
    expect(count).toBe(5_000)
    expect(await store.findCacheSession('acc_1', 's199')).toBeUndefined()
    expect(await store.findCacheSession('acc_1', 's200')).toBeDefined()
    expect(await store.findCacheSession('acc_2', 'other')).toBeDefined()
  })
})
