import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../src/runtime/free-port.ts'
import type { Migration } from '../../src/storage/migrations/migration.ts'
import { migrations } from '../../src/storage/migrations/steps.ts'
import { connectPostgres } from '../../src/storage/postgres/open-postgres.ts'
import { hasPostgres, startPostgres, type TestPostgres } from '../postgres.ts'
import {
  type Balancer,
  type RollingOptions,
  type RollingReport,
  runRollingRestarts,
} from '../processes/rolling-restarts.ts'
import { startTcpBalancer } from '../processes/tcp-balancer.ts'

const limitMs = 90 * 60_000
const repository = join(import.meta.dirname, '..', '..')
/** The sources of one commit. */
const maxArchiveBytes = 256 * 1024 ** 2
const haproxy = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin']
  .map((folder) => join(folder, 'haproxy'))
  .find((path) => existsSync(path))
if (haproxy === undefined) process.stderr.write('\nSKIPPED: 100 restarts behind HAProxy, because it was not found\n\n')
const earlier = hasPostgres('an upgrade from an earlier commit') ? findEarlierCommit() : undefined

describe.runIf(hasPostgres('rolling restarts'))('rolling restarts of nodes on PostgreSQL', () => {
  let server: TestPostgres
  let folder: string

  beforeAll(async () => {
    server = await startPostgres({ durable: true })
    folder = mkdtempSync(join(tmpdir(), 'svc-router-rolling-'))
  })
  afterAll(async () => {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  async function restart(options: Omit<RollingOptions, 'db' | 'databaseUrl'>): Promise<RollingReport> {
    const databaseUrl = await server.createDatabase()
    const db = connectPostgres(databaseUrl, { maxConnections: 1 })
    try {
      const report = await runRollingRestarts({ ...options, db, databaseUrl })
      console.log(JSON.stringify({ ...report, failed: report.failed.slice(0, 10), failures: report.failed.length }))
      return report
    } finally {
      await db.destroy()
    }
  }

  function expectNoneFailed(report: RollingReport, restarts: number): void {
    const { complete } = report
    const none = { failed: [], exits: [], wrongRecords: [] }
    expect(report).toEqual({ restarts, complete, ...none, records: complete, used: complete })
  }

  test.runIf(haproxy !== undefined)(
    'in 100 restarts behind HAProxy no stream of 200 fails, and each is charged once',
    async () => {
      const startBalancer = (ports: readonly number[]): Promise<Balancer> => startHaProxy(folder, ports)
      const options = { startBalancer, nodes: 3, restarts: 100, streams: 200, streamMs: 1_500, drainDelayMs: 2_000 }
      expectNoneFailed(await restart(options), 100)
    },
    limitMs,
  )

  test(
    'an upgrade to a version with one more migration, and back again, fails no stream',
    async () => {
      const next = join(folder, 'next')
      copyWithMigration(next)
      // Two nodes: both upgraded, both downgraded, twice.
      const programOf = (number: number): string => ([0, 3].includes(number % 4) ? repository : next)
      const options = { startBalancer: startTcpBalancer, nodes: 2, restarts: 8, streams: 30, streamMs: 700 }
      expectNoneFailed(await restart({ ...options, programOf }), 8)
    },
    limitMs,
  )

  test.runIf(earlier !== undefined)(
    'an upgrade from the commit before the newest migration, and back again, fails no stream',
    async () => {
      const previous = join(folder, 'previous')
      extractCommit(earlier!, previous)
      // Two nodes: both upgraded, both downgraded, twice.
      const programOf = (number: number): string => ([0, 3].includes(number % 4) ? previous : repository)
      const options = { startBalancer: startTcpBalancer, nodes: 2, restarts: 8, streams: 30, streamMs: 700 }
      expectNoneFailed(await restart({ ...options, programOf }), 8)
    },
    limitMs,
  )
})

function git(...args: readonly string[]): { readonly status: number | null; readonly stdout: Buffer } {
  return spawnSync('git', ['-C', repository, ...args], { maxBuffer: maxArchiveBytes })
}

/**
 * The last commit without the newest migration; undefined, with a notice, if that version does not work with the newest
 * schema, or the history does not contain it.
 */
function findEarlierCommit(): string | undefined {
  const [before, newest] = migrations.slice(-2) as [Migration, Migration]
  const skip = (reason: string): undefined =>
    void process.stderr.write(`\nSKIPPED: an upgrade from an earlier commit, because ${reason}\n\n`)
  if (newest.worksWith === undefined || newest.worksWith > before.name)
    return skip(`no earlier version works with the migration ${newest.name}`)
  const added = git('log', '--format=%H', '-S', `'${newest.name}'`, '--', 'src/storage/migrations')
  const [first] = added.stdout.toString().trim().split('\n').slice(-1)
  // A migration that is not committed yet is in no commit.
  const { status, stdout } = git('rev-parse', '--verify', '--quiet', first === '' ? 'HEAD' : `${first}^`)
  return added.status === 0 && status === 0 ? stdout.toString().trim() : skip('the git history does not contain it')
}

/** The program as of a commit, with this version's packages. */
function extractCommit(commit: string, target: string): void {
  const { status, stdout } = git('archive', '--format=tar', commit, 'src', 'bin', 'docs', 'package.json')
  expect(status).toBe(0)
  mkdirSync(target)
  expect(spawnSync('tar', ['-x', '-C', target], { input: stdout })).toMatchObject({ status: 0 })
  symlinkSync(join(repository, 'node_modules'), join(target, 'node_modules'))
}

/** This program with a migration that the current version works with. */
function copyWithMigration(folder: string): void {
  for (const name of ['src', 'bin', 'docs', 'package.json'])
    cpSync(join(repository, name), join(folder, name), { recursive: true })
  symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'))
  const file = join(folder, 'src', 'storage', 'migrations', 'steps.ts')
  const text = readFileSync(file, 'utf8')
  const end = text.lastIndexOf('\n]')
  const step = `  { name: '999-next', statements: ['alter table requests add column of_next text'], worksWith: '${migrations.at(-1)!.name}' },`
  writeFileSync(file, `${text.slice(0, end)}\n${step}${text.slice(end)}`)
}

async function startHaProxy(folder: string, nodePorts: readonly number[]): Promise<Balancer> {
  const port = await freePort()
  const file = join(folder, 'haproxy.cfg')
  const checkMs = 200
  writeFileSync(
    file,
    `global
  maxconn 2000
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  timeout check 5s
  option redispatch
  retries 3
listen api
  bind 127.0.0.1:${port}
  balance roundrobin
  option httpchk GET /ready
  default-server check inter ${checkMs}ms fall 2 rise 1
${nodePorts.map((nodePort) => `  server node-${nodePort} 127.0.0.1:${nodePort}`).join('\n')}
`,
  )
  const child: ChildProcess = spawn(haproxy!, ['-db', '-f', file], { stdio: 'ignore' })
  // Its servers count as ready until the first checks.
  await sleep(3 * checkMs)
  return {
    port,
    noticeMs: 4 * checkMs,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    },
  }
}
