import { mkdtempSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SkippingClock } from '../../../src/simulation/skipping-clock.ts'
import { databasePath } from '../../../src/storage/sqlite/connect-sqlite.ts'
import { assertDatabaseThere, watchDatabaseFile } from '../../../src/storage/sqlite/database-file.ts'
import { openSqlite } from '../../../src/storage/sqlite/open-sqlite.ts'

let folder: string
let path: string

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-test-'))
  path = databasePath(folder)
  await (await openSqlite(folder)).destroy()
})
afterEach(() => rmSync(folder, { recursive: true }))

const check = (): void => assertDatabaseThere(path, folder)

test('a complete database and an empty folder are accepted', () => {
  expect(check).not.toThrow()
  writeFileSync(join(folder, 'deliveries'), '')
  expect(check).not.toThrow()
  rmSync(path)
  rmSync(join(folder, 'deliveries'))
  expect(check).not.toThrow()
})

test.each([
  ['missing', () => rmSync(path)],
  ['empty', () => truncateSync(path, 0)],
])('a database that is %s is rejected if delivery marks show that there was one', (_how, spoil) => {
  writeFileSync(join(folder, 'deliveries'), '')
  spoil()
  expect(check).toThrow('is missing')
})

test('deleting the marks too does not hide it, because the audit checkpoint remains', () => {
  writeFileSync(join(folder, 'audit-checkpoint.json'), '{}')
  rmSync(path)
  expect(check).toThrow('is missing')
})

test('a truncated database is rejected', () => {
  truncateSync(path, statSync(path).size - 4096)
  expect(check).toThrow('truncated')
  truncateSync(path, 50)
  expect(check).toThrow('truncated')
})

test.each([
  ['deleted', () => rmSync(path)],
  ['replaced', () => (renameSync(path, `${path}.old`), writeFileSync(path, ''))],
])(
  'a database that is %s while the service runs is detected within a second and reported once',
  async (_how, spoil) => {
    const reports: string[] = []
    const clock = new SkippingClock()
    const watch = watchDatabaseFile(path, clock, (trouble) => reports.push(trouble))
    await clock.skip(1_000)
    expect([watch.isUsable(), reports]).toEqual([true, []])
    spoil()
    // Each check reads the real file system, and schedules the next one when it is done.
    const look = async () => {
      await clock.skip(1_000)
      return watch.isUsable()
    }
    await expect.poll(look).toBe(false)
    await look()
    expect(reports).toEqual(['database_file_lost'])
    watch.end()
  },
)

test('a file system that becomes read-only is detected without a write, and so is its recovery', async () => {
  const reports: string[] = []
  let isWritable = true
  const clock = new SkippingClock()
  const watch = watchDatabaseFile(
    path,
    clock,
    (trouble) => reports.push(trouble),
    () => Promise.resolve(isWritable),
  )
  for (const writable of [false, true, false]) {
    isWritable = writable
    await expect
      .poll(async () => {
        await clock.skip(1_000)
        return watch.isUsable()
      })
      .toBe(writable)
  }
  expect(reports).toEqual(['database_read_only', 'database_read_only'])
  watch.end()
})
