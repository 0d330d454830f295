import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openPostgres } from '../../src/storage/postgres/open-postgres.ts'
import { proveQuotasOnPostgres } from '../../src/storage/postgres/prove-quotas.ts'
import { databasePath } from '../../src/storage/sqlite/connect-sqlite.ts'
import { openSqlite } from '../../src/storage/sqlite/open-sqlite.ts'
import { proveQuotasOnSqlite } from '../../src/storage/sqlite/prove-quotas.ts'
import { enginesWith } from './engines.ts'

/** A fresh database: how to open it, to prove it, and to make writes to the quotas disappear. */
interface Fresh {
  readonly open: () => ReturnType<typeof openSqlite>
  readonly prove: () => Promise<void>
  readonly loseWrites: readonly string[]
}

const openIn = async (folder: string): Promise<Fresh> => ({
  open: () => openSqlite(folder),
  prove: () => proveQuotasOnSqlite(databasePath(folder)),
  loseWrites: [
    `create trigger lose_insert before insert on usage begin select raise(ignore); end`,
    `create trigger lose_update before update on usage begin select raise(ignore); end`,
  ],
})
const openAt = async (url: string): Promise<Fresh> => ({
  open: () => openPostgres(url),
  prove: () => proveQuotasOnPostgres(url),
  loseWrites: [
    `create function lose() returns trigger language plpgsql as $$ begin return null; end $$`,
    `create trigger lose before insert or update on usage for each row execute function lose()`,
  ],
})

describe.each(enginesWith('proof of quotas', { openIn, openAt, durable: true }))(
  'the proof that quotas are durable on %s',
  (_name, engine) => {
    beforeAll(() => engine.start())
    afterAll(() => engine.stop())

    test('the proof succeeds repeatedly and from many places at once, and counts against no account', async () => {
      const { open, prove } = await engine.fresh()
      const db = await open()
      await prove()
      await Promise.all(Array.from({ length: 5 }, () => prove()))
      const rows = await db.selectFrom('usage').selectAll().execute()
      expect(rows).toEqual([{ account_id: 'proof', period_id: 'proof', used: 6 }])
      await db.destroy()
    })

    test('the proof fails if any write is lost, the first or a later one', async () => {
      for (const before of [0, 2]) {
        const { open, prove, loseWrites } = await engine.fresh()
        const db = await open()
        for (let count = 0; count < before; count++) await prove()
        for (const statement of loseWrites) await sql.raw(statement).execute(db)
        await expect(prove()).rejects.toThrow('could not be read back')
        await db.destroy()
      }
    })
  },
)

const withoutDisk = enginesWith('proof of quotas without a disk', { openIn, openAt, durable: false })

describe.each(withoutDisk.filter(([name]) => name === 'PostgreSQL'))(
  '%s configured not to wait for the disk',
  (_, engine) => {
    beforeAll(() => engine.start())
    afterAll(() => engine.stop())

    test('quotas are not durable', async () => {
      const { open, prove } = await engine.fresh()
      const db = await open()
      await expect(prove()).rejects.toThrow('fsync')
      await db.destroy()
    })
  },
)

test('quotas are not durable if the SQLite file was deleted while open, and no new file is created', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-router-test-'))
  const db = await openSqlite(folder)
  try {
    await proveQuotasOnSqlite(databasePath(folder))
    rmSync(databasePath(folder))
    await expect(proveQuotasOnSqlite(databasePath(folder))).rejects.toThrow('does not exist')
    expect(existsSync(databasePath(folder))).toBe(false)
  } finally {
    await db.destroy()
    rmSync(folder, { recursive: true })
  }
})
