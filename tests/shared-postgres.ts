import { openPostgres } from '../src/storage/postgres/open-postgres.ts'
import { startPostgres, type TestPostgres } from './postgres.ts'

/** The server that all test files of a worker share. */
export interface SharedPostgres extends Pick<TestPostgres, 'createDatabase'> {
  /** Creates a database with the current schema and returns its URL. It is a copy: migrating takes several times as long. */
  createMigratedDatabase(): Promise<string>
}

const servers = new Map<boolean, Promise<SharedPostgres>>()

/**
 * The first caller in a worker starts the server, and the end of the worker stops it. `durable`: it writes to disk as in
 * production.
 */
export function sharedPostgres({ durable = false } = {}): Promise<SharedPostgres> {
  const server = servers.get(durable) ?? start(durable)
  servers.set(durable, server)
  return server
}

async function start(durable: boolean): Promise<SharedPostgres> {
  const server = await startPostgres({ durable })
  server.stopAtExit()
  let template: Promise<string> | undefined
  const createTemplate = async (): Promise<string> => {
    const url = await server.createDatabase()
    await (await openPostgres(url, { maxConnections: 1 })).destroy()
    return new URL(url).pathname.slice(1)
  }
  return {
    createDatabase: (options) => server.createDatabase(options),
    createMigratedDatabase: async () =>
      server.createDatabase(`template ${await (template ??= createTemplate())} strategy file_copy`),
  }
}
