import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { nodeEnvironment, nodeFlags } from '../../bin/boot.mjs'
import { type SimulatedProvider, startSimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { RawConnection, writePost } from '../faults/raw-client.ts'
import { ServiceProcess } from '../faults/service-process.ts'
import { casesOf } from '../long-run.ts'

const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')
const clients = 2
/** Between the requests of a client: more load than this only slows the backup. */
const pauseMs = 5
/** How long the backups and restores run that are killed. */
const backupMs = casesOf<readonly number[]>({ sample: [200, 400, 650], all: [150, 240, 330, 420, 510, 600, 690, 780] })
const restoreMs = casesOf<readonly number[]>({ sample: [250], all: [150, 250, 350, 450] })
/** More rows than a backup copies in no time, so that some kills hit it in the middle. */
const oldRequests = 60_000
const limitMs = 120_000

let folder: string
let provider: SimulatedProvider
let service: ServiceProcess

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-backup-'))
  provider = await startSimulatedProvider({ name: 'alpha' })
  service = new ServiceProcess(join(folder, 'service'), [provider], {
    plans: { max: { name: 'Max', requests_per_minute: 1_000_000, requests_per_month: 100_000_000, premium: true } },
    backends: { alpha: { provider: 'alpha', model: 'simulated' } },
  })
  await service.start()
})
afterEach(async () => {
  await service.destroy()
  await provider.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Runs a command as its own process, and kills it after some time if `killAfterMs` is set. */
async function run(
  args: readonly string[],
  { dataDir = service.dataDir, killAfterMs }: { readonly dataDir?: string; readonly killAfterMs?: number } = {},
): Promise<{ readonly code: number | null; readonly err: string }> {
  const config = join(service.folder, 'svc-router.yaml')
  const child = spawn(process.execPath, [...nodeFlags, main, ...args, '--data', dataDir, '--config', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: process.env['PATH'], ...nodeEnvironment },
  })
  let err = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text))
  const timer = killAfterMs === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), killAfterMs)
  const [code] = (await once(child, 'close')) as [number | null]
  clearTimeout(timer)
  return { code, err }
}

/** Sends requests until `stop` is called, which returns the IDs of complete answers in the order of their ends. */
function startLoad(): { readonly delivered: readonly string[]; stop(): Promise<void> } {
  const delivered: string[] = []
  const over = new AbortController()
  const failures: string[] = []
  const request = writePost('/chat/completions', service.key, {
    model: 'svc-router/frontier',
    messages: [{ role: 'user', content: 'hi' }],
  })
  const client = async (): Promise<void> => {
    const connection = new RawConnection(service.port)
    while (!over.signal.aborted) {
      const answer = await connection.ask(request)
      if (answer.complete && answer.status === 200) delivered.push(answer.headers['x-request-id']!)
      else failures.push(String(answer.status))
      if (connection.closed) break
      await delay(pauseMs)
    }
    connection.leave()
  }
  const all = Promise.all(Array.from({ length: clients }, client))
  return {
    delivered,
    async stop() {
      over.abort()
      await all
      expect(failures).toEqual([])
    },
  }
}

function addOldRequests(): void {
  using database = new DatabaseSync(join(service.dataDir, 'svc-router.db'), { timeout: 5_000 })
  database.exec(`with recursive n (v) as (select 1 union all select v + 1 from n where v < ${oldRequests})
    insert into requests (id, account_id, key_id, profile, format, stream, units, period_id, admitted_at_ms, state, charged)
    select 'req_0' || printf('%07d', v), 'acc_old', 'key_old', 'svc-router/frontier', 'openai-chat', 0, 1, '2020-01', v, 'done', 0
    from n`)
}

test(
  'a backup under load that is killed leaves no file; one that ends contains every answer delivered before it began',
  { timeout: limitMs },
  async () => {
    addOldRequests()
    const backups = join(folder, 'backups')
    mkdirSync(backups)
    const load = startLoad()
    let killed = 0
    for (const killAfterMs of backupMs) {
      const { code } = await run(['backup', join(backups, `${killAfterMs}.backup`)], { killAfterMs })
      if (code === null) killed += 1
      else expect(code).toBe(0)
    }
    expect(killed).toBeGreaterThan(1)
    const before = new Set(load.delivered)
    const last = join(backups, 'last.backup')
    expect(await run(['backup', last])).toMatchObject({ code: 0 })
    await load.stop()

    // Whatever has the name of a backup is a whole one.
    for (const name of readdirSync(backups).filter((name) => name.endsWith('.backup')))
      expect((await run(['restore', join(backups, name), '--check'])).code, name).toBe(0)

    await service.stop('SIGTERM')
    const restored = join(folder, 'restored', 'data')
    mkdirSync(restored, { recursive: true })
    copyFileSync(join(service.dataDir, 'secrets.json'), join(restored, 'secrets.json'))
    const args = ['restore', last, '--accept-lost-changes']
    for (const killAfterMs of restoreMs) {
      const { code } = await run(args, { dataDir: restored, killAfterMs })
      if (code === 0) break
      // Until the restore is done there is no database that could be taken for one.
      if (!existsSync(join(restored, 'svc-router.db')) && existsSync(join(restored, 'svc-router.db.restoring'))) {
        const started = await run(['start', '--port', '0'], { dataDir: restored })
        expect(started).toMatchObject({ code: 3, err: expect.stringContaining('did not succeed') as string })
      }
      await delay(10)
    }
    if (!existsSync(join(restored, 'svc-router.db')))
      expect(await run(args, { dataDir: restored })).toMatchObject({ code: 0 })
    else expect((await run(args, { dataDir: restored })).err).toContain('is not empty')

    using database = new DatabaseSync(join(restored, 'svc-router.db'), { readOnly: true })
    const rows = database.prepare(`select id, charged from requests where period_id <> '2020-01'`).all()
    const charged = new Set(rows.filter((row) => row['charged'] === 1).map((row) => String(row['id'])))
    expect(before.size).toBeGreaterThan(10)
    expect([...before].filter((id) => !charged.has(id))).toEqual([])
    const used = database.prepare('select sum(used) as used from usage').get()?.['used']
    expect(used).toBe(charged.size)
  },
)
