import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { freePort } from '../src/runtime/free-port.ts'

const startTimeoutMs = 30_000
const stopTimeoutMs = 10_000
const distributionFolder = '/usr/lib/postgresql'

/** A temporary PostgreSQL server on 127.0.0.1. */
export interface TestPostgres {
  /** The process whose children serve the connections. */
  readonly pid: number
  /** Creates an empty database and returns its URL; `options` are appended to the statement. */
  createDatabase(options?: string): Promise<string>
  /** Exits at once, without waiting for clients, when this process exits. */
  stopAtExit(): void
  stop(): Promise<void>
}

/** The folder of a Postgres server's programs, if there is one on this machine. */
function findPostgres(): string | undefined {
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

/** Creates a cluster in a temporary folder and starts it. `durable`: it writes to disk as in production. */
export async function startPostgres({ durable = false } = {}): Promise<TestPostgres> {
  const programs = findPostgres()
  if (programs === undefined) throw new Error('no PostgreSQL server was found')
  const folder = mkdtempSync(join(tmpdir(), 'svc-router-pg-'))
  const owner = ordinaryUser()
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
  const options = { ...owner, cwd: folder, stdio: 'pipe', env: { PATH: process.env.PATH, LC_ALL: 'C' } } as const
  const data = join(folder, 'data')
  let server: ChildProcess | undefined
  try {
    execFileSync(
      join(programs, 'initdb'),
      ['-D', data, '-U', 'svc', '-A', 'trust', '-E', 'UTF8', '--no-sync', '--no-instructions'],
      options,
    )
    const port = await freePort()
    const settings = [`port=${port}`, 'listen_addresses=127.0.0.1', `unix_socket_directories=${folder}`]
    settings.push('shared_buffers=32MB', 'max_connections=60')
    if (!durable) settings.push('fsync=off')
    server = spawn(join(programs, 'postgres'), ['-D', data, ...settings.flatMap((setting) => ['-c', setting])], {
      ...options,
      stdio: 'ignore',
    })
    const urlOf = (database: string) => `postgres://svc@127.0.0.1:${port}/${database}`
    await waitUntilReady(urlOf('postgres'), server)
    let count = 0
    return {
      pid: server.pid!,
      createDatabase: async (options = '') => {
        const name = `test_${++count}`
        await runOnce(urlOf('postgres'), `create database ${name} ${options}`)
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
