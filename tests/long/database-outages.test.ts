import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { afterEach, describe, expect, test } from 'vitest'
import type { Plan } from '../../src/domain/plans.ts'
import { seededRandom } from '../../src/gateway/fusion/engine/seeded-random.ts'
import { startSimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { connectPostgres } from '../../src/storage/postgres/open-postgres.ts'
import { Callers } from '../cluster/callers.ts'
import type { Seen } from '../cluster/clients.ts'
import { signalTree } from '../cluster/daemon.ts'
import { waitFor } from '../cluster/patroni.ts'
import { findViolations, readRecords, undeliveredCharged } from '../cluster/records.ts'
import { type DatabaseProxy, proxyDatabase } from '../database-proxy.ts'
import { ServiceProcess } from '../faults/service-process.ts'
import { hasPostgres, ordinaryUser, type PostgresOptions, startPostgres, type TestPostgres } from '../postgres.ts'

const clients = 100
const calmMs = 4_000
/** How long a request may wait during an outage, and how soon the service works after it (contract 36.5). */
const answeredWithinMs = 5_500
const recoveredWithinMs = 5_000
/** All connections of a node: 4 of the ledger, 10 for everything else. */
const nodeConnections = 14
/** In the first second: a lookup for each client's key, and batches of admissions and outcomes. */
const statementsInFirstSecond = clients * 4
/** Connections that a node may try per second while the database refuses them. */
const triesPerSecond = 30
const settledLimitMs = 90_000
const testLimitMs = 240_000
const pepper = 'the pepper of the node of this test'
const plan: Plan = {
  id: 'max',
  name: 'Max',
  requestsPerMinute: 100_000,
  requestsPerMonth: 1_000_000,
  premium: true,
}

interface Parts {
  readonly server: TestPostgres
  readonly link: DatabaseProxy
  /** Runs a statement as an administrator. */
  readonly run: (statement: string) => Promise<void>
}

interface Outage {
  readonly lastsMs: number
  readonly begin: (parts: Parts) => void | Promise<void>
  readonly end: (parts: Parts) => void | Promise<void>
}

const outages: Record<string, Outage> = {
  stopped: { lastsMs: 10_000, begin: ({ server }) => server.halt(), end: ({ server }) => server.start() },
  'paused for 20 s': {
    lastsMs: 20_000,
    begin: ({ server }) => void signalTree(server.pid, 'SIGSTOP'),
    end: ({ server }) => void signalTree(server.pid, 'SIGCONT'),
  },
  'each answer 30 s late': {
    lastsMs: 40_000,
    begin: ({ link }) => link.delay(30_000),
    end: ({ link }) => link.heal(),
  },
  'read-only': {
    lastsMs: 10_000,
    begin: ({ run }) => setReadOnly(run, 'on'),
    end: ({ run }) => setReadOnly(run, 'off'),
  },
}

/** Uses up the space that is reserved for the write-ahead log, until PostgreSQL ends. */
async function useUpSegments(run: Parts['run']): Promise<void> {
  try {
    for (let tried = 0; tried < mostSegments; tried++) await run(nextSegment)
  } catch {
    // It has ended.
  }
}

async function setReadOnly(run: Parts['run'], value: 'on' | 'off'): Promise<void> {
  await run(`alter system set default_transaction_read_only = ${value}`)
  await run('select pg_reload_conf()')
}

describe.runIf(hasPostgres('long outages of the database'))('the database of a node that serves 100 clients', () => {
  const cleanUps: (() => unknown)[] = []
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp()
  })

  /** Runs clients before, during, and after an outage, and returns what they saw and what the node did. */
  async function drill({ lastsMs, begin, end }: Outage, options: PostgresOptions = {}) {
    const server = await startPostgres({ durable: true, ...options })
    cleanUps.push(() => server.stop())
    const url = await server.createDatabase()
    const link = await proxyDatabase(url)
    cleanUps.push(() => link.close())
    const provider = await startSimulatedProvider({ name: 'alpha' })
    cleanUps.push(() => provider.close())
    const folder = mkdtempSync(join(tmpdir(), 'svc-router-outage-'))
    cleanUps.push(() => rmSync(folder, { recursive: true, force: true }))
    const max = { name: 'Max', requests_per_minute: plan.requestsPerMinute, requests_per_month: plan.requestsPerMonth }
    const settings = {
      database: { url_env: 'DATABASE_URL' },
      plans: { max: { ...max, premium: true } },
      backends: { alpha: { provider: 'alpha', model: 'simulated' } },
    }
    const secrets = { SVC_ROUTER_PEPPER: pepper, SVC_ROUTER_SEALING_KEY: Buffer.alloc(32, 7).toString('base64') }
    const node = new ServiceProcess(folder, [provider], settings, { DATABASE_URL: link.url, ...secrets })
    cleanUps.push(() => node.destroy())
    await node.start()
    const db = connectPostgres(url, { maxConnections: 2 })
    cleanUps.push(() => db.destroy())
    const callers = new Callers(db, pepper, seededRandom(1))
    await callers.add({ plan, accounts: clients, clientsEach: 1, thinkMs: 300 })

    const parts = { server, link, run: (statement: string) => runStatement(url, statement) }
    const over = new AbortController()
    const asking = callers.run(node.port, over.signal)
    await sleep(calmMs)
    await begin(parts)
    const [beganMs, triedBefore] = [Date.now(), link.tried]
    await sleep(lastsMs)
    const triesInOutage = (link.tried - triedBefore) / ((Date.now() - beganMs) / 1_000)
    const during = callers.seen.filter(({ sentMs }) => sentMs > beganMs + 200)
    await end(parts)
    const [endedMs, tries, messages] = [Date.now(), link.tried, link.messages]
    await sleep(1_000)
    const first = { connections: link.tried - tries, statements: link.messages - messages }
    await sleep(recoveredWithinMs)
    over.abort()
    await asking
    const isSettled = async (): Promise<boolean> =>
      (await db.selectFrom('requests').select('id').where('node_id', 'is not', null).execute()).length === 0
    await waitFor('every request has ended', isSettled, settledLimitMs)
    const records = await readRecords(db)
    const firstOk = Math.min(
      ...callers.seen.filter((each) => each.status === 200 && each.gotMs > endedMs).map((each) => each.gotMs),
    )
    return {
      answers: describeAnswers(during),
      longestMs: Math.max(...during.map(({ sentMs, gotMs }) => gotMs - sentMs)),
      triesInOutage,
      recoveredMs: firstOk - endedMs,
      first,
      during,
      late: callers.seen.filter(({ sentMs, status }) => sentMs > endedMs + recoveredWithinMs && status !== 200),
      violations: findViolations(records, callers),
      undelivered: undeliveredCharged(records, callers.seen),
    }
  }

  function report(name: string, result: Awaited<ReturnType<typeof drill>>): void {
    const { answers, longestMs, triesInOutage, recoveredMs, first } = result
    console.log(JSON.stringify({ name, answers, longestMs, triesInOutage, recoveredMs, first }))
    // Keys are never rejected, whatever happens to the database.
    const statuses = new Set(result.during.map(({ status }) => status))
    expect(statuses).not.toContain(401)
    expect(statuses).not.toContain(500)
    expect(longestMs).toBeLessThan(answeredWithinMs)
    expect(recoveredMs).toBeLessThan(recoveredWithinMs)
    expect(result.late).toEqual([])
    expect(triesInOutage).toBeLessThan(triesPerSecond)
    expect(first.connections).toBeLessThanOrEqual(nodeConnections)
    expect(first.statements).toBeLessThan(statementsInFirstSecond)
    for (const [promise, found] of Object.entries(result.violations)) expect(found, promise).toEqual([])
    expect(result.undelivered).toEqual([])
  }

  test.each(Object.entries(outages))(
    'is %s: callers get a 503 in time, and the service recovers within 5 s without a stampede',
    { timeout: testLimitMs },
    async (name, outage) => {
      const result = await drill(outage)
      report(name, result)
      expect(Object.keys(result.answers).some((answer) => answer.startsWith('503 '))).toBe(true)
    },
  )

  test.runIf(canMount()).each(['data', 'write-ahead log'] as const)(
    'has a full disk for its %s: callers get a 503, and the service recovers within 5 s of the database',
    { timeout: testLimitMs },
    async (what) => {
      const disk = mountSmallDisk(cleanUps)
      const place =
        what === 'data' ? { dataFolder: disk.folder, walFolder: ownFolder(cleanUps) } : { walFolder: disk.folder }
      const outage: Outage = {
        lastsMs: 10_000,
        begin: async ({ run }) => {
          disk.fill()
          if (what === 'write-ahead log') await useUpSegments(run)
        },
        end: async ({ server, run }) => {
          disk.empty()
          // PostgreSQL ends when it cannot write its log; its supervisor starts it again.
          await run('select 1').catch(() => server.halt().then(() => server.start()))
        },
      }
      const result = await drill(outage, place)
      report(`disk full: ${what}`, result)
      expect(Object.keys(result.answers).some((answer) => answer.startsWith('503 '))).toBe(true)
    },
  )
})

async function runStatement(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('set default_transaction_read_only = off')
    await client.query(statement)
  } finally {
    await client.end()
  }
}

/** How often callers got each status, code, and `Retry-After`. */
function describeAnswers(seen: readonly Seen[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status, code, retryAfter } of seen) {
    const name = `${status} ${code} ${retryAfter > 0 ? `Retry-After: ${retryAfter}` : ''}`.trim()
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

const diskMegabytes = 192
const mostSegments = 20
const nextSegment = "select pg_logical_emit_message(false, 'drill', 'next'), pg_switch_wal()"

interface SmallDisk {
  readonly folder: string
  fill(): void
  empty(): void
}

function ownFolder(cleanUps: (() => unknown)[]): string {
  const parent = mkdtempSync(join(tmpdir(), 'svc-router-disk-'))
  chmodSync(parent, 0o711)
  const folder = join(parent, 'data')
  mkdirSync(folder)
  const owner = ordinaryUser()
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
  cleanUps.push(() => rmSync(parent, { recursive: true, force: true }))
  return folder
}

/** A file system in memory that can be filled. */
function mountSmallDisk(cleanUps: (() => unknown)[]): SmallDisk {
  const folder = ownFolder(cleanUps)
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${diskMegabytes}m,mode=700`, 'tmpfs', folder])
  cleanUps.push(() => execFileSync('umount', [folder]))
  const owner = ordinaryUser()
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid)
  // The server accepts only its own files in an empty folder, so the filler comes later.
  const filler = join(folder, 'filler')
  return {
    folder,
    fill() {
      const { bavail, bsize } = statfsSync(folder)
      writeFileSync(filler, Buffer.alloc(bavail * bsize))
    },
    empty: () => rmSync(filler),
  }
}

/** Whether this process may mount file systems. If not, says so. */
function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'svc-router-mount-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder], { stdio: 'pipe' })
    execFileSync('umount', [folder])
    return true
  } catch {
    process.stderr.write('\nSKIPPED: full disks of the database, because this process may not mount file systems\n\n')
    return false
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
