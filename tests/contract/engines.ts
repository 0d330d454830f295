import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import { openPostgres } from '../../src/storage/postgres/open-postgres.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { openSqlite } from '../../src/storage/sqlite/open-sqlite.ts'
import { placeEmptyDatabase } from '../empty-database.ts'
import { hasPostgres } from '../postgres.ts'
import { sharedPostgres } from '../shared-postgres.ts'

/** A database engine that provides fresh databases. */
export interface Engine<Fresh = OpenAgain> {
  start(): Promise<void>
  stop(): Promise<void>
  fresh(): Promise<Fresh>
}

/** Opens the same fresh database, any number of times. */
type OpenAgain = () => Promise<Kysely<Tables>>

/** Databases in folders of their own. */
export function sqliteEngine<Fresh>(openIn: (folder: string) => Promise<Fresh>): Engine<Fresh> {
  const folders: string[] = []
  return {
    start: async () => {},
    stop: async () => {
      for (const folder of folders) rmSync(folder, { recursive: true })
    },
    fresh: async () => {
      const folder = mkdtempSync(join(tmpdir(), 'svc-router-test-'))
      folders.push(folder)
      return openIn(folder)
    },
  }
}

/** PostgreSQL; `durable`: commits are written to disk. */
export function postgresEngine<Fresh>(openAt: (url: string) => Promise<Fresh>, durable: boolean): Engine<Fresh> {
  return {
    start: async () => void (await sharedPostgres({ durable })),
    stop: async () => {},
    fresh: async () => openAt(await (await sharedPostgres({ durable })).createMigratedDatabase()),
  }
}

/** How a suite opens a fresh database: in a folder for SQLite, at a URL for PostgreSQL. */
interface Openers<Fresh> {
  readonly openIn: (folder: string) => Promise<Fresh>
  readonly openAt: (url: string) => Promise<Fresh>
  /** Whether PostgreSQL writes commits to disk. */
  readonly durable: boolean
}

/** SQLite, and PostgreSQL if it is available, with their names. */
export function enginesWith<Fresh>(
  suite: string,
  { openIn, openAt, durable }: Openers<Fresh>,
): [string, Engine<Fresh>][] {
  const engines: [string, Engine<Fresh>][] = [['SQLite', sqliteEngine(openIn)]]
  if (hasPostgres(suite)) engines.push(['PostgreSQL', postgresEngine(openAt, durable)])
  return engines
}

/** The same, for suites that open a fresh database several times. */
export function enginesFor(suite: string): [string, Engine][] {
  const openIn = async (folder: string): Promise<OpenAgain> => {
    const dataFolder = join(folder, 'data')
    await placeEmptyDatabase(dataFolder)
    return () => openSqlite(dataFolder)
  }
  const openAt =
    async (url: string): Promise<OpenAgain> =>
    () =>
      openPostgres(url)
  return enginesWith(suite, { openIn, openAt, durable: false })
}
