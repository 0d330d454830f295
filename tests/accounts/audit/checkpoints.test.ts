import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Kysely, sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { checkpointFailure, startCheckpoints } from '../../../src/accounts/audit/checkpoints.ts'
import type { Checkpoint } from '../../../src/domain/checkpoint.ts'
import type { Tables } from '../../../src/storage/schema/schema.ts'
import { createStore, type Store } from '../../../src/storage/store.ts'
import { madeUpKeys, recordAt } from '../../domain/audit-log.ts'
import { openEmptySqlite } from '../../empty-database.ts'
import { ManualClock } from '../../gateway/manual-clock.ts'

describe('checkpoints of a running service', () => {
  let folder: string
  let db: Kysely<Tables>
  let store: Store
  let clock: ManualClock
  let kept: Checkpoint | undefined
  let failures: string[]
  let end: () => Promise<void>

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'svc-router-test-'))
    db = await openEmptySqlite(folder)
    store = createStore(db)
    clock = new ManualClock()
    failures = []
    kept = undefined
  })
  afterEach(async () => {
    await store.close()
    rmSync(folder, { recursive: true })
  })
  const start = (): void => {
    const onFailed = (error: unknown): void => void failures.push(checkpointFailure(error))
    const memory = {
      read: () => Promise.resolve(kept),
      keep: async (checkpoint: Checkpoint) => void (kept = checkpoint),
    }
    end = startCheckpoints({ store, keys: madeUpKeys(), clock, memory, onSigned: () => {}, onFailed })
  }
  const signed = async (): Promise<number[]> => (await store.listCheckpoints(10)).map(({ sequence }) => sequence)

  test('checkpoints are signed at the start, at the end, and each minute with new entries', async () => {
    await store.appendAudit(recordAt(1))
    start()
    await expect.poll(signed).toEqual([1])
    await clock.advance(59_000)
    await store.appendAudit(recordAt(2))
    expect(await signed()).toEqual([1])
    await clock.advance(1_000)
    await expect.poll(signed).toEqual([2, 1])
    await expect.poll(() => clock.waiting).toBe(1)
    await clock.advance(60_000)
    expect(await signed()).toEqual([2, 1])
    await store.appendAudit(recordAt(3))
    await end()
    expect(await signed()).toEqual([3, 2, 1])
    expect([failures, clock.waiting]).toEqual([[], 0])
  })

  test('a broken log gets no checkpoint, and each attempt reports the position and the reason', async () => {
    for (let index = 1; index <= 3; index++) await store.appendAudit(recordAt(index))
    await sql`drop trigger audit_log_no_update`.execute(db)
    await sql`update audit_log set hash = 'x' where sequence = 2`.execute(db)
    start()
    await expect.poll(() => failures).toEqual(['broken:changed:2'])
    await end()
    expect(failures).toEqual(['broken:changed:2', 'broken:changed:2'])
    expect(await signed()).toEqual([])
  })

  test('a log that was replaced and lost its checkpoints is not signed', async () => {
    await store.appendAudit(recordAt(1))
    await store.appendAudit(recordAt(2))
    start()
    await expect.poll(signed).toEqual([2])
    await expect.poll(() => clock.waiting).toBe(1)
    const { rows } = await sql<{ name: string }>`select name from sqlite_master where type = 'trigger'`.execute(db)
    for (const { name } of rows) await sql.raw(`drop trigger "${name}"`).execute(db)
    await sql`delete from audit_checkpoints`.execute(db)
    await sql`update audit_log set hash = 'forged' where sequence = 2`.execute(db)
    await clock.advance(60_000)
    await expect.poll(() => failures).toEqual(['broken:rewritten:2'])
    await end()
    // The next run of the service detects it, too.
    start()
    await expect.poll(() => failures.length).toBe(3)
    await end()
    expect(new Set(failures)).toEqual(new Set(['broken:rewritten:2']))
    expect(await signed()).toEqual([])
  })

  test('an error of the store is reported only by its name', () => {
    expect(checkpointFailure(new RangeError('made-up secret'))).toBe('RangeError')
    expect(checkpointFailure('made-up secret')).toBe('unknown')
  })
})
