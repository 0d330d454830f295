import { appendFileSync, copyFileSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { assert as assertProperty, integer, nat, property } from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type BackupManifest, backupKeys, signManifest, writeManifest } from '../../../src/domain/backup.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import { addManifest } from '../../../src/storage/backup/backup-file.ts'
import { checkBackup } from '../../../src/storage/backup/check-backup.ts'
import { openSnapshot, takeSnapshot } from '../../../src/storage/backup/snapshot.ts'
import { digestTables, readTables } from '../../../src/storage/backup/table-contents.ts'
import { placeEmptyDatabase } from '../../empty-database.ts'

const keys = backupKeys({ current: { id: 'a', key: new Secret(new Uint8Array(32).fill(1)) } })
const otherKeys = backupKeys({ current: { id: 'a', key: new Secret(new Uint8Array(32).fill(2)) } })

let folder: string
let sound: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-backup-'))
  const data = join(folder, 'data')
  await placeEmptyDatabase(data)
  {
    using database = new DatabaseSync(join(data, 'svc-router.db'))
    const add = database.prepare(`insert into accounts values (?, ?, 'free', 0, 1)`)
    for (let n = 0; n < 500; n++) add.run(`acc_${n}`, `name ${n}`)
    database.exec(`insert into keys (id, account_id, name, hint, digest, state, created_at_ms)
      values ('key_1', 'acc_1', 'a', 'b', 'c', 'revoked', 1)`)
  }
  sound = join(folder, 'sound.backup')
  await takeSnapshot(data, sound, folder)
  sign(sound)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Adds a manifest that tells the truth about the file. */
function sign(path: string, changes: Partial<BackupManifest> = {}, by = keys): void {
  using database = openSnapshot(path)
  database.exec('drop table if exists svc_router_backup')
  const last = database.prepare('select max(name) as name from migrations').get()
  const text = writeManifest({
    atMs: 1,
    version: '0.0.0',
    engine: 'sqlite',
    schema: String(last?.['name']),
    tables: digestTables(database, readTables(database)),
    audit: { sequence: 0, hash: '' },
    checkpoint: null,
    secrets: [],
    ...changes,
  })
  addManifest(database, text, signManifest(by, text))
}

function check(path: string, trust = false): BackupManifest {
  return checkBackup(path, 'the file', keys, trust)
}

function variant(change: (path: string) => void): string {
  const path = join(folder, 'variant.backup')
  copyFileSync(sound, path)
  change(path)
  return path
}

function edit(path: string, ...statements: string[]): void {
  using database = openSnapshot(path)
  for (const statement of statements) database.exec(statement)
}

test('a sound backup passes', () => {
  expect(check(sound).tables['accounts']?.rows).toBe(500)
})

test('a backup that was cut short, or has something appended, is refused', () => {
  const { length } = readFileSync(sound)
  for (const size of [0, 1, 99, 512, 4096, length - 4096, length - 1]) {
    expect(() => check(variant((path) => truncateSync(path, size))), String(size)).toThrow(/damaged|not a backup/)
  }
  expect(() => check(variant((path) => appendFileSync(path, 'x')))).toThrow('damaged')
  expect(() => check(variant((path) => appendFileSync(path, Buffer.alloc(4096))))).toThrow('damaged')
})

test('a flipped byte is found, or is in a place that contains nothing', () => {
  const bytes = readFileSync(sound)
  const path = join(folder, 'flipped.backup')
  const manifest = check(sound)
  assertProperty(
    property(nat(bytes.length - 1), integer({ min: 1, max: 255 }), (at, bits) => {
      const changed = Buffer.from(bytes)
      changed[at] = changed[at]! ^ bits
      writeFileSync(path, changed)
      try {
        expect(check(path)).toEqual(manifest)
      } catch (error) {
        expect(error).toMatchObject({ name: 'BackupError' })
      }
    }),
    { numRuns: 60 },
  )
})

test('a changed row is found, even if the manifest was changed to match', () => {
  const revive = `update keys set state = 'active'`
  expect(() => check(variant((path) => edit(path, revive)))).toThrow('contents differ from its manifest (keys)')
  const forged = variant((path) => {
    edit(path, revive)
    sign(path, {}, otherKeys)
  })
  expect(() => check(forged)).toThrow('its signature is wrong')
  expect(check(forged, true).tables['keys']?.rows).toBe(1)
  expect(() =>
    check(
      variant((path) => edit(path, `delete from accounts where id = 'acc_9'`)),
      true,
    ),
  ).toThrow('accounts')
})

test('whatever someone adds to the schema is refused before anything of it runs', () => {
  const endless = 'with recursive n (v) as (select 1 union all select v + 1 from n) select'
  const additions = [
    `create view v as ${endless} v from n`,
    `create trigger t before delete on sessions begin delete from keys; end`,
    `create index i on accounts (name) where name like '%%%%%%%%%%'`,
    `create table extra (id text primary key, path text)`,
    `drop trigger audit_log_no_delete`,
    `alter table accounts add column more text`,
  ]
  for (const addition of additions) {
    const path = variant((copy) => {
      edit(copy, addition)
      if (!addition.includes('recursive')) sign(copy)
    })
    expect(() => check(path, true), addition).toThrow('did not create')
  }
  const posing = variant((path) =>
    edit(
      path,
      `drop table svc_router_backup`,
      `create view svc_router_backup as ${endless} 'manifest' as name, v as value from n`,
    ),
  )
  expect(() => check(posing, true)).toThrow('not a backup')
  const migrations = variant((path) =>
    edit(path, `drop table migrations`, `create view migrations as ${endless} v as name, v as checksum from n`),
  )
  expect(() => check(migrations, true)).toThrow('did not create')
})

test('a backup of a newer version is refused, and says so', () => {
  const newer = variant((path) => {
    edit(path, `insert into migrations (name, checksum, applied_at_ms) values ('999-later', 'x', 1)`)
    sign(path)
  })
  expect(() => check(newer)).toThrow('written by a newer version of svc-router (migration "999-later"')
  expect(() => check(newer)).toThrow(expect.objectContaining({ fix: expect.stringContaining('may also be damaged') }))
  const format = variant((path) => {
    using database = openSnapshot(path)
    const text = JSON.stringify({ format: 2 })
    database.exec('drop table svc_router_backup')
    addManifest(database, text, signManifest(keys, text))
  })
  expect(() => check(format)).toThrow('was taken by a newer version')
})

test('a manifest that is huge, malformed, or claims huge counts is refused', () => {
  const texts = ['', '[]', '{}', '{"format":1}', `{"format":1,"x":"${'x'.repeat(2_000_000)}"}`]
  for (const text of texts) {
    const path = variant((copy) => {
      using database = openSnapshot(copy)
      database.exec('drop table svc_router_backup')
      addManifest(database, text, signManifest(keys, text))
    })
    expect(() => check(path), text.slice(0, 20)).toThrow('not a backup')
  }
  const claims = variant((path) =>
    sign(path, {
      tables: { accounts: { rows: Number.MAX_SAFE_INTEGER, digest: 'x' }, '../../etc': { rows: 1, digest: '' } },
    }),
  )
  expect(() => check(claims)).toThrow('contents differ from its manifest (../../etc, accounts,')
})

test('other files are refused: text, another database, a folder, a device, a database with a write-ahead log', () => {
  const text = join(folder, 'text')
  writeFileSync(text, 'x'.repeat(5_000))
  for (const path of [text, folder, '/dev/zero', join(folder, 'data', 'svc-router.db')])
    expect(() => check(path), path).toThrow(/not a backup|damaged/)
  expect(() => check(join(folder, 'missing'))).toThrow('there is no file')
  expect(() => check(variant((path) => edit(path, 'pragma journal_mode = wal')))).toThrow('damaged')
})

test('a journal that someone placed next to a backup is ignored', () => {
  const path = variant(() => {})
  for (const suffix of ['-journal', '-wal', '-shm'])
    writeFileSync(`${path}${suffix}`, readFileSync(sound).subarray(0, 8192))
  expect(check(path).tables['accounts']?.rows).toBe(500)
  for (const suffix of ['-journal', '-wal', '-shm']) rmSync(`${path}${suffix}`)
})
