import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import { openPostgres } from '../../src/storage/open-postgres.ts'
import { openSqlite } from '../../src/storage/open-sqlite.ts'
import type { Tables } from '../../src/storage/schema.ts'
import { hasPostgres, startPostgres, type TestPostgres } from '../postgres.ts'

/** What opens the same fresh database, as often as it is called. */
export interface Engine {
  start(): Promise<void>
  stop(): Promise<void>
  fresh(): Promise<() => Promise<Kysely<Tables>>>
}

function sqliteEngine(): Engine {
  const folders: string[] = []
  return {
    start: async () => {},
    stop: async () => {
      for (const folder of folders) rmSync(folder, { recursive: true })
    },
    fresh: async () => {
      const folder = mkdtempSync(join(tmpdir(), 'svc-router-test-'))
      folders.push(folder)
      return () => openSqlite(join(folder, 'data'))
    },
  }
}

function postgresEngine(): Engine {
  let server: TestPostgres
  return {
    start: async () => {
      server = await startPostgres()
    },
    stop: () => server.stop(),
    fresh: async () => {
      const url = await server.createDatabase()
      return () => openPostgres(url)
    },
  }
}

/** SQLite, and PostgreSQL where there is one; each with its name. */
export function enginesFor(suite: string): [string, Engine][] {
  const engines: [string, Engine][] = [['SQLite', sqliteEngine()]]
  if (hasPostgres(suite)) engines.push(['PostgreSQL', postgresEngine()])
  return engines
}
