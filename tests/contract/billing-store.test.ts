import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { AppliedRead, BillingStore } from '../../src/accounts/billing/ports.ts'
import type { AccountStore } from '../../src/accounts/ports.ts'
import type { Subscription, UpgradeRequest } from '../../src/domain/billing.ts'
import { createStore } from '../../src/storage/store.ts'
import { MemoryStore } from '../accounts/memory-store.ts'
import { someRecord } from '../audit-record.ts'
import { MemoryBillingStore } from '../billing/memory-billing-store.ts'
import { enginesFor } from './engines.ts'

interface Opened {
  readonly accounts: AccountStore
  readonly billing: BillingStore
  /** Increases whenever nodes must clear their caches. */
  readonly revision: () => Promise<number>
  close(): Promise<void>
}

interface Place {
  start(): Promise<void>
  stop(): Promise<void>
  open(): Promise<Opened>
}

function memory(): Place {
  return {
    start: () => Promise.resolve(),
    stop: () => Promise.resolve(),
    open: () => {
      const accounts = new MemoryStore()
      const billing = new MemoryBillingStore(accounts)
      const revision = (): Promise<number> => Promise.resolve(billing.planChanges)
      return Promise.resolve({ accounts, billing, revision, close: () => Promise.resolve() })
    },
  }
}

const places: [string, Place][] = [['memory', memory()]]
for (const [name, engine] of enginesFor('billing')) {
  places.push([
    name,
    {
      start: () => engine.start(),
      stop: () => engine.stop(),
      open: async () => {
        const store = createStore(await (await engine.fresh())())
        return {
          accounts: store,
          billing: store.billing,
          revision: () => store.revision(),
          close: () => store.close(),
        }
      },
    },
  ])
}

const subscription: Subscription = {
  id: 'sub_1',
  status: 'active',
  planId: 'pro',
  price: { currency: 'usd', minorUnits: 2000, interval: 'month', intervalCount: 1 },
  createdAtMs: 1000,
  periodEndsAtMs: 9000,
  endsAtMs: null,
  next: { planId: 'free', atMs: 9000 },
  dueSinceMs: null,
}

function readOf(read: number, changes: Partial<AppliedRead> = {}): AppliedRead {
  const fixed = { accountId: 'acc_1', subscription, grant: 'pro', planWithoutGrant: 'free', eventId: undefined }
  return { ...fixed, read, nowMs: 5000, checkAtMs: 6000, ...changes }
}

function requestOf(id: string, changes: Partial<UpgradeRequest> = {}): UpgradeRequest {
  return { id, accountId: 'acc_1', planId: 'pro', state: 'requested', createdAtMs: 100, decidedAtMs: null, ...changes }
}

describe.each(places)('billing on %s', (_, place) => {
  let opened: Opened
  let store: BillingStore

  beforeAll(() => place.start())
  afterAll(() => place.stop())
  beforeEach(async () => {
    opened = await place.open()
    store = opened.billing
    for (const id of ['acc_1', 'acc_2'])
      await opened.accounts.addAccount({ id, name: id, planId: 'free', suspended: false, createdAtMs: 1 }, someRecord())
    return () => opened.close()
  })

  const planNow = async (id = 'acc_1'): Promise<string | undefined> => (await opened.accounts.findAccount(id))?.planId

  test('a customer is linked once and found by either ID', async () => {
    expect(await store.linkCustomer('acc_1', 'cus_1', 50)).toBe('cus_1')
    expect(await store.linkCustomer('acc_1', 'cus_2', 60)).toBe('cus_1')
    const record = await store.findBilling('acc_1')
    expect(record).toEqual({
      accountId: 'acc_1',
      customerId: 'cus_1',
      grantedPlanId: null,
      subscription: null,
      readAtMs: null,
      checkAtMs: 50,
      closingSinceMs: null,
    })
    expect(await store.findBillingOf('cus_1')).toEqual(record)
    expect(await store.findBillingOf('cus_2')).toBeUndefined()
    expect(await store.findBilling('acc_2')).toBeUndefined()
  })

  test('reads get increasing numbers even if many start at once', async () => {
    await store.linkCustomer('acc_1', 'cus_1', 50)
    const numbers = await Promise.all(Array.from({ length: 20 }, () => store.takeRead('acc_1')))
    expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_value, index) => index + 1))
  })

  test('a read puts the account on the plan that it grants, and an older read no longer changes anything', async () => {
    await store.linkCustomer('acc_1', 'cus_1', 50)
    const older = await store.takeRead('acc_1')
    const newer = await store.takeRead('acc_1')
    expect(await store.applyRead(readOf(newer))).toBe('changed')
    expect(await planNow()).toBe('pro')
    expect(await store.applyRead(readOf(older, { grant: null, subscription: null }))).toBe('stale')
    expect(await store.applyRead(readOf(newer, { grant: null }))).toBe('stale')
    expect(await planNow()).toBe('pro')
    expect(await store.findBilling('acc_1')).toMatchObject({ subscription, grantedPlanId: 'pro', checkAtMs: 6000 })
  })

  test('without a grant the account falls back to the plan for accounts that do not pay', async () => {
    await store.linkCustomer('acc_1', 'cus_1', 50)
    await store.applyRead(readOf(await store.takeRead('acc_1')))
    expect(await store.applyRead(readOf(await store.takeRead('acc_1'), { grant: null, subscription: null }))).toBe(
      'changed',
    )
    expect(await planNow()).toBe('free')
    expect(await planNow('acc_2')).toBe('free')
  })

  test('a plan that an operator set stays until the grant changes', async () => {
    await store.linkCustomer('acc_1', 'cus_1', 50)
    await opened.accounts.setPlan('acc_1', 'max', someRecord())
    expect(await store.applyRead(readOf(await store.takeRead('acc_1'), { grant: null }))).toBe('unchanged')
    expect(await planNow()).toBe('max')
    await store.applyRead(readOf(await store.takeRead('acc_1')))
    await opened.accounts.setPlan('acc_1', 'max', someRecord())
    expect(await store.applyRead(readOf(await store.takeRead('acc_1')))).toBe('unchanged')
    expect(await store.applyRead(readOf(await store.takeRead('acc_1'), { grant: undefined }))).toBe('unchanged')
    expect(await planNow()).toBe('max')
  })

  test('only a change of plan clears the caches of other nodes', async () => {
    await store.linkCustomer('acc_1', 'cus_1', 50)
    const before = await opened.revision()
    await store.applyRead(readOf(await store.takeRead('acc_1'), { grant: null }))
    expect(await opened.revision()).toBe(before)
    await store.applyRead(readOf(await store.takeRead('acc_1')))
    expect(await opened.revision()).toBe(before + 1)
  })

  test('of many reads applied at once, the one that started last wins', async () => {
    await store.linkCustomer('acc_1', 'cus_1', 50)
    const reads = await Promise.all(Array.from({ length: 12 }, () => store.takeRead('acc_1')))
    await Promise.all(
      reads.map((read) =>
        store.applyRead(readOf(read, { grant: read === 12 ? 'max' : read % 2 === 0 ? 'pro' : null })),
      ),
    )
    expect(await planNow()).toBe('max')
    expect((await store.findBilling('acc_1'))?.grantedPlanId).toBe('max')
  })

  test('an event is recorded with the read that it caused, even a stale one, and is deleted after its retention', async () => {
    await store.linkCustomer('acc_1', 'cus_1', 50)
    const older = await store.takeRead('acc_1')
    await store.applyRead(readOf(await store.takeRead('acc_1'), { eventId: 'evt_1' }))
    await store.applyRead(readOf(older, { eventId: 'evt_2', nowMs: 7000 }))
    await store.noteHandled('evt_3', 8000)
    await store.noteHandled('evt_3', 9000)
    expect(await Promise.all(['evt_1', 'evt_2', 'evt_3', 'evt_4'].map((id) => store.hasHandled(id)))).toEqual([
      true,
      true,
      true,
      false,
    ])
    expect(await store.deleteEventsBefore(8000, 1)).toBe(1)
    expect(await store.deleteEventsBefore(8000, 10)).toBe(1)
    expect(await store.hasHandled('evt_3')).toBe(true)
    expect(await store.hasHandled('evt_1')).toBe(false)
  })

  test('due checks are claimed once, oldest first', async () => {
    await store.linkCustomer('acc_1', 'cus_1', 500)
    await store.linkCustomer('acc_2', 'cus_2', 400)
    const ids = async (nowMs: number, limit: number): Promise<string[]> =>
      (await store.claimChecks(nowMs, nowMs + 1000, limit)).map(({ accountId }) => accountId)
    expect(await ids(399, 10)).toEqual([])
    expect(await ids(600, 1)).toEqual(['acc_2'])
    expect(await ids(600, 10)).toEqual(['acc_1'])
    expect(await ids(600, 10)).toEqual([])
    await store.scheduleCheckNow('acc_1', 700)
    await store.scheduleCheckNow('acc_1', 900)
    expect(await ids(700, 10)).toEqual(['acc_1'])
    await store.postponeCheck('acc_2', 5000)
    expect(await ids(4999, 10)).toEqual(['acc_1'])
  })

  test('an abandoned account is checked at once, and deleted when nothing is left to cancel', async () => {
    expect(await store.beginClosing('acc_1', 100)).toBe(false)
    await store.linkCustomer('acc_1', 'cus_1', 5000)
    expect(await store.beginClosing('acc_1', 100)).toBe(true)
    expect(await store.beginClosing('acc_1', 200)).toBe(true)
    expect(await store.findBilling('acc_1')).toMatchObject({ closingSinceMs: 100, checkAtMs: 200 })
    await store.removeBilling('acc_1')
    expect(await store.findBilling('acc_1')).toBeUndefined()
  })

  test('an account has one open request, and approving it changes the plan in the same transaction', async () => {
    expect(await store.addUpgradeRequest(requestOf('upg_1'), 20, someRecord())).toBe(true)
    expect(await store.addUpgradeRequest(requestOf('upg_2', { planId: 'max' }), 20, someRecord())).toBe(false)
    expect(await store.addUpgradeRequest(requestOf('upg_3', { accountId: 'acc_2' }), 20, someRecord())).toBe(true)
    expect(await store.decideUpgradeRequest('upg_1', 'approved', someRecord(200))).toBe(true)
    expect(await store.decideUpgradeRequest('upg_1', 'rejected', someRecord(300))).toBe(false)
    expect(await planNow()).toBe('pro')
    expect(await store.findUpgradeRequest('upg_1')).toEqual(requestOf('upg_1', { state: 'approved', decidedAtMs: 200 }))
    expect(await store.decideUpgradeRequest('upg_3', 'rejected', someRecord(200))).toBe(true)
    expect(await planNow('acc_2')).toBe('free')
    expect(await store.decideUpgradeRequest('upg_9', 'approved', someRecord(200))).toBe(false)
  })

  test('simultaneous requests leave one open, and simultaneous decisions leave one', async () => {
    const added = await Promise.all(
      ['a', 'b', 'c', 'd'].map((id) => store.addUpgradeRequest(requestOf(id), 20, someRecord())),
    )
    expect(added.filter(Boolean)).toHaveLength(1)
    const [open] = await store.listUpgradeRequests({ onlyOpen: true, limit: 10 })
    const decided = await Promise.all(
      (['approved', 'rejected', 'withdrawn'] as const).map((state) =>
        store.decideUpgradeRequest(open!.id, state, someRecord(5)),
      ),
    )
    expect(decided.filter(Boolean)).toHaveLength(1)
  })

  test('the request of a deleted account cannot be approved and stays open', async () => {
    await store.addUpgradeRequest(requestOf('upg_1', { accountId: 'acc_gone' }), 20, someRecord())
    expect(await store.decideUpgradeRequest('upg_1', 'approved', someRecord(200))).toBe(false)
    expect((await store.findUpgradeRequest('upg_1'))?.state).toBe('requested')
  })

  test('requests are listed newest first, and the oldest decided ones are deleted', async () => {
    for (let round = 0; round < 5; round++) {
      await store.addUpgradeRequest(requestOf(`upg_${round}`, { createdAtMs: round }), 3, someRecord())
      await store.decideUpgradeRequest(`upg_${round}`, 'withdrawn', someRecord(round))
    }
    await store.addUpgradeRequest(requestOf('upg_5', { createdAtMs: 5 }), 3, someRecord())
    await store.addUpgradeRequest(requestOf('upg_other', { accountId: 'acc_2', createdAtMs: 3 }), 3, someRecord())
    const idsOf = (requests: readonly UpgradeRequest[]): string[] => requests.map(({ id }) => id)
    expect(idsOf(await store.listUpgradeRequests({ accountId: 'acc_1', limit: 10 }))).toEqual([
      'upg_5',
      'upg_4',
      'upg_3',
      'upg_2',
    ])
    expect(idsOf(await store.listUpgradeRequests({ onlyOpen: true, limit: 10 }))).toEqual(['upg_5', 'upg_other'])
    expect(idsOf(await store.listUpgradeRequests({ limit: 1 }))).toEqual(['upg_5'])
  })
})
