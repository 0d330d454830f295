import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openPostgres } from '../../src/storage/postgres/open-postgres.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { createStore } from '../../src/storage/store.ts'
import { someRecord } from '../audit-record.ts'
import { requestRow } from '../contract/request-row.ts'
import { hasPostgres, startPostgres, type TestPostgres } from '../postgres.ts'

describe.runIf(hasPostgres('deleting accounts'))('deleting an account on PostgreSQL', () => {
  let server: TestPostgres
  let db: Kysely<Tables>
  beforeAll(async () => {
    server = await startPostgres()
    const url = await server.createDatabase()
    db = await openPostgres(url)
    await sql.raw(`alter database ${new URL(url).pathname.slice(1)} set deadlock_timeout = '50ms'`).execute(db)
    await db.destroy()
    db = await openPostgres(url)
  })
  afterAll(async () => {
    await db.destroy()
    await server.stop()
  })

  test('succeeds although PostgreSQL aborts it for a settlement that locks the same rows in another order', async () => {
    const store = createStore(db)
    const account = { id: 'acc_1', name: 'Ada', planId: 'free', suspended: false, createdAtMs: 1 }
    await store.addAccount(account, someRecord())
    for (const id of ['req_1', 'req_2']) await db.insertInto('requests').values(requestRow(id, 1)).execute()
    const aborted = async (): Promise<number> => {
      const { rows } = await sql<{ count: number }>`
        select deadlocks as count from pg_stat_database where datname = current_database()`.execute(db)
      return rows[0]!.count
    }
    const before = await aborted()
    let deleting: Promise<boolean> | undefined
    await db.transaction().execute(async (settlement) => {
      // Only the deletion looks for deadlocks in time.
      await sql`set local deadlock_timeout = '10s'`.execute(settlement)
      const lock = (id: string) => sql`select 1 from requests where id = ${id} for update`.execute(settlement)
      await lock('req_2')
      deleting = store.deleteAccount('acc_1', 1, someRecord())
      await untilSomebodyWaits()
      await lock('req_1')
    })
    expect(await deleting).toBe(true)
    expect(await store.findAccount('acc_1')).toBeUndefined()
    // A session reports its statistics at most once a second.
    await expect.poll(aborted).toBeGreaterThan(before)
  })

  test('of an account with many requests delays no admission while they are deleted', async () => {
    const store = createStore(db)
    const account = { id: 'acc_1', name: 'Ada', planId: 'free', suspended: false, createdAtMs: 1 }
    await store.addAccount(account, someRecord())
    await sql`insert into meters (account_id, admitted, last_at_ms) values ('acc_1', 0, 0)`.execute(db)
    const rows = Array.from({ length: 1_001 }, (_, at) => requestRow(`req_${at}`, 1))
    for (let at = 0; at < rows.length; at += 500)
      await db
        .insertInto('requests')
        .values(rows.slice(at, at + 500))
        .execute()
    let deleting: Promise<boolean> | undefined
    await db.transaction().execute(async (settlement) => {
      await sql`select 1 from requests where id = 'req_7' for update`.execute(settlement)
      deleting = store.deleteAccount('acc_1', 1, someRecord())
      await untilSomebodyWaits()
      expect(await store.findAccount('acc_1')).toMatchObject({ suspended: true })
      const { rows: free } = await sql`select 1 from meters for update nowait`.execute(db)
      expect(free).toHaveLength(1)
    })
    expect(await deleting).toBe(true)
    expect(await db.selectFrom('requests').select('id').execute()).toEqual([])
  })

  async function untilSomebodyWaits(): Promise<void> {
    for (;;) {
      const { rows } = await sql`
        select 1 from pg_stat_activity
        where wait_event = 'transactionid' and datname = current_database()`.execute(db)
      if (rows.length > 0) return
      await sleep(1)
    }
  }
})
