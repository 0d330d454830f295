import type { Kysely } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { CacheVerdict } from '../../src/domain/cache-verdict.ts'
import { lowestIdAt } from '../../src/runtime/ids.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { createStore, type Store } from '../../src/storage/store.ts'
import { enginesFor } from './engines.ts'
import { requestRow } from './request-row.ts'

const dayMs = 86_400_000
const startMs = 1_795_132_800_000

describe.each(enginesFor('cache usage'))('what was read from caches on %s', (_, engine) => {
  let db: Kysely<Tables>
  let store: Store
  let count = 0
  beforeAll(() => engine.start())
  afterAll(() => engine.stop())
  beforeEach(async () => {
    const open = await engine.fresh()
    db = await open()
    store = createStore(db)
    return () => db.destroy()
  })

  /** A request whose last attempt has this verdict. */
  async function add(atMs: number, cache: CacheVerdict | undefined, changes: Partial<Tables['requests']> = {}) {
    count += 1
    const attempts = [
      { backend: 'a', outcome: 'server_error', ms: 1 },
      { backend: 'b', outcome: 'answered', ms: 1, ...(cache && { cache }) },
    ]
    const id = `${lowestIdAt('req_', atMs)}${count}`
    const tokens = { input_tokens: 1_000, cached_tokens: cache?.read ?? 0, attempts: JSON.stringify(attempts) }
    await db
      .insertInto('requests')
      .values(requestRow(id, atMs, { ...tokens, ...changes }))
      .execute()
  }

  const hit: CacheVerdict = { reason: 'hit', before: 900, expected: 900, read: 900, client: 'codex' }
  const tools: CacheVerdict = { reason: 'tools', before: 900, expected: 0, read: 0, client: 'codex' }

  test('is added up over days by key, client, and reason', async () => {
    await add(startMs, hit)
    await add(startMs + dayMs, hit)
    await add(startMs + dayMs, tools)
    await add(startMs + dayMs, { ...hit, client: 'other' }, { key_id: 'key_2' })
    await add(startMs, undefined)
    await add(startMs, hit, { attempts: null })
    await add(startMs - dayMs, hit)
    await add(startMs, hit, { account_id: 'acc_2' })
    const selection = { fromMs: startMs, untilMs: startMs + 2 * dayMs }
    const shared = { keyId: 'key_1', client: 'codex' }
    const own = [
      { ...shared, reason: 'hit', turns: 2, inputTokens: 2_000, readTokens: 1_800 },
      { ...shared, reason: 'tools', turns: 1, inputTokens: 1_000, readTokens: 0 },
      { keyId: 'key_2', client: 'other', reason: 'hit', turns: 1, inputTokens: 1_000, readTokens: 900 },
    ]
    const found = await store.addUpCache({ ...selection, accountId: 'acc_1' })
    expect(found).toHaveLength(own.length)
    expect(found).toEqual(expect.arrayContaining(own))
    const all = await store.addUpCache(selection)
    expect(all.find(({ reason, keyId }) => reason === 'hit' && keyId === 'key_1')?.turns).toBe(3)
  })
})
