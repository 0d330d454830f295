import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Budget } from '../../../src/domain/budgets.ts'
import type { Plan } from '../../../src/domain/plans.ts'
import type { RequestOpening, RequestOutcome } from '../../../src/domain/requests.ts'
import { decideBatch } from '../../../src/storage/ledger/admission-batches.ts'
import { openPostgresLedger, type PostgresLedger } from '../../../src/storage/ledger/ledger-postgres.ts'
import { openPostgres } from '../../../src/storage/postgres/open-postgres.ts'
import type { Tables } from '../../../src/storage/schema/schema.ts'
import { DataFolderInUse } from '../../../src/storage/sqlite/data-folder-lock.ts'
import { ManualClock } from '../../gateway/manual-clock.ts'
import { hasPostgres } from '../../postgres.ts'
import { sharedPostgres, type SharedPostgres } from '../../shared-postgres.ts'
import { hasAnswer, storeAnswer } from '../stored-answer.ts'

const plan: Plan = { id: 'max', name: 'Max', requestsPerMinute: 100, requestsPerMonth: 1_000, premium: true }
const failed: RequestOutcome = { charged: 0, attempts: [], totalMs: 1 }
const answered: RequestOutcome = { charged: 1, attempts: [], totalMs: 1 }
/** How long a node may be silent before its requests are lost, and how old an unknown request must be: plus a second. */
const deadMs = 61_000
const unknownMs = 11_000

describe.runIf(hasPostgres('the ledger of a node'))('the ledger of a node', () => {
  let server: SharedPostgres
  let folders: string
  let db: Kysely<Tables>
  let clock: ManualClock
  let failures: string[]
  const ledgers: PostgresLedger[] = []

  beforeAll(async () => {
    server = await sharedPostgres()
  })
  beforeEach(async () => {
    folders = mkdtempSync(join(tmpdir(), 'svc-router-node-'))
    db = await openPostgres(await server.createMigratedDatabase())
    clock = new ManualClock()
    failures = []
  })
  afterEach(async () => {
    for (const ledger of ledgers.splice(0)) await endOf(ledger)
    await db.destroy()
    rmSync(folders, { recursive: true })
  })

  /** Closes it while its timers run. */
  async function endOf(ledger: PostgresLedger): Promise<void> {
    const closed = ledger.close()
    await until(async () => Promise.race([closed.then(() => true), sleep(5, false)]))
  }

  /** Moves a clock until something has happened in the database. */
  async function until(hasHappened: () => Promise<boolean>, moved = clock): Promise<void> {
    const giveUpAtMs = performance.now() + 10_000
    while (!(await hasHappened())) {
      if (performance.now() > giveUpAtMs) throw new Error('it has not happened')
      await moved.advance(500)
      await sleep(2)
    }
  }

  /** Resolves when a statement waits for a lock of a row. */
  async function untilSomebodyWaits(): Promise<void> {
    const waiting = sql`select 1 from pg_stat_activity
      where wait_event = 'transactionid' and datname = current_database()`
    await until(async () => (await waiting.execute(db)).rows.length > 0, new ManualClock())
  }

  async function open(name: string, own = clock): Promise<PostgresLedger> {
    const folder = join(folders, name)
    mkdirSync(folder, { recursive: true })
    const ledger = await openPostgresLedger(db, folder, own, {
      bootId: 'this boot',
      onFailing: (reason) => failures.push(reason),
    })
    ledgers.push(ledger)
    return ledger
  }

  const openingOf = (id: string): RequestOpening => {
    const facts = { accountId: 'acc_1', keyId: 'key_1', profile: 'p', format: 'f', stream: false }
    return { id, ...facts, units: 1 }
  }
  const ownerOf = (nodeId: string) => ({ nodeId, expiresMs: Date.now() + 10_000 })
  const recordOf = (id: string) =>
    db.selectFrom('requests').select(['state', 'charged', 'node_id']).where('id', '=', id).executeTakeFirstOrThrow()
  async function used(): Promise<number> {
    const { rows } = await sql<{ used: number }>`select coalesce(sum(used), 0)::bigint as used from usage`.execute(db)
    return rows[0]!.used
  }

  test('requests of a node without a heartbeat are lost and stay charged, and it can still settle them', async () => {
    const pausedClock = new ManualClock()
    const paused = await open('paused', pausedClock)
    const [first, second] = await Promise.all([
      paused.admit(openingOf('req_1'), plan),
      paused.admit(openingOf('req_2'), plan),
    ])
    await sql`update nodes set seen_at_ms = seen_at_ms - ${deadMs}`.execute(db)
    ledgers.splice(0)
    const other = await open('other')
    await until(async () => (await recordOf('req_1')).state === 'lost')
    expect(await recordOf('req_1')).toMatchObject({ state: 'lost', charged: 1 })
    expect(await used()).toBe(2)
    // The other node never refunds them: they may have been delivered.
    await clock.advance(30_000)
    expect(await used()).toBe(2)
    first.settle(answered, 'done')
    second.settle(failed, 'none')
    await until(async () => (await recordOf('req_2')).state === 'done', pausedClock)
    expect(await recordOf('req_1')).toEqual({ state: 'done', charged: 1, node_id: null })
    expect(await used()).toBe(1)
    expect(other.healthy()).toBe(true)
    await paused.close()
  })

  const budget: Budget = {
    id: 'bud_1',
    accountId: 'acc_1',
    scope: 'account',
    subject: '',
    unit: 'usd',
    window: 'day',
    rolling: true,
    limit: 1_000,
    setBy: 'account',
    createdAtMs: 0,
  }
  const none = { nanoUsd: 0, tokens: 0 }
  const base = { nanoUsd: 700, tokens: 5 }
  const claim = { budgets: [budget], base, perOutputToken: none, leastOutput: 0, mostOutput: 0 }
  const counters = () => db.selectFrom('budget_spending').select(['spent', 'held']).execute()

  test('a request is admitted that needs what an earlier one of its account still holds, but no longer needs', async () => {
    const node = await open('node')
    const first = await node.admit(openingOf('req_1'), plan, undefined, claim)
    await expect(node.admit(openingOf('req_2'), plan, undefined, claim)).rejects.toMatchObject({ code: 'budget_held' })
    first.settle(answered, 'done', { nanoUsd: 200, tokens: 1 })
    const second = node.admit(openingOf('req_3'), plan, undefined, claim)
    await clock.advance(100)
    // From here on `clock` stands still: its time limits must not end the wait for a slow database.
    await until(async () => (await counters())[0]!.spent === 200, new ManualClock())
    expect((await second).held).toBeDefined()
    expect(await counters()).toEqual([{ spent: 200, held: 700 }])
  })

  test('what a node without a heartbeat holds of budgets counts as spent, until it says what was', async () => {
    const pausedClock = new ManualClock()
    const paused = await open('paused', pausedClock)
    const admission = await paused.admit(openingOf('req_1'), plan, undefined, claim)
    expect(await counters()).toEqual([{ spent: 0, held: 700 }])
    await sql`update nodes set seen_at_ms = seen_at_ms - ${deadMs}`.execute(db)
    ledgers.splice(0)
    const other = await open('other')
    await until(async () => (await counters())[0]!.held === 0)
    expect(await counters()).toEqual([{ spent: 700, held: 0 }])
    await expect(other.admit(openingOf('req_2'), plan, undefined, claim)).rejects.toMatchObject({
      code: 'budget_exceeded',
    })
    admission.settle(answered, 'done', { nanoUsd: 40, tokens: 5 })
    await until(async () => (await counters())[0]!.spent === 40, pausedClock)
    // A node that got a refusal does not ask again for a second.
    await clock.advance(1_000)
    await other.admit(openingOf('req_3'), plan, undefined, claim)
    await paused.close()
  })

  test('a row that the database refuses fails alone: at admission, at the end, and after a crash (contract 46.19)', async () => {
    const pausedClock = new ManualClock()
    const node = await open('paused', pausedClock)
    const bad = { ...openingOf('req_1'), accountId: 'acc_2', units: 0.5 }
    const [refused, good] = await Promise.allSettled([node.admit(bad, plan), node.admit(openingOf('req_2'), plan)])
    expect(refused).toMatchObject({ status: 'rejected', reason: { code: 'record_unavailable' } })
    if (good.status !== 'fulfilled') throw good.reason
    const other = await node.admit(openingOf('req_3'), plan)
    const usage = { inputTokens: 0.5, outputTokens: 1, cachedTokens: 0, reasoningTokens: 0, source: 'counted' } as const
    good.value.settle({ ...answered, usage }, 'done')
    other.settle(answered, 'done')
    await until(
      async () => (await recordOf('req_2')).state === 'done' && (await recordOf('req_3')).state === 'done',
      pausedClock,
    )
    expect([node.healthy(), await used()]).toEqual([true, 2])
    await node.admit(openingOf('req_4'), plan)
    await node.admit(openingOf('req_5'), plan)
    await sql`update requests set holds = '[{"budgetId": "bud_1", "unit": "usd", "bucketMs": 0}]' where id = 'req_4'`.execute(
      db,
    )
    await sql`update nodes set seen_at_ms = seen_at_ms - ${deadMs}`.execute(db)
    ledgers.splice(0)
    await open('other')
    await until(async () => (await recordOf('req_4')).state === 'lost' && (await recordOf('req_5')).state === 'lost')
    await node.close()
    await open('paused')
    expect(await recordOf('req_4')).toMatchObject({ state: 'lost', charged: 0 })
  })

  test('requests of a node that is not known, as after a restore, are lost and stay charged', async () => {
    await open('node')
    const opening = openingOf('req_restored')
    await decideBatch(db, ownerOf('elsewhere'), [{ opening, plan, rate: undefined, dueMark: 1 }])
    await until(async () => (await recordOf('req_restored')).state === 'lost')
    expect(await recordOf('req_restored')).toMatchObject({ state: 'lost', charged: 1 })
    expect(await used()).toBe(1)
  })

  test('a full minute is refused for a second without the database, and then by its decision', async () => {
    const small = { ...plan, requestsPerMinute: 1 }
    const ledger = await open('node')
    const first = await ledger.admit(openingOf('req_1'), small)
    first.settle(failed, 'done')
    // The minute is by the database's clock, which does not stand still.
    const refusal = { code: 'rate_limit_exceeded', facts: { retryAfterSeconds: expect.closeTo(60, -1) as number } }
    await expect(ledger.admit(openingOf('req_2'), small)).rejects.toMatchObject(refusal)
    // Nobody is decided while this holds the lock.
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    const locked = Promise.withResolvers<void>()
    const holding = db.transaction().execute(async (transaction) => {
      await sql`select 1 from meters for update`.execute(transaction)
      locked.resolve()
      await held
    })
    await locked.promise
    try {
      await clock.advance(900)
      await expect(ledger.admit(openingOf('req_3'), small)).rejects.toMatchObject(refusal)
      expect(await ledger.signals('acc_1', small)).toMatchObject({ rateLimit: 1, rateRemaining: 0 })
      // A key with a limit of its own, and a changed plan, are the database's to decide; so is everybody after a second.
      const asked = [
        ledger.admit(openingOf('req_4'), small, { keyId: 'key_1', perMinute: 5 }),
        ledger.admit(openingOf('req_5'), { ...small, requestsPerMinute: 3 }),
      ]
      await clock.advance(100)
      asked.push(ledger.admit(openingOf('req_6'), small))
      let decided = 0
      const settled = asked.map((one) => one.catch(() => undefined).finally(() => (decided += 1)))
      await sleep(50)
      expect(decided).toBe(0)
      release()
      await Promise.all(settled)
      const codes = await Promise.allSettled(asked)
      expect(codes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected'])
    } finally {
      release()
      await holding
    }
  })

  test('an admission whose commit was not confirmed is refunded', async () => {
    const ledger = await open('node')
    const known = await ledger.admit(openingOf('req_known'), plan)
    const { node_id: nodeId } = await recordOf('req_known')
    // What the database does after the node has given up.
    await decideBatch(db, ownerOf(nodeId!), [{ opening: openingOf('req_unknown'), plan, rate: undefined, dueMark: 1 }])
    expect(await used()).toBe(2)
    await sql`update requests set admitted_at_ms = admitted_at_ms - ${unknownMs}`.execute(db)
    await until(async () => (await recordOf('req_unknown')).state === 'lost')
    expect(await recordOf('req_unknown')).toEqual({ state: 'lost', charged: 0, node_id: null })
    expect(await recordOf('req_known')).toMatchObject({ state: 'open', node_id: nodeId })
    expect(await used()).toBe(1)
    known.settle(failed, 'none')
  })

  test('an account that is deleted while a batch waits for its row is refused alone', async () => {
    const node = await open('node')
    const other = (id: string): RequestOpening => ({ ...openingOf(id), accountId: 'acc_2' })
    await Promise.all([node.admit(openingOf('req_1'), plan), node.admit(other('req_2'), plan)])
    let asked: Promise<PromiseSettledResult<unknown>[]> | undefined
    await db.transaction().execute(async (deletion) => {
      await sql`delete from meters where account_id = 'acc_1'`.execute(deletion)
      asked = Promise.allSettled([node.admit(openingOf('req_3'), plan), node.admit(other('req_4'), plan)])
      await untilSomebodyWaits()
    })
    const [refused, admitted] = await asked!
    expect(refused).toMatchObject({ status: 'rejected', reason: { code: 'record_unavailable' } })
    expect([admitted!.status, node.healthy()]).toEqual(['fulfilled', true])
  })

  test('requests of a batch with a bad row are not admitted by themselves after their callers were refused', async () => {
    const node = await open('node')
    await node.admit(openingOf('req_1'), plan)
    const bad = { ...openingOf('req_2'), units: 0.5 }
    let asked: Promise<PromiseSettledResult<unknown>[]> | undefined
    await db.transaction().execute(async (holding) => {
      await sql`select 1 from meters for update`.execute(holding)
      asked = Promise.allSettled([node.admit(bad, plan), node.admit(openingOf('req_3'), plan)])
      await untilSomebodyWaits()
      await clock.advance(3_000)
      expect((await asked).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    })
    await until(async () => node.healthy(), new ManualClock())
    expect(await db.selectFrom('requests').select('id').execute()).toEqual([{ id: 'req_1' }])
  })

  test('a batch that is decided after its node has given up admits nothing', async () => {
    await open('node')
    const late = { nodeId: 'node', expiresMs: Date.now() - 1 }
    const opening = openingOf('req_late')
    await expect(decideBatch(db, late, [{ opening, plan, rate: undefined, dueMark: 1 }])).rejects.toThrow(
      'no longer waits',
    )
    expect(await used()).toBe(0)
    expect(await db.selectFrom('requests').selectAll().execute()).toEqual([])
  })

  test('knows the time of the database, whatever the clock of its machine shows', async () => {
    const ledger = await open('node')
    expect(Math.abs(clock.nowMs() - Date.now())).toBeGreaterThan(60_000)
    expect(Math.abs(ledger.nowMs() - Date.now())).toBeLessThan(60_000)
  })

  test('a node that starts again charges what it delivered and refunds the rest', async () => {
    const ledger = await open('node')
    for (const id of ['req_delivered', 'req_waiting']) {
      const admission = await ledger.admit(openingOf(id), plan)
      await storeAnswer(db, id)
      if (id === 'req_delivered') admission.deliver()
    }
    // As after kill -9: nothing is settled, and only the lock of the folder is released.
    ledgers.splice(0)
    await endOf(ledger)
    await open('node')
    expect(await recordOf('req_delivered')).toEqual({ state: 'lost', charged: 1, node_id: null })
    expect(await recordOf('req_waiting')).toEqual({ state: 'lost', charged: 0, node_id: null })
    expect(await used()).toBe(1)
    // What is not charged cannot be read.
    expect(await hasAnswer(db, 'req_delivered')).toBe(true)
    expect(await hasAnswer(db, 'req_waiting')).toBe(false)
  })

  test('outcomes that cannot be written are reported once, although admissions succeed', async () => {
    const node = await open('node')
    const admission = await node.admit(openingOf('req_1'), plan)
    const rename = (from: string, to: string) => sql.raw(`alter function ${from} rename to ${to}`).execute(db)
    await rename('svc_router_settle_3', 'svc_router_settle_none')
    admission.settle(answered, 'done')
    await until(async () => failures.length > 0)
    for (let count = 2; count < 5; count += 1) {
      await node.admit(openingOf(`req_${count}`), plan)
      await clock.advance(5_000)
    }
    expect([failures, node.healthy()]).toEqual([['42883'], false])
    await rename('svc_router_settle_none', 'svc_router_settle_3')
    await until(async () => node.healthy())
    expect(await recordOf('req_1')).toMatchObject({ state: 'done', charged: 1 })
  })

  test('a folder belongs to one node', async () => {
    await open('node')
    await expect(open('node')).rejects.toThrow(DataFolderInUse)
  })

  test('a lowered limit rejects until enough admissions have left the minute, and says so', async () => {
    const ledger = await open('node')
    for (let count = 0; count < 5; count++) {
      const admission = await ledger.admit(openingOf(`req_${count}`), plan)
      admission.settle(answered, 'none')
    }
    // One admission every 10 s, the last one now.
    await sql`update requests set admitted_at_ms = admitted_at_ms - 10000 * (5 - number)`.execute(db)
    const lowered = { ...plan, requestsPerMinute: 2 }
    await expect(ledger.admit(openingOf('req_more'), lowered)).rejects.toMatchObject({
      code: 'rate_limit_exceeded',
      // The fourth must leave first: in 50 s.
      facts: { retryAfterSeconds: 50 },
    })
    const signals = await ledger.signals('acc_1', lowered)
    expect(signals).toMatchObject({ rateLimit: 2, rateRemaining: 0 })
  })
})
