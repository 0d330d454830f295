import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../src/runtime/free-port.ts'
import { ordinaryUser, waitUntilReady } from './postgres.ts'

const serverConnections = 3

/** PgBouncer in transaction mode in front of one database. */
export interface TestPgBouncer {
  /** The URL of the database through PgBouncer. */
  readonly url: string
  stop(): Promise<void>
}

function findPgBouncer(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(':')
  return [...folders, '/usr/sbin'].map((folder) => join(folder, 'pgbouncer')).find((path) => existsSync(path))
}

/** Whether suites with PgBouncer can run. Where they cannot it says so loudly. */
export function hasPgBouncer(suite: string): boolean {
  if (findPgBouncer() !== undefined) return true
  process.stderr.write(`\nSKIPPED: ${suite}, because no PgBouncer was found\n\n`)
  return false
}

/** Starts PgBouncer for the database at `target`, with fewer connections to it than one node opens. */
export async function startPgBouncer(target: string): Promise<TestPgBouncer> {
  const program = findPgBouncer()
  if (program === undefined) throw new Error('no PgBouncer was found')
  const { hostname, port, username, pathname } = new URL(target)
  const folder = mkdtempSync(join(tmpdir(), 'svc-router-pgbouncer-'))
  const owner = ordinaryUser()
  const listenPort = await freePort()
  const users = join(folder, 'users.txt')
  const config = join(folder, 'pgbouncer.ini')
  writeFileSync(users, `"${username}" ""\n`)
  writeFileSync(
    config,
    `[databases]
* = host=${hostname} port=${port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
pool_mode = transaction
default_pool_size = ${serverConnections}
max_client_conn = 200
`,
  )
  for (const path of [folder, users, config]) if (owner !== undefined) chownSync(path, owner.uid, owner.gid)
  const child: ChildProcess = spawn(program, [config], { ...owner, stdio: 'ignore' })
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    }
    rmSync(folder, { recursive: true, force: true })
  }
  const url = `postgres://${username}@127.0.0.1:${listenPort}${pathname}`
  try {
    await waitUntilReady(url, child)
    return { url, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
