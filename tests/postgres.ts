import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { freePort } from '../src/runtime/free-port.ts'
import { runFolderEnv } from './run-folder.ts'

const startTimeoutMs = 30_000
const stopTimeoutMs = 10_000
const distributionFolder = '/usr/lib/postgresql'

/** A temporary PostgreSQL server on 127.0.0.1. */
export interface TestPostgres {
  /** Creates an empty database and returns its URL; `options` are appended to the statement. */
  createDatabase(options?: string): Promise<string>
  /** Exits at once, without waiting for clients, when this process exits. */
  stopAtExit(): void
  /** The URL of the database `postgres`. */
  readonly url: string
  /** The process whose children serve the connections. */
  readonly pid: number
  /** Ends as `pg_ctl stop -m fast` does, and keeps the data. */
  halt(): Promise<void>
  /** Starts again after `halt` or a crash, on the same port. */
  start(): Promise<void>
  stop(): Promise<void>
}

export interface PostgresOptions {
  /** Writes to disk as in production. */
  readonly durable?: boolean
  /** Where its data and its write-ahead log are, instead of in a temporary folder. */
  readonly dataFolder?: string
  readonly walFolder?: string
}

/** The folder of a Postgres server's programs, if there is one on this machine. */
export function findPostgres(): string | undefined {
  const folders = (process.env.PATH ?? '').split(':')
  if (existsSync(distributionFolder)) {
    const versions = readdirSync(distributionFolder).sort((a, b) => Number(b) - Number(a))
    folders.push(...versions.map((version) => join(distributionFolder, version, 'bin')))
  }
  try {
    folders.unshift(execFileSync('pg_config', ['--bindir'], { encoding: 'utf8', stdio: 'pipe' }).trim())
  } catch {
    // Not in `PATH`. The folders above are still searched.
  }
  return folders.find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')))
}

/**
 * Whether PostgreSQL suites can run. If not, prints a warning. Under CI, this is an error, because a suite that never
 * runs proves nothing.
 */
export function hasPostgres(suite: string): boolean {
  if (findPostgres() !== undefined) return true
  if (process.env.CI !== undefined) throw new Error(`no PostgreSQL was found for ${suite}`)
  process.stderr.write(`\nSKIPPED: PostgreSQL suite of ${suite}, because no PostgreSQL server was found\n\n`)
  return false
}

/** Creates a cluster and starts it. */
export function startPostgres({ durable = false, dataFolder, walFolder }: PostgresOptions = {}): Promise<TestPostgres> {
  const flags = ['-U', 'svc', '-A', 'trust', '-E', 'UTF8', '--no-sync', '--no-instructions']
  if (walFolder !== undefined) flags.push('--waldir', walFolder)
  const isCopied = dataFolder === undefined && walFolder === undefined
  return createServer('initdb', flags, { durable, dataFolder, isCopied })
}

/** Starts a replica of a server, which accepts no writes. */
export function startReplica(primary: TestPostgres): Promise<TestPostgres> {
  const { hostname, port, username } = new URL(primary.url)
  const flags = ['-h', hostname, '-p', port, '-U', username, '-R', '-X', 'stream', '-c', 'fast', '--no-sync']
  return createServer('pg_basebackup', flags, { durable: false, dataFolder: undefined, isCopied: false })
}

interface ServerOptions {
  readonly durable: boolean
  readonly dataFolder: string | undefined
  /** Whether it may be a copy of the data that the same program created earlier in this run. */
  readonly isCopied: boolean
}

/** Creates data with a program of PostgreSQL, and starts a server on it. */
async function createServer(
  program: string,
  flags: readonly string[],
  { durable, dataFolder, isCopied }: ServerOptions,
): Promise<TestPostgres> {
  const programs = findPostgres()
  if (programs === undefined) throw new Error('no PostgreSQL server was found')
  const folder = mkdtempSync(join(tmpdir(), 'svc-router-pg-'))
  const owner = ordinaryUser()
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
  const options = { ...owner, cwd: folder, stdio: 'pipe', env: { PATH: process.env.PATH, LC_ALL: 'C' } } as const
  const data = dataFolder ?? join(folder, 'data')
  let server: ChildProcess | undefined
  try {
    const create = (): void => void execFileSync(join(programs, program), ['-D', data, ...flags], options)
    const runFolder = process.env[runFolderEnv]
    if (isCopied && runFolder !== undefined) createOrCopy(data, join(runFolder, program), create)
    else create()
    const port = await freePort()
    const settings = [`port=${port}`, 'listen_addresses=127.0.0.1', `unix_socket_directories=${folder}`]
    settings.push('shared_buffers=32MB', 'max_connections=150')
    if (!durable) settings.push('fsync=off')
    const urlOf = (database: string) => `postgres://svc@127.0.0.1:${port}/${database}`
    const start = async (): Promise<void> => {
      server = spawn(join(programs, 'postgres'), ['-D', data, ...settings.flatMap((setting) => ['-c', setting])], {
        ...options,
        stdio: 'ignore',
      })
      await waitUntilReady(urlOf('postgres'), server)
    }
    await start()
    let count = 0
    return {
      url: urlOf('postgres'),
      createDatabase: async (databaseOptions = '') => {
        const name = `test_${++count}`
        await runOnce(urlOf('postgres'), `create database ${name} ${databaseOptions}`)
        return urlOf(name)
      },
      stopAtExit: () => {
        server?.unref()
        process.once('exit', () => {
          server?.kill('SIGQUIT')
          rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
        })
        // Vitest ends a worker with SIGTERM, which does not emit `exit`.
        process.once('SIGTERM', () => process.exit())
      },
      get pid() {
        return server!.pid!
      },
      halt: () => stop(server),
      start,
      stop: async () => {
        await stop(server)
        rmSync(folder, { recursive: true, force: true })
      },
    }
  } catch (error) {
    await stop(server)
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

/** Copies data, or creates it and leaves a copy for others. `initdb` takes half a second of CPU time. */
function createOrCopy(data: string, original: string, create: () => void): void {
  if (existsSync(original)) return copy(original, data)
  create()
  const own = `${original}-${process.pid}`
  copy(data, own)
  try {
    renameSync(own, original)
  } catch (error) {
    rmSync(own, { recursive: true })
    // Another process was faster.
    if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error
  }
}

/** With owners and permissions. */
function copy(from: string, to: string): void {
  execFileSync('cp', ['-a', from, to], { stdio: 'pipe' })
}

/** PostgreSQL refuses to run as root, so root starts it as another user. */
export function ordinaryUser(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  for (const name of ['postgres', 'nobody']) {
    try {
      const idOf = (kind: string) => Number(execFileSync('id', [kind, name], { encoding: 'utf8', stdio: 'pipe' }))
      return { uid: idOf('-u'), gid: idOf('-g') }
    } catch {
      continue
    }
  }
  throw new Error('PostgreSQL does not run as root, and there is no other user to run it')
}

export async function waitUntilReady(url: string, server: ChildProcess): Promise<void> {
  const giveUpAtMs = performance.now() + startTimeoutMs
  for (;;) {
    try {
      await runOnce(url, 'select 1')
      return
    } catch (error) {
      if (server.exitCode !== null || performance.now() > giveUpAtMs) throw error
      await sleep(50)
    }
  }
}

async function runOnce(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2000 })
  try {
    await client.connect()
    await client.query(statement)
  } finally {
    await client.end()
  }
}

async function stop(server: ChildProcess | undefined): Promise<void> {
  if (server === undefined || server.exitCode !== null || server.signalCode !== null) return
  const exited = new Promise((resolve) => server.once('exit', resolve))
  // On this signal, PostgreSQL exits immediately, without waiting for clients.
  server.kill('SIGINT')
  const timer = setTimeout(() => server.kill('SIGKILL'), stopTimeoutMs)
  await exited
  clearTimeout(timer)
}
