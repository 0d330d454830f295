import type { Kysely } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Account } from '../../src/domain/accounts.ts'
import type { AuditEvent, AuditRecord } from '../../src/domain/audit.ts'
import type { Operator, OperatorSession } from '../../src/domain/operators.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { createStore, type Store } from '../../src/storage/store.ts'
import { enginesFor } from './engines.ts'

const operator = (id: string, more: Partial<Operator> = {}): Operator => ({
  id,
  email: `${id}@example.com`,
  role: 'admin',
  state: 'active',
  createdAtMs: 1,
  removedAtMs: null,
  ...more,
})
const session = (id: string, more: Partial<OperatorSession> = {}): OperatorSession => ({
  id,
  operatorId: 'opr_1',
  method: 'email',
  agent: 'Firefox on Linux',
  createdAtMs: 1,
  lastSeenAtMs: 1,
  expiresAtMs: 100,
  confirmedAtMs: 1,
  ...more,
})
const record = (event: AuditEvent): AuditRecord => ({ actor: { kind: 'cli' }, atMs: 1, event })
const made = (id: string): AuditRecord => record({ type: 'operator.created', operatorId: id, role: 'admin' })
const changed = record({ type: 'operator.role_changed', operatorId: 'opr_1', role: 'viewer' })
const removed = record({ type: 'operator.removed', operatorId: 'opr_1' })
const signedIn = record({ type: 'operator.signed_in', operatorId: 'opr_1' })
const steppedUp = record({ type: 'operator.stepped_up', operatorId: 'opr_1' })

describe.each(enginesFor('operators'))('operators on %s', (_, engine) => {
  let db: Kysely<Tables>
  let store: Store
  beforeAll(() => engine.start())
  afterAll(() => engine.stop())
  beforeEach(async () => {
    const open = await engine.fresh()
    db = await open()
    store = createStore(db)
    return () => store.close()
  })
  const add = (id: string, more: Partial<Operator> = {}): Promise<string> =>
    store.operators.addOperator(operator(id, more), 3, made(id))
  const written = async (): Promise<number> => (await store.auditHead()).sequence

  test('an address belongs to one operator, their number is limited, and a rejected addition appends no event', async () => {
    expect(await add('opr_1')).toBe('done')
    expect(await add('opr_2', { email: 'opr_1@example.com' })).toBe('taken')
    expect(await add('opr_2')).toBe('done')
    expect(await add('opr_3')).toBe('done')
    expect(await add('opr_4')).toBe('full')
    expect(await written()).toBe(3)
    expect(await store.operators.findOperator('opr_4')).toBeUndefined()
  })

  test('when many add the same address at once, one succeeds', async () => {
    const added = await Promise.all(
      Array.from({ length: 8 }, (_each, n) => add(`opr_${n}`, { email: 'same@example.com' })),
    )
    expect(added.filter((outcome) => outcome === 'done')).toEqual(['done'])
    expect(await written()).toBe(1)
  })

  test('the last admin remains, even if two leave at once', async () => {
    await add('opr_1')
    expect(await store.operators.setOperatorRole('opr_1', 'viewer', changed)).toBe('last_admin')
    expect(await store.operators.removeOperator('opr_1', 5, removed)).toBe('last_admin')
    await add('opr_2')
    const left = await Promise.all([
      store.operators.removeOperator('opr_1', 5, removed),
      store.operators.setOperatorRole('opr_2', 'viewer', changed),
    ])
    expect(left.toSorted()).toEqual(['done', 'last_admin'])
  })

  test('a removed operator is not found by address, has no session, and their address is free again', async () => {
    await add('opr_1')
    await add('opr_2')
    expect(await store.operators.addOperatorSession(session('ops_1'), 'digest', 9, signedIn)).toBe(true)
    expect(await store.operators.removeOperator('opr_1', 5, removed)).toBe('done')
    expect(await store.operators.findOperatorSession('digest')).toBeUndefined()
    expect(await store.operators.findOperatorByEmail('opr_1@example.com')).toBeUndefined()
    expect(await store.operators.findOperator('opr_1')).toMatchObject({ state: 'removed', removedAtMs: 5 })
    expect(await store.operators.removeOperator('opr_1', 6, removed)).toBe('unknown')
    expect(await store.operators.addOperatorSession(session('ops_2'), 'later', 9, signedIn)).toBe(false)
    expect(await add('opr_3', { email: 'opr_1@example.com' })).toBe('done')
    expect((await store.operators.listOperators(9)).map(({ id }) => id)).toEqual(['opr_2', 'opr_3', 'opr_1'])
  })

  test('a session and its confirmation are stored together with their audit event or not at all', async () => {
    await add('opr_1')
    await store.operators.addOperatorSession(session('ops_1'), 'digest', 9, signedIn)
    expect(await store.operators.confirmOperatorSession('ops_1', 50, steppedUp)).toBe(true)
    expect(await store.operators.findOperatorSession('digest')).toEqual(session('ops_1', { confirmedAtMs: 50 }))
    expect(await store.operators.confirmOperatorSession('ops_none', 50, steppedUp)).toBe(false)
    const events = await store.listAudit({ limit: 9 })
    expect(events.map(({ event }) => event.type)).toEqual([
      'operator.stepped_up',
      'operator.signed_in',
      'operator.created',
    ])
    const unwritable = { ...signedIn, event: { type: 'operator.signed_in', operatorId: 'no id' } } as AuditRecord
    await expect(store.operators.addOperatorSession(session('ops_2'), 'other', 9, unwritable)).rejects.toThrow(
      TypeError,
    )
    expect(await store.operators.findOperatorSession('other')).toBeUndefined()
    await expect(store.operators.confirmOperatorSession('ops_1', 90, unwritable)).rejects.toThrow(TypeError)
    expect((await store.operators.findOperatorSession('digest'))?.confirmedAtMs).toBe(50)
  })

  test('a session beyond the limit ends the least recently used one', async () => {
    await add('opr_1')
    for (let n = 1; n <= 3; n++)
      await store.operators.addOperatorSession(
        session(`ops_${n}`, { lastSeenAtMs: 10 - n }),
        `digest ${n}`,
        2,
        signedIn,
      )
    const found = await Promise.all([1, 2, 3].map((n) => store.operators.findOperatorSession(`digest ${n}`)))
    expect(found.map((each) => each?.id)).toEqual(['ops_1', undefined, 'ops_3'])
  })

  describe('accounts as operators search them', () => {
    const names = ['Alpha', 'beta 100%', 'alphabet', 'a_b', String.raw`back\slash`]
    beforeEach(async () => {
      for (const [n, name] of names.entries()) {
        const account: Account = { id: `acc_${n}`, name, planId: 'free', suspended: false, createdAtMs: n >> 1 }
        await store.addAccount(account, record({ type: 'account.created', accountId: account.id, planId: 'free' }))
      }
    })
    const found = async (more: Partial<Parameters<Store['searchAccounts']>[0]>): Promise<string[]> =>
      (await store.searchAccounts({ limit: 9, among: 99, ...more })).map(({ id }) => id)

    test('accounts are listed newest first, page by page', async () => {
      expect(await found({})).toEqual(['acc_4', 'acc_3', 'acc_2', 'acc_1', 'acc_0'])
      expect(await found({ limit: 2 })).toEqual(['acc_4', 'acc_3'])
      expect(await found({ limit: 2, beforeId: 'acc_3' })).toEqual(['acc_2', 'acc_1'])
      expect(await found({ beforeId: 'acc_none' })).toEqual([])
    })

    test('a search of all accounts yields to the event loop', async () => {
      for (let n = 0; n < 1_100; n += 100) {
        const rows = Array.from({ length: 100 }, (_each, at) => ({
          id: `acc_z${n + at}`,
          name: `Ünder ${n + at}`,
          plan_id: 'free',
          suspended: 0,
          created_at_ms: 10 + n + at,
        }))
        await db.insertInto('accounts').values(rows).execute()
      }
      let turns = 0
      setImmediate(() => turns++)
      expect(await found({ name: 'alpha', among: 9_000 })).toEqual(['acc_2', 'acc_0'])
      expect(turns).toBe(1)
      expect(await found({ name: 'üNDER 1099', among: 9_000 })).toEqual(['acc_z1099'])
    }, 60_000)

    test('accounts are found by part of a name, in which no character is a wildcard', async () => {
      expect(await found({ name: 'ALPHA' })).toEqual(['acc_2', 'acc_0'])
      expect(await found({ name: '%' })).toEqual(['acc_1'])
      expect(await found({ name: '_' })).toEqual(['acc_3'])
      expect(await found({ name: '\\' })).toEqual(['acc_4'])
      expect(await found({ name: "' or 1=1 --" })).toEqual([])
      expect(await found({ name: 'alpha', among: 3 })).toEqual(['acc_2'])
    })
  })

  test('the audit log is filtered by event type and by range', async () => {
    await add('opr_1')
    await add('opr_2')
    await store.operators.setOperatorRole('opr_2', 'viewer', changed)
    const read = async (more: Partial<Parameters<Store['listAudit']>[0]>): Promise<number[]> =>
      (await store.listAudit({ limit: 9, ...more })).map(({ sequence }) => sequence)
    expect(await read({ type: 'operator.created' })).toEqual([2, 1])
    expect(await read({ type: 'operator.role_changed', fromSequence: 2, beforeSequence: 4 })).toEqual([3])
    expect(await read({ fromSequence: 2, beforeSequence: 3 })).toEqual([2])
  })
})
