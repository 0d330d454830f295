import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemClock } from '../../../src/runtime/clock.ts'
import { openSqliteLedger } from '../../../src/storage/ledger/ledger-sqlite.ts'
import { databasePath } from '../../../src/storage/sqlite/connect-sqlite.ts'
import { openSqlite } from '../../../src/storage/sqlite/open-sqlite.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-modes-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('other users cannot read any file of a running service, whatever the folder allows', async () => {
  chmodSync(folder, 0o777)
  const db = await openSqlite(folder)
  const ledger = await openSqliteLedger(folder, systemClock())
  try {
    const modes = readdirSync(folder).map((name) => [name, statSync(join(folder, name)).mode & 0o777])
    expect(modes.map(([name]) => name)).toEqual(
      expect.arrayContaining(['owner.db', 'svc-router.db', 'svc-router.db-wal']),
    )
    expect(modes.filter(([, mode]) => mode !== 0o600)).toEqual([])
  } finally {
    await ledger.close()
    await db.destroy()
  }
})

test('an existing database that others could read becomes private', async () => {
  await (await openSqlite(folder)).destroy()
  chmodSync(databasePath(folder), 0o644)
  await (await openSqlite(folder)).destroy()
  expect(statSync(databasePath(folder)).mode & 0o777).toBe(0o600)
})
