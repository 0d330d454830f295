import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { changePlan, createAccount, resumeAccount, suspendAccount } from '../../src/accounts/accounts.ts'
import { AuditBroken, takeCheckpoint, verifyAudit } from '../../src/accounts/audit/audit.ts'
import type { AccountsDeps } from '../../src/accounts/control-plane.ts'
import { createKey, revokeKey, rotateKey } from '../../src/accounts/keys.ts'
import { addUpstream, removeUpstream } from '../../src/accounts/upstreams.ts'
import { chainHash } from '../../src/domain/audit-chain.ts'
import type { Actor, AuditEvent } from '../../src/domain/audit.ts'
import { signCheckpoint } from '../../src/domain/checkpoint.ts'
import { defaultPlans } from '../../src/domain/plans.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { Secret } from '../../src/runtime/secret.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { createStore, type Store } from '../../src/storage/store.ts'
import { madeUpKeys, recordAt } from '../domain/audit-log.ts'
import { enginesFor } from './engines.ts'

const engines = enginesFor('audit')
const operator: Actor = { kind: 'operator', operatorId: 'opr_1' }
const nowMs = 1_790_000_000_000
const keys = madeUpKeys()

describe.each(engines)('the audit log on %s', (name, engine) => {
  let open: () => Promise<Kysely<Tables>>
  let db: Kysely<Tables>
  let store: Store
  let other: Store
  let deps: AccountsDeps<Store>

  beforeAll(() => engine.start())
  afterAll(() => engine.stop())
  beforeEach(async () => {
    open = await engine.fresh()
    db = await open()
    store = createStore(db)
    other = createStore(await open())
    const clock = { nowMs: () => nowMs }
    deps = { store, clock, random: systemRandom(), pepper: new Secret('made-up-pepper-of-tests'), actor: operator }
  })
  afterEach(async () => {
    await store.close()
    await other.close()
  })

  const events = async (): Promise<AuditEvent[]> =>
    (await store.listAudit({ limit: 1000 })).map(({ event }) => event).toReversed()
  const append = async (count: number): Promise<void> => {
    for (let index = 1; index <= count; index++) await store.appendAudit(recordAt(index))
  }
  /** Tampers as the owner of the database could: without the triggers. */
  const tamper = async (statement: string): Promise<void> => {
    const triggers =
      name === 'SQLite'
        ? ['no_update', 'no_delete', 'no_replace'].map((trigger) => `drop trigger if exists audit_log_${trigger}`)
        : ['no_change', 'no_truncate'].map((trigger) => `drop trigger if exists audit_log_${trigger} on audit_log`)
    for (const text of [...triggers, statement]) await sql.raw(text).execute(db)
  }

  test('every change appends one event with its actor, and a rejected change appends none', async () => {
    const seal = () => 'sealed'
    const account = await createAccount(deps, 'Ada', 'free', defaultPlans)
    const accountId = account.id
    await changePlan(deps, accountId, 'pro', defaultPlans)
    await suspendAccount(deps, accountId)
    await expect(suspendAccount(deps, accountId)).rejects.toMatchObject({ code: 'account_already_suspended' })
    await resumeAccount(deps, accountId)
    await expect(resumeAccount(deps, 'acc_x')).rejects.toMatchObject({ code: 'account_unknown' })
    const { stored } = await createKey(deps, accountId, 'laptop')
    const next = await rotateKey(deps, stored.id, '1h')
    await expect(rotateKey(deps, stored.id)).rejects.toMatchObject({ code: 'key_not_active' })
    await revokeKey(deps, next.stored.id, 'leaked')
    await expect(revokeKey(deps, next.stored.id)).rejects.toMatchObject({ code: 'key_already_revoked' })
    const draft = { provider: 'openai', model: 'm', baseUrl: null, format: null, authHeader: null }
    const credential = new Secret('made-up-credential-of-the-tests')
    const upstream = await addUpstream(deps, accountId, { ...draft, credential }, seal)
    await removeUpstream(deps, accountId, upstream.id)
    await expect(removeUpstream(deps, accountId, upstream.id)).rejects.toMatchObject({ code: 'upstream_unknown' })
    const key = { accountId, keyId: stored.id }
    expect(await events()).toEqual([
      { type: 'account.created', accountId, planId: 'free' },
      { type: 'account.plan_changed', accountId, planId: 'pro' },
      { type: 'account.suspended', accountId },
      { type: 'account.resumed', accountId },
      { type: 'key.created', ...key },
      { type: 'key.rotated', ...key, nextKeyId: next.stored.id, endsAtMs: nowMs + 3_600_000 },
      { type: 'key.revoked', accountId, keyId: next.stored.id, reason: 'leaked' },
      { type: 'upstream.added', accountId, upstreamId: upstream.id, provider: 'openai' },
      { type: 'upstream.removed', accountId, upstreamId: upstream.id },
    ])
    const entries = await store.listAudit({ limit: 100 })
    expect(new Set(entries.map(({ actor }) => JSON.stringify(actor)))).toEqual(new Set([JSON.stringify(operator)]))
    expect(entries.map(({ sequence }) => sequence)).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1])
  })

  test('adding and removing an address appends an event without the address, and a taken address appends none', async () => {
    const account = { id: 'acc_1', name: 'Ada', planId: 'free', suspended: false, createdAtMs: 1 }
    const record = (event: AuditEvent) => ({ actor: operator, atMs: nowMs, event })
    const created = record({ type: 'account.created', accountId: 'acc_1', planId: 'free' })
    const added = record({ type: 'email.added', accountId: 'acc_1' })
    const removed = record({ type: 'email.removed', accountId: 'acc_1' })
    const email = { accountId: 'acc_1', createdAtMs: 2 }
    expect(await store.addAccountWithEmail(account, 'ada@example.com', created)).toBe(true)
    expect(await store.addAccountWithEmail({ ...account, id: 'acc_2' }, 'ada@example.com', created)).toBe(false)
    expect(await store.addEmail({ ...email, address: 'a@example.com' }, 2, added)).toBe(true)
    expect(await store.addEmail({ ...email, address: 'b@example.com' }, 2, added)).toBe(false)
    expect(await store.removeEmail('acc_1', 'a@example.com', removed)).toBe(true)
    expect(await store.removeEmail('acc_1', 'a@example.com', removed)).toBe(false)
    expect(await events()).toEqual([created, added, removed].map(({ event }) => event))
    expect(JSON.stringify(await store.readAudit(0, 10))).not.toContain('@')
  })

  test('a change is rolled back if its event cannot be stored', async () => {
    const { id } = await createAccount(deps, 'Ada', 'free', defaultPlans)
    const record = recordAt(1)
    const bad = { ...record, event: { type: 'account.plan_changed', accountId: id, planId: 'two words' } } as const
    await expect(store.setPlan(id, 'max', bad)).rejects.toThrow(TypeError)
    expect((await store.findAccount(id))?.planId).toBe('free')
    await tamper(`alter table audit_log rename to audit_gone`)
    await expect(changePlan(deps, id, 'max', defaultPlans)).rejects.toThrow()
    expect((await store.findAccount(id))?.planId).toBe('free')
  })

  test('the entries of one account are listed page by page, without entries of other accounts', async () => {
    await append(40)
    const seen: number[] = []
    for (;;) {
      const before = seen.at(-1)
      const selection = { accountId: 'acc_3', limit: 2, ...(before !== undefined && { beforeSequence: before }) }
      const page = await other.listAudit(selection)
      if (page.length === 0) break
      seen.push(...page.map(({ sequence }) => sequence))
      expect(page.every(({ event }) => 'accountId' in event && event.accountId === 'acc_3')).toBe(true)
    }
    expect(seen).toEqual([38, 24, 17, 10])
  })

  test('simultaneous events and changes from two places form one chain without gaps', async () => {
    const accounts = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        createAccount({ ...deps, store: index % 2 === 0 ? store : other }, `account ${index}`, 'free', defaultPlans),
      ),
    )
    await Promise.all([
      ...Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? store : other).appendAudit(recordAt(index))),
      ...accounts.map(({ id }, index) =>
        changePlan({ ...deps, store: index % 2 === 0 ? other : store }, id, 'max', defaultPlans),
      ),
    ])
    const links = await store.readAudit(0, 1000)
    expect(links.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 64 }, (_, index) => index + 1))
    await takeCheckpoint(store, keys, nowMs)
    expect(await verifyAudit(other, { keys })).toEqual({ state: 'intact', entries: 64, provenTo: 64 })
  })

  test('a log is verified while others append to it', async () => {
    await append(1)
    const going = { on: true }
    const appending = (async () => {
      for (let index = 0; going.on; index++) {
        await other.appendAudit(recordAt(index))
        // SQLite answers synchronously: without this, nothing else in the process would run.
        await nextTurn()
      }
    })()
    try {
      for (let round = 0; round < 10; round++) {
        await takeCheckpoint(store, keys, nowMs)
        expect((await verifyAudit(store, { keys })).state).toBe('intact')
      }
    } finally {
      going.on = false
      await appending
    }
  })

  test('accidental changes, deletions, and replacements of entries and checkpoints are rejected', async () => {
    await append(2)
    await takeCheckpoint(store, keys, nowMs)
    const statements = [
      `update audit_log set entry = 'x' where sequence = 1`,
      `delete from audit_log`,
      `update audit_checkpoints set mac = 'x'`,
      `delete from audit_checkpoints where sequence = 2`,
      ...(name === 'SQLite'
        ? [
            `insert or replace into audit_log (sequence, entry, hash) values (1, 'x', 'x')`,
            `insert or replace into audit_checkpoints (sequence, hash, at_ms, key_id, mac) select sequence, 'x', 1, key_id, 'x' from audit_checkpoints`,
          ]
        : [`truncate audit_log`, `truncate audit_checkpoints`]),
    ]
    for (const statement of statements) await expect(sql.raw(statement).execute(db)).rejects.toThrow('append-only')
    expect(await verifyAudit(store, { keys })).toEqual({ state: 'intact', entries: 2, provenTo: 2 })
  })

  test.each([
    [
      'an entry changed',
      `update audit_log set entry = replace(entry, '"atMs":1', '"atMs":2') where sequence = 4`,
      4,
      'changed',
    ],
    ['a hash changed', `update audit_log set hash = 'x' where sequence = 5`, 5, 'changed'],
    ['an entry deleted', `delete from audit_log where sequence = 3`, 3, 'gap'],
    ['the end truncated', `delete from audit_log where sequence > 6`, 7, 'cut'],
    ['everything deleted', `delete from audit_log`, 1, 'cut'],
    [
      'an entry filed under another account',
      `update audit_log set account_id = 'acc_6' where sequence = 2`,
      2,
      'misfiled',
    ],
    ['an entry moved', `update audit_log set sequence = 99 where sequence = 2`, 2, 'gap'],
    ['the head rolled back', `update audit_head set sequence = 7`, 8, 'head'],
    ['the head changed', `update audit_head set hash = 'x'`, 8, 'head'],
    ['the head moved forward', `update audit_head set sequence = 9`, 9, 'cut'],
  ] as const)(
    'tampering that bypasses the triggers is located and explained: %s',
    async (_what, statement, sequence, why) => {
      await append(8)
      await tamper(statement)
      expect(await verifyAudit(store, { keys })).toEqual({ state: 'broken', at: { sequence, why } })
      await expect(takeCheckpoint(store, keys, nowMs)).rejects.toEqual(new AuditBroken({ sequence, why }))
      expect(await store.listCheckpoints(10)).toEqual([])
    },
  )

  test('a checkpoint reveals a log whose hashes and head were all recomputed, and nothing more is signed', async () => {
    await append(8)
    const checkpoint = await takeCheckpoint(store, keys, nowMs)
    await append(1)
    await tamper(`update audit_log set entry = replace(entry, '"atMs":1', '"atMs":2') where sequence = 3`)
    let hash = ''
    for (const link of await store.readAudit(0, 100)) {
      hash = chainHash(hash, link.entry)
      await sql`update audit_log set hash = ${hash} where sequence = ${link.sequence}`.execute(db)
    }
    await sql`update audit_head set hash = ${hash}`.execute(db)
    expect(await verifyAudit(store, { keys })).toEqual({ state: 'broken', at: { sequence: 8, why: 'rewritten' } })
    await expect(takeCheckpoint(store, keys, nowMs)).rejects.toMatchObject({ at: { sequence: 8, why: 'rewritten' } })
    expect(await store.listCheckpoints(10)).toEqual([checkpoint])
  })

  test('a checkpoint stored elsewhere reveals a truncated log whose head and checkpoints were rolled back with it', async () => {
    await append(5)
    const early = await takeCheckpoint(store, keys, nowMs)
    const hash = early!.hash
    await append(3)
    const elsewhere = (await takeCheckpoint(store, keys, nowMs))!
    await tamper(`delete from audit_log where sequence > 5`)
    for (const trigger of name === 'SQLite' ? ['no_delete'] : ['no_change on audit_checkpoints'])
      await sql.raw(`drop trigger audit_checkpoints_${trigger}`).execute(db)
    await sql`delete from audit_checkpoints where sequence > 5`.execute(db)
    await sql`update audit_head set sequence = 5, hash = ${hash}`.execute(db)
    expect(await verifyAudit(store, { keys })).toMatchObject({ state: 'intact', entries: 5 })
    expect(await verifyAudit(store, { keys, storedElsewhere: [elsewhere] })).toEqual({
      state: 'broken',
      at: { sequence: 6, why: 'cut' },
    })
  })

  test('each position is signed once, and again with a new key; a forged checkpoint is named', async () => {
    expect(await takeCheckpoint(store, keys, nowMs)).toBeUndefined()
    await append(3)
    const [first, second] = await Promise.all([takeCheckpoint(store, keys, nowMs), takeCheckpoint(other, keys, nowMs)])
    expect([first?.sequence, second?.sequence]).toEqual([3, 3])
    expect(await takeCheckpoint(store, keys, nowMs + 1)).toEqual(first)
    expect(await store.listCheckpoints(10)).toHaveLength(1)
    await takeCheckpoint(store, madeUpKeys(2, 1), nowMs + 2)
    expect((await store.listCheckpoints(10)).map(({ keyId }) => keyId)).toEqual(['key2', 'key1'])
    expect(await verifyAudit(store, { keys: madeUpKeys(9) })).toEqual({ state: 'unproven', entries: 3 })
    await append(1)
    const forged = { ...signCheckpoint(madeUpKeys(5), { sequence: 4, hash: 'x' }, nowMs), keyId: 'key1' }
    await store.addCheckpoint(forged)
    const at = { sequence: 4, why: 'checkpoint' }
    expect(await verifyAudit(store, { keys })).toEqual({ state: 'broken', at })
    await expect(takeCheckpoint(store, keys, nowMs)).rejects.toMatchObject({ at })
  })

  test('the proof that events can be stored leaves no trace, and fails if the log is writable or its end is missing', async () => {
    const proof = recordAt(1)
    await store.proveAudit(proof)
    await append(3)
    await store.proveAudit(proof)
    expect(await store.auditHead()).toMatchObject({ sequence: 3 })
    expect(await store.readAudit(0, 10)).toHaveLength(3)
    await tamper('select 1')
    await expect(store.proveAudit(proof)).rejects.toThrow('can be changed')
    await sql`delete from audit_log where sequence = 3`.execute(db)
    await expect(store.proveAudit(proof)).rejects.toThrow('not its last entry')
  })
})
