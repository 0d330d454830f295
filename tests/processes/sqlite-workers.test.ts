import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAccount } from '../../src/accounts/accounts.ts'
import { createAdminToken } from '../../src/accounts/admin/admin-tokens.ts'
import { controlBackend } from '../../src/accounts/backends/backend-controls.ts'
import { createKey, type MintedKey, revokeKey } from '../../src/accounts/keys.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { Secret } from '../../src/runtime/secret.ts'
import { type SimulatedProvider, startSimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { openSqlite } from '../../src/storage/sqlite/open-sqlite.ts'
import { createStore, type Store } from '../../src/storage/store.ts'
import { isRunning } from '../faults/children-of.ts'
import { RawConnection, writePost } from '../faults/raw-client.ts'
import { ServiceProcess } from '../faults/service-process.ts'
import { runCrashCycles } from './crash-cycles.ts'

const limitMs = 60_000
/** `npm run test:long` runs many more. */
const crashCycles = 2
const minDelivered = 40
/** The longest time until a change holds in every worker (contract 3.11). */
const changedWithinMs = 1_000
const actor = { kind: 'cli' } as const
const pepper = 'the pepper of the workers of this test'

describe.runIf(existsSync('/proc/self/task'))('two workers on SQLite', () => {
  let folder: string
  let provider: SimulatedProvider
  /** Starting three processes costs more than any test here, so that all tests share them, in this order. */
  let service: ServiceProcess

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'svc-router-workers-'))
    provider = await startSimulatedProvider({ name: 'alpha' })
    const plan = (perMinute: number, perMonth: number) => ({
      name: 'Plan',
      requests_per_minute: perMinute,
      requests_per_month: perMonth,
      premium: true,
    })
    service = new ServiceProcess(
      folder,
      [provider],
      {
        workers: 2,
        plans: { max: plan(100_000, 1_000_000), minute: plan(400, 1_000_000), month: plan(500, 300) },
        backends: {
          alpha: { provider: 'alpha', model: 'simulated' },
          beta: { provider: 'alpha', model: 'simulated' },
        },
        profiles: {
          'svc-router/frontier': { backends: ['alpha'] },
          'test/balanced': { backends: ['alpha', 'beta'], routing: { sort: 'balanced' } },
        },
        admin_api: { enabled: true },
      },
      {
        SVC_ROUTER_PEPPER: pepper,
        SVC_ROUTER_SEALING_KEY: Buffer.alloc(32, 7).toString('base64'),
      },
    )
    await service.start()
  }, limitMs)
  afterAll(async () => {
    await service.destroy()
    await provider.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const chat = { model: 'svc-router/frontier', messages: [{ role: 'user', content: 'Hello!' }] }
  async function ask({
    key = service.key,
    path = '/chat/completions',
    body = chat,
  }: { readonly key?: string; readonly path?: string; readonly body?: object } = {}) {
    // The kernel gives each new connection to one of the workers.
    const connection = new RawConnection(service.port)
    try {
      return await connection.ask(writePost(path, key, body))
    } finally {
      connection.leave()
    }
  }

  const deps = { clock: systemClock(), random: systemRandom(), pepper: new Secret(pepper), actor } as const

  /** Changes the database as another process. */
  async function write<T>(work: (store: Store) => Promise<T>): Promise<T> {
    const db = await openSqlite(service.dataDir)
    try {
      return await work(createStore(db))
    } finally {
      await db.destroy()
    }
  }

  /** Creates an account on a plan, with a key. */
  function addAccount(planId: string): Promise<MintedKey> {
    const known = [{ id: planId, name: 'Plan', premium: true, requestsPerMinute: 1, requestsPerMonth: 1 }]
    return write(async (store) => {
      const account = await createAccount({ ...deps, store }, `on ${planId}`, planId, known)
      return createKey({ ...deps, store }, account.id, 'test')
    })
  }

  /** Changes the database as another process, and waits until every worker answers that key accordingly. */
  async function change(key: string, work: (store: Store) => Promise<unknown>, status: number): Promise<void> {
    await write(work)
    await everyWorker(status, { key })
  }

  /** Waits until every worker answers so, for at most a second. */
  async function everyWorker(status: number, asked: Parameters<typeof ask>[0]): Promise<void> {
    const changedMs = performance.now()
    // By chance, a worker gets none of 40 connections twice in 10^12 runs.
    for (let inRow = 0; inRow < 40;) {
      const isChanged = (await ask(asked)).status === status
      if (!isChanged) expect(performance.now() - changedMs).toBeLessThan(changedWithinMs)
      inRow = isChanged ? inRow + 1 : 0
    }
  }

  test(
    'the second turn of a session goes to the backend of the first one, whichever worker gets it',
    async () => {
      const turns = (session: string, count: number) => ({
        model: 'test/balanced',
        prompt_cache_key: session,
        messages: [
          { role: 'system', content: `${session} ${'Be brief. '.repeat(10_000)}` },
          ...Array.from({ length: count }, (_, index) => ({
            role: index % 2 === 0 ? 'user' : 'assistant',
            content: `${session} ${index}`,
          })),
        ],
      })
      const used = async (sessions: readonly string[], count: number) => {
        const upstreams: (string | undefined)[] = []
        for (const session of sessions)
          upstreams.push((await ask({ body: turns(session, count) })).headers['x-svc-router-upstream'])
        return upstreams
      }
      // A request waits for the table of sessions for at most 5 ms (contract 45.8): a busy machine may miss some. By chance,
      // 20 of 24 sessions stay once in 1,300 times.
      let stayed = 0
      for (let attempt = 1; attempt <= 3 && stayed < 20; attempt++) {
        const sessions = Array.from({ length: 24 }, (_, index) => `session ${attempt} ${index}`)
        const first = await used(sessions, 1)
        expect(new Set(first)).toEqual(new Set(['alpha', 'beta']))
        // Sessions are written within 250 ms.
        await sleep(700)
        const second = await used(sessions, 3)
        stayed = second.filter((upstream, index) => upstream === first[index]).length
      }
      expect(stayed).toBeGreaterThanOrEqual(20)
    },
    limitMs,
  )

  test.each([
    ['400 a minute', 'minute', 400, 429],
    ['300 a month', 'month', 300, 402],
  ])(
    'they admit exactly the limit of 1,000 simultaneous requests: %s',
    async (_, planId, admitted, refusal) => {
      const key = (await addAccount(planId)).key.reveal()
      const earlier = service.records().at(-1)?.id
      const answers = await Promise.all(Array.from({ length: 1_000 }, () => ask({ key })))
      const statuses = answers.map(({ status }) => status)
      expect(statuses.filter((status) => status === 200)).toHaveLength(admitted)
      expect(statuses.filter((status) => status === refusal)).toHaveLength(1_000 - admitted)
      const used = answers.filter(({ status }) => status === 200).map(({ headers }) => Number(headers['x-quota-used']))
      expect(Math.max(...used)).toBe(admitted)
      await expect
        .poll(() => service.records(earlier).map(({ state, charged }) => [state, charged]), { timeout: 5_000 })
        .toEqual(Array.from({ length: admitted }, () => ['done', 1]))
    },
    limitMs,
  )

  test(
    'a file that one worker applies over the admin API holds in both within a second, also while others are applied',
    async () => {
      const token = await write((store) =>
        createAdminToken({ ...deps, store }, { name: 'deploy', scope: 'write', days: 1 }),
      )
      // The kernel gives each new connection to one of the workers.
      const admin = async (path: string, body: object) => {
        const response = await fetch(`http://127.0.0.1:${service.appPort}/admin/v1${path}`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${token.secret.reveal()}`,
            'content-type': 'application/json',
            connection: 'close',
          },
          body: JSON.stringify(body),
        })
        const answer = (await response.json()) as { readonly plan?: string; readonly keys?: { readonly key: string }[] }
        return { ...answer, status: response.status }
      }
      const apply = async (name: string) => {
        const { status, keys } = await admin('/apply', {
          file: {
            version: 1,
            backends: { spare: { provider: 'alpha', model: 'simulated' } },
            profiles: { [`made/${name}`]: { backends: ['spare'] } },
            accounts: { [`account ${name}`]: { plan: 'max', keys: { ci: {} } } },
          },
        })
        return { name, status, key: keys?.[0]?.key ?? '' }
      }
      const asking = (name: string, key: string) => ({ key, body: { ...chat, model: `made/${name}` } })
      // By chance, one worker gets all of them once in 32 runs.
      for (let round = 0; round < 6; round++) {
        const { name, status, key } = await apply(`round-${round}`)
        expect(status).toBe(200)
        await everyWorker(200, asking(name, key))
      }
      // One that finds changes of others starts over, at most five times.
      const atOnce = await Promise.all(Array.from({ length: 4 }, (_, n) => apply(`at-once-${n}`)))
      const done = atOnce.filter(({ status }) => status === 200)
      expect(done.length).toBeGreaterThan(0)
      for (const { name, key } of done) await everyWorker(200, asking(name, key))
      const stored = await write((store) => store.listSettings())
      const made = stored.filter(({ kind }) => kind === 'profiles').map(({ name }) => name)
      expect(made).toHaveLength(6 + done.length)
      for (const { name, status } of atOnce)
        expect([name, made.includes(`made/${name}`)]).toEqual([name, status === 200])
      const file = { version: 1, backends: {}, profiles: {}, accounts: {} }
      const { plan } = await admin('/plan', { file, prune: true })
      expect((await admin('/apply', { file, prune: true, plan })).status).toBe(200)
      await everyWorker(404, asking('round-0', service.key))
    },
    limitMs,
  )

  test(
    'a worker that hangs does not stop the other one',
    async () => {
      const [hung] = service.workers() as [number]
      process.kill(hung, 'SIGSTOP')
      // Those that the hung one got wait for it.
      const asked = Array.from({ length: 40 }, () => ask())
      const first = await Promise.any(asked)
      expect(first.status).toBe(200)
      await sleep(500)
      process.kill(hung, 'SIGCONT')
      expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(asked.map(() => 200))
    },
    limitMs,
  )

  test(
    'when their owner dies they end at once, and the next start continues',
    async () => {
      const before = await ask()
      expect(before.status).toBe(200)
      const workers = service.workers()
      expect(workers).toHaveLength(2)
      await service.stop('SIGKILL')
      await expect.poll(() => workers.filter(isRunning), { timeout: 5_000 }).toEqual([])
      await service.start()
      expect((await ask()).headers['x-quota-used']).toBe(String(Number(before.headers['x-quota-used']) + 1))
    },
    limitMs,
  )

  test(
    'a stored answer is found, a drained backend is left out, and a revoked key is refused by both',
    async () => {
      const { key: secret, stored: revoked } = await addAccount('max')
      const key = secret.reveal()
      const first = await ask({ key, path: '/responses', body: { model: chat.model, input: 'Hello!' } })
      const stored = JSON.parse(first.body) as { id: string }
      for (let each = 0; each < 20; each++) {
        const body = { model: chat.model, input: 'And now?', previous_response_id: stored.id }
        expect((await ask({ key, path: '/responses', body })).status).toBe(200)
      }
      const drain = { step: 'drained', backend: 'alpha', reason: 'maintenance' } as const
      await change(key, (store) => controlBackend({ ...deps, store }, drain), 503)
      await change(key, (store) => revokeKey({ ...deps, store }, revoked.id), 401)
    },
    limitMs,
  )

  test('SIGTERM ends them and their owner, and every record is decided', async () => {
    expect(await service.stop('SIGTERM')).toBe(0)
    expect(service.workers()).toEqual([])
    expect(service.records().filter(({ state }) => state !== 'done')).toEqual([])
  })
})

test.runIf(existsSync('/proc/self/task')).each(['service', 'worker'] as const)(
  'after kill -9 of the %s under load with two workers, every delivered answer is counted and no undelivered one is',
  { timeout: limitMs },
  async (victim) => {
    const report = await runCrashCycles(crashCycles, { workers: 2, victim, minDelivered })
    console.log(JSON.stringify(report))
    expect(report.deliveredUncounted).toEqual([])
    expect(report.undeliveredCounted).toEqual(report.diedAtTheMark)
    expect(report.diedAtTheMark.length).toBeLessThanOrEqual(1)
    expect(report.unequalTotals).toBe(0)
    expect(report.delivered).toBeGreaterThanOrEqual(minDelivered)
    expect(report.cut).toBeGreaterThan(0)
  },
)
