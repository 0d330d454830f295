import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openSqlite } from '../../src/storage/sqlite/open-sqlite.ts'
import { replaceAudit } from '../replace-audit.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const timeoutMs = 20_000
const processes = 4

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-signed-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Runs the program in its own process. */
function run(...args: string[]): { code: number | null; out: string; err: string } {
  const line = [main, ...args, '--data', join(folder, 'data')]
  const { status, stdout, stderr } = spawnSync(process.execPath, line, {
    encoding: 'utf8',
    timeout: timeoutMs,
    cwd: folder,
  })
  return { code: status, out: stdout.trim(), err: stderr }
}

test(
  'changes of a command are signed at its end, and after a truncation the next command warns and signs nothing',
  async () => {
    expect(run('accounts', 'create', 'ada').code).toBe(0)
    expect(run('audit', 'verify')).toMatchObject({ code: 0, out: 'intact: 1 entry, proven through entry 1' })
    const db = await openSqlite(join(folder, 'data'))
    await sql`drop trigger audit_log_no_delete`.execute(db)
    await sql`delete from audit_log where sequence = 1`.execute(db)
    await db.destroy()
    const { code, err } = run('accounts', 'suspend', 'ada')
    expect([code, err]).toEqual([0, expect.stringContaining('warning: the audit log is broken')])
    expect(run('audit', 'verify')).toMatchObject({
      code: 1,
      out: expect.stringMatching(/^broken at entry 1/) as string,
    })
  },
  processes * timeoutMs,
)

test(
  'a log that was replaced together with its checkpoints is not signed, neither at the end of a command nor on request',
  async () => {
    expect(run('accounts', 'create', 'ada').code).toBe(0)
    const db = await openSqlite(join(folder, 'data'))
    await replaceAudit(db)
    const { code, err } = run('accounts', 'suspend', 'ada')
    expect([code, err]).toEqual([0, expect.stringContaining('warning: the audit log is broken')])
    expect(run('audit', 'checkpoint')).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringContaining('the audit log is broken at entry 1') as string,
    })
    expect((await sql`select * from audit_checkpoints`.execute(db)).rows).toEqual([])
    await db.destroy()
  },
  processes * timeoutMs,
)
