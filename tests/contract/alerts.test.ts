import type { Kysely } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { createStore, type Store } from '../../src/storage/store.ts'
import { someRecord } from '../audit-record.ts'
import { enginesFor } from './engines.ts'

const claim = { channel: 'operator', leaseMs: 120_000, limit: 10, except: [] } as const
const end = { state: 'waiting', result: '500', dueAtMs: 5_000 } as const

describe.each(enginesFor('alerts'))('alerts on %s', (_, engine) => {
  let db: Kysely<Tables>
  let store: Store
  let open: () => Promise<Kysely<Tables>>
  beforeAll(() => engine.start())
  afterAll(() => engine.stop())
  beforeEach(async () => {
    open = await engine.fresh()
    db = await open()
    store = createStore(db)
    for (const id of ['acc_1', 'acc_2'])
      await store.addAccount({ id, name: id, planId: 'free', suspended: false, createdAtMs: 1 }, someRecord())
    return () => store.close()
  })

  /** Adds an alert with one message. */
  function add(event: string, { accountId = 'acc_1', atMs = 1_000, from = store } = {}): Promise<boolean> {
    const delivery = {
      id: `adl_${event}`,
      eventId: event,
      accountId,
      channel: 'operator',
      target: '',
      body: event,
    } as const
    return from.addBudgetAlert({ budgetId: event, windowMs: 1, thresholds: [50, 80], accountId, atMs }, [
      { ...delivery, atMs },
    ])
  }

  test('of several nodes, one adds an alert with its messages', async () => {
    const others = [createStore(await open()), createStore(await open())]
    const added = await Promise.all([store, ...others].map((from) => add('one', { from })))
    expect(added.filter(Boolean)).toHaveLength(1)
    expect(await db.selectFrom('alert_deliveries').selectAll().execute()).toHaveLength(1)
    expect(await store.hasBudgetAlert('one', 1, 80)).toBe(true)
    expect(await store.hasBudgetAlert('one', 1, 50)).toBe(true)
    expect(await store.hasBudgetAlert('one', 1, 100)).toBe(false)
    for (const other of others) await other.close()
  })

  test('nothing is added for an account that was deleted', async () => {
    expect(await add('one', { accountId: 'acc_9' })).toBe(false)
    expect(await store.hasBudgetAlert('one', 1, 80)).toBe(false)
  })

  test('of several nodes, one claims a message; others get it when the lease has ended', async () => {
    await add('one')
    const other = createStore(await open())
    const claims = await Promise.all([store, other].map((from) => from.claimDeliveries({ ...claim, nowMs: 2_000 })))
    expect(claims.flat()).toMatchObject([{ id: 'adl_one', eventId: 'one', body: 'one', attempt: 1 }])
    expect(await other.claimDeliveries({ ...claim, nowMs: 121_999 })).toEqual([])
    expect(await other.claimDeliveries({ ...claim, nowMs: 122_000 })).toMatchObject([{ id: 'adl_one', attempt: 2 }])
    await other.close()
  })

  test('a process whose lease has ended cannot confirm an attempt that another one repeats', async () => {
    await add('one')
    const [first] = await store.claimDeliveries({ ...claim, nowMs: 2_000 })
    const [second] = await store.claimDeliveries({ ...claim, nowMs: 200_000 })
    await store.endAttempt(first!, { ...end, state: 'delivered', dueAtMs: null, nowMs: 200_001 })
    expect(await db.selectFrom('alert_deliveries').select('attempts').execute()).toEqual([{ attempts: 2 }])
    await store.endAttempt(second!, { ...end, state: 'delivered', dueAtMs: null, nowMs: 200_002 })
    expect(await db.selectFrom('alert_deliveries').selectAll().execute()).toEqual([])
  })

  test('a message is due at once, even if the clock of the node that adds it is an hour ahead', async () => {
    await add('one', { atMs: 3_600_000 + 1_000 })
    expect(await store.claimDeliveries({ ...claim, nowMs: 1_000 })).toHaveLength(1)
  })

  test('a claim has one message of each account, except of those that are busy, the oldest first', async () => {
    await add('a1', { atMs: 1_001 })
    await add('a2', { atMs: 1_002 })
    await add('b1', { atMs: 1_000, accountId: 'acc_2' })
    const ids = async (more: object) =>
      (await store.claimDeliveries({ ...claim, nowMs: 2_000, ...more })).map(({ eventId }) => eventId)
    expect(await ids({ except: ['acc_2'], limit: 0 })).toEqual([])
    expect(await ids({ except: ['acc_2', 'acc_1'] })).toEqual([])
    expect(await ids({ except: ['acc_1'] })).toEqual(['b1'])
    expect(await ids({})).toEqual(['a1'])
    expect(await ids({ channel: 'email' })).toEqual([])
  })

  test('when an attempt ends, what else its account has waiting comes after the others', async () => {
    await add('a1', { atMs: 1_000 })
    await add('a2', { atMs: 1_001 })
    await add('b1', { atMs: 1_500, accountId: 'acc_2' })
    const [first] = await store.claimDeliveries({ ...claim, nowMs: 2_000, limit: 1 })
    expect(first!.eventId).toBe('a1')
    await store.endAttempt(first!, { ...end, nowMs: 2_001, dueAtMs: 9_000 })
    const next = await store.claimDeliveries({ ...claim, nowMs: 3_000 })
    expect(next.map(({ eventId }) => eventId)).toEqual(['b1', 'a2'])
  })

  test('a version of svc-router that does not know messages deletes them with their account', async () => {
    await add('one')
    await db.deleteFrom('accounts').where('id', '=', 'acc_1').execute()
    expect(await db.selectFrom('alert_deliveries').selectAll().execute()).toEqual([])
  })

  describe('webhooks', () => {
    const secrets = { sealedSecret: 'new', sealedPrevious: null, previousUntilMs: null }
    const webhook = (id: string, accountId = 'acc_1') => ({
      ...secrets,
      id,
      accountId,
      url: `https://example.com/${id}`,
      createdAtMs: 1,
    })
    const message = (n: number, target = 'whk_1', accountId = 'acc_1') => ({
      id: `adl_${String(n).padStart(4, '0')}`,
      eventId: `evt_${n}`,
      accountId,
      channel: 'webhook' as const,
      target,
      body: '{}',
      atMs: 1_000,
    })

    test('are added up to a limit, rotated, and removed with their messages, for their own account only', async () => {
      expect(await store.addWebhook(webhook('whk_1'), 2, someRecord())).toBe(true)
      expect(await store.addWebhook(webhook('whk_2'), 2, someRecord())).toBe(true)
      expect(await store.addWebhook(webhook('whk_3'), 2, someRecord())).toBe(false)
      expect(await store.addWebhook(webhook('whk_4', 'acc_9'), 2, someRecord())).toBe(false)
      const rotated = { ...webhook('whk_1'), sealedSecret: 'newer', sealedPrevious: 'new', previousUntilMs: 9 }
      expect(await store.rotateWebhook({ ...rotated, accountId: 'acc_2' }, someRecord())).toBe(false)
      expect(await store.rotateWebhook(rotated, someRecord())).toBe(true)
      expect(await store.listWebhooks('acc_1')).toEqual([rotated, webhook('whk_2')])
      expect(await store.addWebhookDelivery(message(1, 'whk_1', 'acc_2'))).toBe(false)
      expect(await store.addWebhookDelivery(message(1))).toBe(true)
      expect(await store.removeWebhook('acc_2', 'whk_1', someRecord())).toBe(false)
      expect(await store.removeWebhook('acc_1', 'whk_1', someRecord())).toBe(true)
      expect(await store.listWebhookDeliveries('acc_1', undefined, 9)).toEqual([])
      await db.deleteFrom('accounts').where('id', '=', 'acc_1').execute()
      expect(await store.listWebhooks('acc_1')).toEqual([])
    })

    test('have at most 100 messages waiting, and the last 100 others stored', async () => {
      await store.addWebhook(webhook('whk_1'), 2, someRecord())
      for (let n = 0; n < 100; n += 1) expect(await store.addWebhookDelivery(message(n))).toBe(true)
      expect(await store.addWebhookDelivery(message(100))).toBe(false)
      for (let n = 0; n < 105; n += 1) {
        const [claimed] = await store.claimDeliveries({ ...claim, channel: 'webhook', nowMs: 2_000 + n })
        await store.endAttempt(claimed!, { ...end, state: 'delivered', dueAtMs: null, nowMs: 2_000 + n })
        if (n < 10) expect(await store.addWebhookDelivery(message(101 + n))).toBe(true)
      }
      const kept = await store.listWebhookDeliveries('acc_1', 'whk_1', 200)
      expect(kept[0]!.id).toBe('adl_0110')
      expect(kept.filter(({ state }) => state === 'waiting')).toHaveLength(5)
      expect(kept.length).toBeLessThanOrEqual(105)
      expect(kept.some(({ id }) => id === 'adl_0000')).toBe(false)
    })

    test('only accounts with one are checked if nobody else can be told', async () => {
      const budget = { scope: 'account', subject: '', unit: 'usd', window: 'day', rolling: false, limit: 9 } as const
      for (const n of [1, 2])
        await store.putBudget(
          { ...budget, id: `bud_${n}`, accountId: `acc_${n}`, setBy: 'account', createdAtMs: 1 },
          9,
          someRecord(),
        )
      await store.addWebhook(webhook('whk_2', 'acc_2'), 2, someRecord())
      expect(await store.listBudgetedAccounts('', 9, false)).toEqual(['acc_1', 'acc_2'])
      expect(await store.listBudgetedAccounts('', 9, true)).toEqual(['acc_2'])
    })
  })
})
