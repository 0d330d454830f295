import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { sql } from 'kysely'
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { digestTables, readTables } from '../../../src/storage/backup/table-contents.ts'
import { connectPostgres, openPostgres } from '../../../src/storage/postgres/open-postgres.ts'
import { databasePath } from '../../../src/storage/sqlite/connect-sqlite.ts'
import { lockDataFolder } from '../../../src/storage/sqlite/data-folder-lock.ts'
import { Harness, type Spoken } from '../../cli/harness.ts'
import { hasPostgres } from '../../postgres.ts'
import { sharedPostgres, type SharedPostgres } from '../../shared-postgres.ts'
import { fillTables } from './fill-tables.ts'

/** Tables with long texts then take several batches. */
const manyRows = 40
/** Every difficult value at least once. */
const fewRows = 8
const variable = 'TEST_DATABASE_URL'
/** Changed by every restore. */
const restored = [
  'audit_checkpoints',
  'audit_head',
  'audit_log',
  'revisions',
  'sessions',
  'operator_sessions',
  'sign_in_proofs',
]

describe.runIf(hasPostgres('backup and moving'))('PostgreSQL', { timeout: 120_000 }, () => {
  let server: SharedPostgres
  let harnesses: Harness[]
  let url: string

  beforeAll(async () => {
    server = await sharedPostgres()
  }, 60_000)
  beforeEach(async () => {
    harnesses = []
    url = await server.createDatabase()
  })
  afterEach(() => {
    for (const harness of harnesses) harness.remove()
  })

  /** A service with a data folder of its own, and the secrets and the database of all. */
  function service(databaseUrl = url): Harness {
    const cli = new Harness()
    harnesses.push(cli)
    cli.isStoreReal = true
    cli.env = {
      SVC_ROUTER_SEALING_KEY: 'ab'.repeat(32),
      SVC_ROUTER_PEPPER: 'made-up-pepper-of-the-tests',
      [variable]: databaseUrl,
    }
    writeFileSync(join(cli.folder, 'postgres.yaml'), `database: { url_env: ${variable} }\n`)
    return cli
  }

  async function run(cli: Harness, ...args: string[]): Promise<Spoken> {
    const spoken = await cli.say(...args)
    expect(spoken.code, spoken.err).toBe(0)
    return spoken
  }

  function onPostgres(cli: Harness, ...args: string[]): Promise<Spoken> {
    return cli.say(...args, '--config', join(cli.folder, 'postgres.yaml'))
  }

  async function runOnPostgres(cli: Harness, ...args: string[]): Promise<Spoken> {
    const spoken = await onPostgres(cli, ...args)
    expect(spoken.code, spoken.err).toBe(0)
    return spoken
  }

  async function fill(cli: Harness, rowsPerTable = fewRows): Promise<void> {
    await run(cli, 'accounts', 'create', 'ada')
    await run(cli, 'keys', 'create', '--account', 'ada')
    using database = new DatabaseSync(databasePath(cli.dataDir))
    fillTables(database, rowsPerTable)
  }

  function contents(path: string): Record<string, { rows: number; digest: string }> {
    using database = new DatabaseSync(path, { readOnly: true })
    const { migrations: _, ...tables } = digestTables(database, readTables(database))
    return tables
  }

  test('SQLite to PostgreSQL to SQLite: every table is identical by content, and the old database is out of the way', async () => {
    const cli = service()
    await fill(cli, manyRows)
    const { out, err } = await runOnPostgres(cli, 'database', 'to-postgres')
    expect(out).toMatch(/copied and verified \d+ tables with \d{4} rows/)
    const left = readdirSync(cli.dataDir).filter((name) => name.startsWith('svc-router.db'))
    expect(left).toEqual([expect.stringMatching(/^svc-router\.db\.moved-\d+$/)])
    expect(err).toContain(left[0])
    const unmoved = await cli.say('keys', 'list')
    expect(unmoved).toMatchObject({ code: 3, err: expect.stringContaining('was moved to PostgreSQL') as string })
    expect((await runOnPostgres(cli, 'keys', 'list', '--account', 'ada')).out).toContain('active')
    const route = await runOnPostgres(cli, 'profiles', 'dry-run', 'svc-router/frontier', '--account', 'ada')
    expect(route.out).toContain('simulated-alpha')

    const back = service()
    await runOnPostgres(back, 'database', 'to-sqlite')
    const before = contents(join(cli.dataDir, left[0]!))
    expect(before['requests']!.rows).toBe(manyRows)
    expect(contents(databasePath(back.dataDir))).toEqual(before)
    // No node starts on the old database, until an operator undoes the move as the error says.
    const refused = await onPostgres(cli, 'accounts', 'list')
    expect(refused).toMatchObject({ code: 3, err: expect.stringContaining('was moved to SQLite') as string })
    const undo = /run in psql: (.*)$/m.exec(refused.err)![1]!
    await using db = connectPostgres(url)
    await sql.raw(undo).execute(db)
    // Both engines take the next rows, through their own triggers.
    await runOnPostgres(cli, 'accounts', 'create', 'eve')
    await run(back, 'accounts', 'create', 'eve')
  })

  test('a change during a move to SQLite fails, because the copy would not contain it', async () => {
    const cli = service()
    await runOnPostgres(cli, 'accounts', 'create', 'ada')
    await using db = connectPostgres(url)
    const blocking = await db.startTransaction().execute()
    await sql`lock table webhooks in access exclusive mode`.execute(blocking)
    const back = service()
    const moving = runOnPostgres(back, 'database', 'to-sqlite')
    await waiting(db, 'webhooks')
    const changing = onPostgres(cli, 'accounts', 'create', 'eve')
    await Promise.race([changing, waiting(db, 'revisions')])
    await blocking.commit().execute()
    expect(await changing).toMatchObject({ code: 3, err: expect.stringContaining('was moved to SQLite') as string })
    await moving
    expect((await run(back, 'accounts', 'list')).out).toContain('ada')
    expect(await db.selectFrom('accounts').select('name').execute()).toEqual([{ name: 'ada' }])
  })

  /** Resolves when a process waits for a lock on a table. */
  async function waiting(db: ReturnType<typeof connectPostgres>, table: string): Promise<void> {
    await vi.waitFor(
      async () => {
        const { rows } = await sql`select 1 from pg_locks
          where relation = ${table}::regclass and not granted`.execute(db)
        expect(rows).toHaveLength(1)
      },
      { timeout: 10_000, interval: 50 },
    )
  }

  test('nothing is copied into a database with data, from a running service, or without a configured database', async () => {
    const cli = service()
    await fill(cli)
    const unconfigured = await cli.say('database', 'to-postgres')
    expect(unconfigured).toMatchObject({
      code: 1,
      err: expect.stringContaining('no PostgreSQL database is configured') as string,
    })
    const release = lockDataFolder(cli.dataDir)
    await expect(onPostgres(cli, 'database', 'to-postgres')).rejects.toThrow('data folder in use')
    release()
    const db = await openPostgres(url)
    try {
      await sql`insert into accounts values ('acc_1', 'other', 'free', 0, 1)`.execute(db)
      const full = await onPostgres(cli, 'database', 'to-postgres')
      expect(full).toMatchObject({ code: 1, err: expect.stringContaining('its table accounts has rows') as string })
      expect(readdirSync(cli.dataDir)).toContain('svc-router.db')
      const taken = await onPostgres(cli, 'database', 'to-sqlite')
      expect(taken).toMatchObject({ code: 1, err: expect.stringContaining('already exists') as string })
      await sql`insert into nodes values ('n', 1, floor(extract(epoch from clock_timestamp()) * 1000))`.execute(db)
      const running = await onPostgres(service(), 'database', 'to-sqlite')
      expect(running).toMatchObject({
        code: 1,
        err: expect.stringContaining('a node is using the PostgreSQL database') as string,
      })
    } finally {
      await db.destroy()
    }
  })

  test('a copy that differs is rolled back, and says where', async () => {
    const cli = service()
    await fill(cli)
    const db = await openPostgres(url)
    try {
      await sql`create function spoil() returns trigger language plpgsql as
        $$ begin new.name := new.name || '.'; return new; end $$`.execute(db)
      await sql`create trigger spoil before insert on passkeys for each row execute function spoil()`.execute(db)
      const { code, err } = await onPostgres(cli, 'database', 'to-postgres')
      expect({ code, err }).toMatchObject({
        code: 1,
        err: expect.stringContaining('differs from the original (passkeys)') as string,
      })
      const { rows } = await sql<{ count: number }>`select count(*) as count from accounts`.execute(db)
      expect(rows[0]!.count).toBe(0)
      expect(readdirSync(cli.dataDir)).toContain('svc-router.db')
    } finally {
      await db.destroy()
    }
  })

  test('a backup of PostgreSQL is restored into SQLite or into another PostgreSQL database', async () => {
    const cli = service()
    await fill(cli)
    await runOnPostgres(cli, 'database', 'to-postgres')
    const file = join(cli.folder, 'all.backup')
    await onPostgres(cli, 'backup', file)
    await runOnPostgres(cli, 'restore', file, '--check', '--trust')

    const sqlite = service()
    await run(sqlite, 'restore', file, '--accept-lost-changes', '--trust')
    const otherUrl = await server.createDatabase()
    const postgres = service(otherUrl)
    await runOnPostgres(postgres, 'restore', file, '--accept-lost-changes', '--trust')
    const again = await onPostgres(postgres, 'restore', file, '--accept-lost-changes', '--trust')
    expect(again).toMatchObject({ code: 1, err: expect.stringContaining('is not empty') as string })

    const moved = join(
      cli.dataDir,
      readdirSync(cli.dataDir).find((name) => name.includes('.moved-'))!,
    )
    const back = service(otherUrl)
    await runOnPostgres(back, 'database', 'to-sqlite')
    const before = contents(moved)
    for (const harness of [sqlite, back]) {
      const after = contents(databasePath(harness.dataDir))
      for (const [table, content] of Object.entries(before))
        if (!restored.includes(table)) expect(after[table], table).toEqual(content)
      expect(after['sessions']!.rows).toBe(0)
    }
  })

  test('requests that were undecided are charged once, whichever engine they come from', async () => {
    const insert = `insert into requests (id, account_id, key_id, profile, format, stream, units, period_id, admitted_at_ms, state, charged, due_mark, node_id)`
    const cli = service()
    await run(cli, 'accounts', 'create', 'ada')
    const file = join(cli.folder, 'sqlite.backup')
    {
      using database = new DatabaseSync(databasePath(cli.dataDir))
      database.exec(`${insert} values ('req_1', 'a', 'k', 'p', 'f', 0, 3, '2026-01', 1, 'open', 0, null, null),
        ('req_2', 'a', 'k', 'p', 'f', 1, 2, '2026-01', 2, 'delivered', 0, null, null),
        ('req_3', 'a', 'k', 'p', 'f', 1, 1, '2026-01', 3, 'done', 1, 7, null)`)
      database.exec(`insert into usage values ('a', '2026-01', 1)`)
    }
    await run(cli, 'backup', file)
    const fromSqlite = service()
    await run(fromSqlite, 'restore', file, '--accept-lost-changes')
    expect(ledgerOf(fromSqlite)).toEqual({ used: 6, charged: 6, open: 0 })

    const db = await openPostgres(url)
    try {
      await sql
        .raw(`${insert} values ('req_1', 'a', 'k', 'p', 'f', 0, 3, '2026-01', 1, 'open', 0, 7, 'node')`)
        .execute(db)
      await sql`insert into usage values ('a', '2026-01', 3)`.execute(db)
    } finally {
      await db.destroy()
    }
    const fromPostgres = service()
    await runOnPostgres(fromPostgres, 'database', 'to-sqlite')
    expect(ledgerOf(fromPostgres)).toEqual({ used: 3, charged: 3, open: 0 })
  })

  test('what requests that were undecided hold of budgets is spent, whichever engine they come from', async () => {
    const request = `insert into requests (id, account_id, key_id, profile, format, stream, units, period_id, admitted_at_ms, state, charged, holds)
      values ('req_1', 'a', 'k', 'p', 'f', 0, 1, '2026-01', 1, 'open', 0, '[{"budgetId":"bud_1","unit":"usd","bucketMs":100,"amount":30}]')`
    const spending = `insert into budget_spending (budget_id, bucket_ms, account_id, spent, held)`
    const spent = [
      { budget_id: 'bud_1', bucket_ms: 100, spent: 35, held: 0, holding: 0 },
      { budget_id: 'bud_2', bucket_ms: 100, spent: 7, held: 0, holding: 0 },
    ]
    const cli = service()
    await run(cli, 'accounts', 'create', 'ada')
    const file = join(cli.folder, 'sqlite.backup')
    {
      using database = new DatabaseSync(databasePath(cli.dataDir))
      database.exec(request)
      database.exec(`${spending} values ('bud_1', 100, 'a', 5, 0), ('bud_2', 100, 'a', 7, 0)`)
    }
    await run(cli, 'backup', file)
    const restoredUrl = await server.createDatabase()
    await runOnPostgres(service(restoredUrl), 'restore', file, '--accept-lost-changes')
    expect(await spendingOn(restoredUrl)).toEqual(spent)

    await using db = await openPostgres(url)
    await sql.raw(request).execute(db)
    await sql.raw(`${spending} values ('bud_1', 100, 'a', 5, 30), ('bud_2', 100, 'a', 7, 0)`).execute(db)
    const back = service()
    await runOnPostgres(back, 'database', 'to-sqlite')
    using copy = new DatabaseSync(databasePath(back.dataDir))
    expect(copy.prepare(spendingSql).all()).toEqual(spent)
    // As an earlier version left it.
    copy.exec(`update budget_spending set held = 30 where budget_id = 'bud_1'`)
    const movedUrl = await server.createDatabase()
    const again = service(movedUrl)
    await run(again, 'accounts', 'create', 'ada')
    copy.exec(
      `attach '${databasePath(again.dataDir)}' as other; insert into other.budget_spending select * from budget_spending`,
    )
    await runOnPostgres(again, 'database', 'to-postgres')
    expect((await spendingOn(movedUrl))[0]).toMatchObject({ held: 0 })
  })

  const spendingSql = `select budget_id, bucket_ms, spent, held,
    (select count(*) from requests where holds is not null) as holding from budget_spending order by budget_id`

  async function spendingOn(databaseUrl: string): Promise<readonly unknown[]> {
    await using db = connectPostgres(databaseUrl)
    return (await sql.raw(spendingSql).execute(db)).rows
  }

  function ledgerOf({ dataDir }: Harness): Record<string, unknown> {
    using database = new DatabaseSync(databasePath(dataDir), { readOnly: true })
    return {
      ...database
        .prepare(
          `select (select sum(used) from usage) as used, sum(charged) as charged,
            sum(state in ('open', 'delivered') or due_mark is not null or node_id is not null) as open from requests`,
        )
        .get(),
    }
  }
})
