import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { type Kysely, sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { StoreUnavailable } from '../../../src/runtime/store-unavailable.ts'
import type { Tables } from '../../../src/storage/schema/schema.ts'
import { databasePath } from '../../../src/storage/sqlite/connect-sqlite.ts'
import { openSqlite, openSqliteInThread } from '../../../src/storage/sqlite/open-sqlite.ts'
import { SqliteThread } from '../../../src/storage/sqlite/sqlite-thread.ts'
import { freezeDatabase } from '../../frozen-database.ts'

let folder: string
let thread: SqliteThread
let worker: Worker
let db: Kysely<Tables>

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-test-'))
  await (await openSqlite(folder)).destroy()
  const started = once(process, 'worker', { signal: AbortSignal.timeout(10_000) })
  const listener = { onCommitted: () => {}, onFailed: () => {}, onDied: () => {} }
  thread = await SqliteThread.start({ path: databasePath(folder), busyTimeoutMs: 100 }, listener)
  ;[worker] = (await started) as [Worker]
  db = openSqliteInThread(thread, 'store')
})
afterEach(async () => {
  await db.destroy()
  await thread.close(undefined)
  rmSync(folder, { recursive: true })
})

const add = (on: Kysely<Tables>, name: string) => on.insertInto('ledger').values({ name, value: '1' }).execute()
const names = async () => (await db.selectFrom('ledger').select('name').execute()).map(({ name }) => name)

test('while the disk hangs, a query times out and later ones fail immediately; afterwards nothing of them remains', async () => {
  await add(db, 'before')
  const thaw = freezeDatabase(worker, databasePath(folder))
  const startMs = performance.now()
  const lost = db.transaction().execute(async (transaction) => {
    await add(transaction, 'lost')
    await add(transaction, 'lost too')
  })
  await expect(lost).rejects.toThrow(StoreUnavailable)
  expect(performance.now() - startMs).toBeLessThan(7_000)
  const refusedMs = performance.now()
  await expect(names()).rejects.toThrow(StoreUnavailable)
  expect(performance.now() - refusedMs).toBeLessThan(500)
  thaw()
  await expect.poll(() => names().catch(() => []), { timeout: 5_000 }).toContain('before')
  expect(await names()).not.toContain('lost')
  await db.transaction().execute((transaction) => add(transaction, 'after'))
  expect(await names()).toContain('after')
}, 20_000)

test('a failing transaction is rolled back, with SQLite’s own error and codes', async () => {
  const failing = db.transaction().execute(async (transaction) => {
    await add(transaction, 'first')
    await add(transaction, 'first')
  })
  await expect(failing).rejects.toMatchObject({ code: 'ERR_SQLITE_ERROR', errcode: 1555 })
  expect(await names()).not.toContain('first')
})

test('a full disk is not a bug: a write fails as unavailable with SQLite’s code, leaves nothing, and works when there is room', async () => {
  const limit = (pages: number) => sql.raw(`pragma max_page_count = ${pages}`).execute(db)
  await limit(1)
  const failing = db.transaction().execute(async (transaction) => {
    await add(transaction, 'small')
    await add(transaction, 'x'.repeat(200_000))
  })
  await expect(failing).rejects.toThrow(StoreUnavailable)
  await expect(failing).rejects.toMatchObject({ code: 'ERR_SQLITE_ERROR', errcode: 13 })
  expect(await names()).not.toContain('small')
  await limit(1_000_000)
  await db.transaction().execute((transaction) => add(transaction, 'x'.repeat(200_000)))
  expect(await names()).toHaveLength(1)
})

test('work requested before closing is completed, and none afterwards', async () => {
  await add(db, 'first')
  const asked = Array.from({ length: 50 }, (_, index) => add(db, `entry ${index}`))
  await db.destroy()
  expect(await thread.close(undefined)).toBe(true)
  await Promise.all(asked)
  expect(() => thread.call({ type: 'prove' })).toThrow(StoreUnavailable)
  const reopened = await openSqlite(folder)
  expect(await reopened.selectFrom('ledger').selectAll().execute()).toHaveLength(51)
  await reopened.destroy()
  thread = await SqliteThread.start(
    { path: databasePath(folder), busyTimeoutMs: 100 },
    { onCommitted: () => {}, onFailed: () => {}, onDied: () => {} },
  )
  db = openSqliteInThread(thread, 'store')
})
