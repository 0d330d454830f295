import type { Kysely } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { NewGeneration } from '../../src/gateway/generations/generation-store.ts'
import { createGenerationStore } from '../../src/storage/generation-store.ts'
import type { GenerationList } from '../../src/storage/generations.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { hasAnswer, storeAnswer } from '../storage/stored-answer.ts'
import { enginesFor } from './engines.ts'

const dayMs = 86_400_000

function generation(requestId: string, changes: Partial<NewGeneration> = {}): NewGeneration {
  return {
    accountId: 'acc_1',
    keyDigest: 'key',
    requestId,
    bodyDigest: 'body',
    format: 'openai-chat',
    stream: true,
    isBackground: false,
    createdAtMs: 1_000,
    expiresAtMs: 1_000 + dayMs,
    ...changes,
  }
}

const chunk = (requestId: string, number: number) =>
  ({ accountId: 'acc_1', requestId, number, sealed: `sealed ${number}`, bytes: 10, hasContent: true }) as const

describe.each(enginesFor('generations'))('generations on %s', (_, engine) => {
  let db: Kysely<Tables>
  let store: GenerationList
  beforeAll(() => engine.start())
  afterAll(() => engine.stop())
  beforeEach(async () => {
    const open = await engine.fresh()
    db = await open()
    store = createGenerationStore(db)
    return () => db.destroy()
  })

  const endLeases = (): Promise<unknown> => db.updateTable('generations').set({ lease_until_ms: 0 }).execute()

  test('one of 50 simultaneous requests with a key runs, and the others learn which', async () => {
    const claims = Array.from({ length: 50 }, (_, n) => store.claim(generation(`req_${n}`)))
    const found = await Promise.all(claims)
    expect(found.filter((one) => one === undefined)).toHaveLength(1)
    const winner = found.indexOf(undefined)
    for (const other of found) if (other !== undefined) expect(other.requestId).toBe(`req_${winner}`)
  })

  test('chunks are taken in order, from the owner only, and until the end', async () => {
    await store.claim(generation('req_1'))
    expect(await store.append(chunk('req_1', 1))).toBe(false)
    expect(await store.append(chunk('req_1', 0))).toBe(true)
    expect(await store.append(chunk('req_1', 0))).toBe(false)
    expect(await store.append({ ...chunk('req_1', 1), head: '{}', end: 'finished' })).toBe(true)
    expect(await store.append(chunk('req_1', 2))).toBe(false)
    expect(await store.append({ ...chunk('req_1', 2), accountId: 'acc_2' })).toBe(false)
    const news = await store.read('acc_1', 'req_1', 1)
    expect(news?.chunks).toEqual([{ number: 1, sealed: 'sealed 1' }])
    expect(news?.generation).toMatchObject({ state: 'finished', hasContent: true, chunks: 2, head: '{}' })
    expect(await store.read('acc_2', 'req_1', 0)).toBeUndefined()
  })

  test('only a generation whose process is dead, and that has no content, starts again; the old owner cannot write', async () => {
    await store.claim(generation('req_1'))
    await store.append({ ...chunk('req_1', 0), hasContent: false })
    expect(await store.claim(generation('req_2'))).toMatchObject({ requestId: 'req_1' })
    await storeAnswer(db, 'req_1')
    await endLeases()
    expect(await store.claim(generation('req_2', { bodyDigest: 'other' }))).toMatchObject({ requestId: 'req_1' })
    expect(await hasAnswer(db, 'req_1')).toBe(true)
    expect(await store.claim(generation('req_2'))).toBeUndefined()
    expect(await hasAnswer(db, 'req_1'), 'its charge is released').toBe(false)
    expect(await store.append(chunk('req_1', 1))).toBe(false)
    expect(await store.read('acc_1', 'req_1', 0)).toBeUndefined()
    expect(await store.append(chunk('req_2', 0))).toBe(true)
    expect(await store.withContent(['req_1', 'req_2'])).toEqual(['req_2'])
    await endLeases()
    expect(await store.claim(generation('req_3'))).toMatchObject({ requestId: 'req_2', hasContent: true })
  })

  test.each([
    ['its client has the response', false, () => store.setResponse('req_1', 'sealed')],
    ['its client has events', true, () => store.append({ ...chunk('req_1', 0), hasContent: false })],
  ])('a background generation starts again if its process is dead, but not if %s', async (_, stream, know) => {
    const ofBackground = (id: string): NewGeneration => generation(id, { stream, isBackground: true })
    await store.claim(ofBackground('req_0'))
    await endLeases()
    expect(await store.claim(ofBackground('req_1'))).toBeUndefined()
    await know()
    await endLeases()
    expect(await store.claim(ofBackground('req_2'))).toMatchObject({ requestId: 'req_1', state: 'running' })
    expect(await store.findByRequest('acc_1', 'req_1')).toBeDefined()
  })

  test('only an abandoned generation can be ended by others, and a renewed one is not abandoned', async () => {
    await store.claim(generation('req_1'))
    const end = { ...chunk('req_1', 0), end: 'interrupted', onlyIfAbandoned: true } as const
    expect(await store.append(end)).toBe(false)
    await endLeases()
    await store.renew(['req_1'])
    expect(await store.append(end)).toBe(false)
    await endLeases()
    expect(await store.append(end)).toBe(true)
  })

  test.each(['claim', 'read', 'find'] as const)(
    'a lease from before the clock was set back ends in time, by %s',
    async (by) => {
      await store.claim(generation('req_1'))
      const hourMs = 3_600_000
      await db
        .updateTable('generations')
        .set((row) => ({ lease_until_ms: row('lease_until_ms', '+', hourMs) }))
        .execute()
      const ways = {
        claim: () => store.claim(generation('req_2')),
        read: async () => (await store.read('acc_1', 'req_1', 0))?.generation,
        find: () => store.findByRequest('acc_1', 'req_1'),
      }
      for (let times = 0; times < 2; times++) {
        const found = await ways[by]()
        expect(found?.requestId).toBe('req_1')
        expect(found?.leaseLeftMs).toBeGreaterThan(5_000)
        expect(found?.leaseLeftMs).toBeLessThanOrEqual(10_000)
      }
      // Ten seconds pass.
      await db
        .updateTable('generations')
        .set((row) => ({ lease_until_ms: row('lease_until_ms', '-', 10_000) }))
        .execute()
      expect(await store.claim(generation('req_2'))).toBeUndefined()
    },
  )

  test('a cancellation reaches the owner when it renews its lease', async () => {
    await store.claim(generation('req_1'))
    await store.requestCancel('acc_2', 'req_1')
    expect(await store.renew(['req_1'])).toEqual([])
    await store.requestCancel('acc_1', 'req_1')
    expect(await store.renew(['req_1'])).toEqual(['req_1'])
  })

  test('a generation that is too large can be canceled, and its lease ends when it does', async () => {
    await store.claim(generation('req_1'))
    await store.endLease('req_1')
    await store.append({ ...chunk('req_1', 0), end: 'too_large' })
    expect((await store.findByRequest('acc_1', 'req_1'))?.leaseLeftMs).toBeGreaterThan(0)
    await store.requestCancel('acc_1', 'req_1')
    expect(await store.renew(['req_1'])).toEqual(['req_1'])
    await store.endLease('req_1')
    expect((await store.findByRequest('acc_1', 'req_1'))?.leaseLeftMs).toBeLessThanOrEqual(0)
  })

  test('expired and removed generations are deleted with their chunks, and their keys are free', async () => {
    await store.claim(generation('req_1'))
    await store.append({ ...chunk('req_1', 0), end: 'finished' })
    expect(await store.claim(generation('req_2', { createdAtMs: 1_000 + dayMs }))).toBeUndefined()
    await store.append(chunk('req_2', 0))
    await store.remove('acc_2', 'req_2')
    expect(await store.findByRequest('acc_1', 'req_2')).toBeDefined()
    await store.remove('acc_1', 'req_2')
    expect(await store.claim(generation('req_3'))).toBeUndefined()
    await store.append({ ...chunk('req_3', 0), end: 'finished' })
    expect(await store.deleteExpired(1_000 + dayMs - 1, 10)).toBe(0)
    expect(await store.deleteExpired(1_000 + dayMs, 10)).toBe(1)
    expect(await db.selectFrom('generation_chunks').selectAll().execute()).toEqual([])
    expect(await db.selectFrom('generations').selectAll().execute()).toEqual([])
  })

  test('an account with too many bytes loses the oldest that have ended', async () => {
    const big = 200 * 1024 * 1024
    for (const n of [1, 2, 3]) {
      await store.claim(generation(`req_${n}`, { keyDigest: `key ${n}`, createdAtMs: n }))
      await store.append({ ...chunk(`req_${n}`, 0), bytes: big, ...(n > 1 && { end: 'finished' }) })
    }
    await store.claim(generation('req_4', { keyDigest: 'key 4', createdAtMs: 4 }))
    const left = await db.selectFrom('generations').select('request_id').orderBy('created_at_ms').execute()
    // The first still runs.
    expect(left.map((row) => row.request_id)).toEqual(['req_1', 'req_4'])
  })

  const count = async (): Promise<number> => (await db.selectFrom('generations').selectAll().execute()).length

  test.each([
    ['runs', {}],
    ['is too large and still being delivered', { end: 'too_large' }],
  ] as const)('a generation that %s is not deleted when it expires, or to make room', async (_state, changes) => {
    await store.claim(generation('req_1'))
    await store.append({ ...chunk('req_1', 0), bytes: 300 * 1024 * 1024, ...changes })
    const later = generation('req_2', { createdAtMs: 1_000 + dayMs })
    expect(await store.deleteExpired(1_000 + dayMs, 10)).toBe(0)
    expect(await store.claim(later)).toMatchObject({ requestId: 'req_1' })
    expect(await store.has('acc_1', 'key', 1_000 + dayMs)).toBe(true)
    await store.claim(generation('req_3', { keyDigest: 'other' }))
    expect(await count()).toBe(2)
    await endLeases()
    expect(await store.has('acc_1', 'key', 1_000 + dayMs)).toBe(false)
    expect(await store.claim(later)).toBeUndefined()
    await endLeases()
    expect(await store.deleteExpired(1_000 + 2 * dayMs, 10)).toBe(2)
  })

  test('the chunks of a generation that is too large count toward its account only until they are dropped', async () => {
    const most = 256 * 1024 * 1024
    for (const [n, end] of (['finished', 'too_large'] as const).entries()) {
      await store.claim(generation(`req_${n}`, { keyDigest: `key ${n}`, createdAtMs: n }))
      await store.append({ ...chunk(`req_${n}`, 0), bytes: most, end })
      if (end === 'too_large') await store.dropChunks(`req_${n}`)
    }
    await store.claim(generation('req_2', { keyDigest: 'key 2' }))
    expect(await count()).toBe(3)
    expect((await store.read('acc_1', 'req_1', 0))?.chunks).toEqual([])
  })

  test('many small generations do not protect large ones, and the limit holds after each claim', async () => {
    const sizes = [...Array.from({ length: 20 }, () => 1), 200 * 1024 * 1024, 200 * 1024 * 1024]
    for (const [n, bytes] of sizes.entries()) {
      await store.claim(generation(`req_${n}`, { keyDigest: `key ${n}`, createdAtMs: n }))
      await store.append({ ...chunk(`req_${n}`, 0), bytes, end: 'finished' })
    }
    await store.claim(generation('req_last', { keyDigest: 'last', createdAtMs: 1_000 }))
    const left = await db.selectFrom('generations').select('request_id').orderBy('created_at_ms').execute()
    expect(left.map((row) => row.request_id)).toEqual(['req_21', 'req_last'])
  })

  test('a key is known until its generation expires', async () => {
    await store.claim(generation('req_1'))
    await store.append({ ...chunk('req_1', 0), end: 'finished' })
    expect(await store.has('acc_1', 'key', 1_000 + dayMs - 1)).toBe(true)
    expect(await store.has('acc_1', 'key', 1_000 + dayMs)).toBe(false)
    expect(await store.has('acc_2', 'key', 1_000)).toBe(false)
  })
})
