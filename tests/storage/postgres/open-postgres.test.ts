import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { StoreUnavailable } from '../../../src/runtime/store-unavailable.ts'
import { connectPostgres, openPostgres, readRevisionOnPrimary } from '../../../src/storage/postgres/open-postgres.ts'
import { proxyDatabase } from '../../database-proxy.ts'
import { hasPgBouncer, startPgBouncer } from '../../pgbouncer.ts'
import { hasPostgres, startPostgres, startReplica } from '../../postgres.ts'
import { sharedPostgres, type SharedPostgres } from '../../shared-postgres.ts'
import { openTcpLink } from '../../tcp-link.ts'

const queryTimeoutMs = 300

describe.runIf(hasPostgres('opening PostgreSQL'))('a PostgreSQL database', () => {
  let server: SharedPostgres
  beforeAll(async () => {
    server = await sharedPostgres()
  })

  test('with another collation sorts ids by their bytes, as time does', async () => {
    const english =
      "template template0 encoding 'UTF8' locale_provider icu icu_locale 'en-US' lc_collate 'C' lc_ctype 'C'"
    const db = await openPostgres(await server.createDatabase(english))
    try {
      const { rows } = await sql<{ isLess: boolean }>`select 'a' < 'B' as "isLess"`.execute(db)
      expect(rows).toEqual([{ isLess: true }])
      for (const id of ['req_a', 'req_B', 'req_A', 'req_b'])
        await sql`insert into requests (id, account_id, key_id, profile, format, stream, units, period_id, admitted_at_ms,
          state, charged) values (${id}, 'acc_1', 'key_1', 'p', 'f', 0, 1, '2026-11', 1, 'done', 0)`.execute(db)
      const found = await db.selectFrom('requests').select('id').where('id', '<', 'req_a').orderBy('id').execute()
      expect(found.map(({ id }) => id)).toEqual(['req_A', 'req_B'])
    } finally {
      await db.destroy()
    }
  })

  test('that is opened by twenty nodes at the same time is migrated once', async () => {
    const url = await server.createDatabase()
    const opened = await Promise.all(Array.from({ length: 20 }, () => openPostgres(url, { maxConnections: 1 })))
    try {
      const rows = await opened[0]!.selectFrom('migrations').select('name').execute()
      expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length)
    } finally {
      await Promise.all(opened.map((db) => db.destroy()))
    }
  })

  test('that is new or upgraded compiles no statement of the ledger, which would take seconds', async () => {
    const db = await openPostgres(await server.createDatabase())
    try {
      const { rows } = await sql<{ name: string; settings: readonly string[] }>`
        select proname as name, proconfig as settings from pg_proc
        where proname like 'svc\\_router\\_%' and 'enable_seqscan=off' = any (proconfig)`.execute(db)
      expect(rows.length).toBeGreaterThan(5)
      expect(rows.filter(({ settings }) => !settings.includes('jit=off'))).toEqual([])
    } finally {
      await db.destroy()
    }
  })

  test('that does not accept writes is not read either', async () => {
    const url = await server.createDatabase()
    const db = await openPostgres(url)
    await sql`alter database ${sql.raw(new URL(url).pathname.slice(1))} set default_transaction_read_only = on`.execute(
      db,
    )
    await db.destroy()
    const readOnly = connectPostgres(url)
    try {
      await expect(sql`select 1`.execute(readOnly)).rejects.toThrow(StoreUnavailable)
    } finally {
      await readOnly.destroy()
    }
  })

  test('on a replica is not read, and neither is the revision if a pooler connects there later', async () => {
    const primary = await startPostgres()
    const url = await primary.createDatabase()
    const db = await openPostgres(url)
    const revision = await readRevisionOnPrimary(db)
    expect(revision).toBeTypeOf('number')
    await db.destroy()
    const replica = await startReplica(primary)
    const replicaUrl = new URL(url)
    replicaUrl.port = new URL(replica.url).port
    const link = await proxyDatabase(url)
    const bouncer = hasPgBouncer('a pooler that follows a failover') ? await startPgBouncer(link.url) : undefined
    const direct = connectPostgres(replicaUrl.href)
    const pooled = bouncer && connectPostgres(bouncer.url)
    try {
      await expect(sql`select 1`.execute(direct)).rejects.toThrow(StoreUnavailable)
      if (bouncer === undefined || pooled === undefined) return
      expect(await readRevisionOnPrimary(pooled)).toBe(revision)
      // The service's connections to the pooler stay open.
      link.cut()
      link.target = Number(replicaUrl.port)
      link.heal()
      await expect(readRevisionOnPrimary(pooled)).rejects.toThrow(StoreUnavailable)
    } finally {
      await direct.destroy()
      await pooled?.destroy()
      await bouncer?.stop()
      await link.close()
      await replica.stop()
      await primary.stop()
    }
  })

  test('that does not answer in time fails the statement, and the next one gets another connection', async () => {
    const proxy = await proxyDatabase(await server.createDatabase())
    const db = connectPostgres(proxy.url, { maxConnections: 1, queryTimeoutMs })
    try {
      await sql`select 1`.execute(db)
      proxy.stall()
      await expect(sql`select 2`.execute(db)).rejects.toThrow(StoreUnavailable)
      proxy.heal()
      await sleep(1)
      const { rows } = await sql<{ three: number }>`select 3 as three`.execute(db)
      expect(rows).toEqual([{ three: 3 }])
    } finally {
      await db.destroy()
      await proxy.close()
    }
  })

  test(
    'that is slow when a caller gives up waiting for a connection loses no connection',
    { timeout: 20_000 },
    async () => {
      const url = new URL(await server.createDatabase())
      const link = await openTcpLink(Number(url.port))
      onTestFinished(() => link.close())
      url.port = String(link.port)
      const db = connectPostgres(url.href, { maxConnections: 1 })
      const { promise: held, resolve: release } = Promise.withResolvers<void>()
      const holding = db.connection().execute(async (only) => {
        await sql`select 1`.execute(only)
        await held
        await sql`select pg_terminate_backend(pg_backend_pid())`.execute(only)
      })
      await sleep(100)
      // Waits for the only connection, for three seconds at most.
      const waiting = sql`select 1`.execute(db)
      await sleep(2_500)
      // A new connection and its check take longer than what is left of them.
      link.delay(400)
      release()
      await expect(holding).rejects.toThrow()
      await Promise.allSettled([waiting])
      await sleep(1_000)
      link.heal()
      expect((await sql`select 1 as one`.execute(db)).rows).toEqual([{ one: 1 }])
      await db.destroy()
    },
  )

  test('that cannot be reached is reported as unavailable', async () => {
    const proxy = await proxyDatabase(await server.createDatabase())
    proxy.cut()
    try {
      await expect(openPostgres(proxy.url)).rejects.toThrow(StoreUnavailable)
    } finally {
      await proxy.close()
    }
  })
})
