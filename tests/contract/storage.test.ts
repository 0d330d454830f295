import { type Kysely, sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Account, StoredKey, Upstream } from '../../src/domain/accounts.ts'
import type { AuditRecord } from '../../src/domain/audit.ts'
import { noLimits } from '../../src/domain/key-limits.ts'
import { lowestIdAt } from '../../src/runtime/ids.ts'
import { migrate, SchemaMismatch } from '../../src/storage/migrations/migrate.ts'
import type { Migration } from '../../src/storage/migrations/migration.ts'
import { migrations } from '../../src/storage/migrations/steps.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { createStore, type Store } from '../../src/storage/store.ts'
import { enginesFor } from './engines.ts'
import { requestRow } from './request-row.ts'

const engines = enginesFor('storage')

const account: Account = { id: 'acc_1', name: 'Ada', planId: 'free', suspended: false, createdAtMs: 1000 }
/** The audit event for each change; its content does not matter here. */
const noted: AuditRecord = {
  actor: { kind: 'cli' },
  atMs: 1000,
  event: { type: 'account.suspended', accountId: 'acc_1' },
}
const digestOf = (id: string) => `digest of ${id}`

function keyOf(id: string, changes: Partial<StoredKey> = {}): StoredKey {
  const fixed = { accountId: 'acc_1', name: 'laptop', hint: 'sk_svc_Ab12…9fQk', state: 'active' } as const
  return { id, ...fixed, endsAtMs: null, createdAtMs: 2000, revokedAtMs: null, limits: noLimits, ...changes }
}

function upstreamOf(id: string, changes: Partial<Upstream> = {}): Omit<Upstream, 'position'> {
  return {
    id,
    accountId: 'acc_1',
    provider: 'custom',
    model: 'm-1',
    baseUrl: 'https://models.example/v1',
    format: 'openai-chat',
    authHeader: 'authorization',
    sealedCredential: 'sealed',
    credentialHint: 'wxyz',
    createdAtMs: 3000,
    ...changes,
  }
}

describe.each(engines)('the store on %s', (_name, engine) => {
  let open: () => Promise<Kysely<Tables>>
  let db: Kysely<Tables>
  let store: Store
  /** A second connection to the same data, like that of another process or node. */
  let other: Store

  beforeAll(() => engine.start())
  afterAll(() => engine.stop())
  beforeEach(async () => {
    open = await engine.fresh()
    db = await open()
    store = createStore(db)
    other = createStore(await open())
  })
  afterEach(async () => {
    await store.close()
    await other.close()
  })

  const bothAdd = (count: number, add: (store: Store, index: number) => Promise<boolean>) =>
    Promise.all(Array.from({ length: count }, (_, index) => add(index % 2 === 0 ? store : other, index)))

  test('a key stores its limits, accepts new ones, and passes the current ones to its successor', async () => {
    await store.addAccount(account, noted)
    const limits = { profiles: ['svc-router/frontier'], perMinute: 30, addresses: ['10.0.0.0/8', '2001:db8::/32'] }
    await store.addKey(keyOf('key_1', { limits }), digestOf('key_1'), 10, [noted, noted])
    expect(await store.findKey('key_1')).toMatchObject({ limits })
    expect((await store.find(digestOf('key_1')))?.key).toMatchObject({ limits })
    const before = await store.revision()
    const fewer = { profiles: null, perMinute: 7, addresses: null }
    expect(await store.limitKey('key_1', fewer, 3000, noted)).toBe(true)
    expect(await store.revision()).toBe(before + 1)
    const rotation = { oldKeyId: 'key_1', nowMs: 4000, endsAtMs: 9000, nextDigest: digestOf('key_2') }
    await store.rotateKey({ ...rotation, next: keyOf('key_2', { limits }) }, noted)
    const listed = await store.listKeys('acc_1', 10)
    expect(listed.map((key) => key.limits)).toEqual([fewer, fewer])
  })

  test('limits of an unknown or revoked key cannot be changed; those of a retiring key can until it ends', async () => {
    await store.addAccount(account, noted)
    await store.addKey(keyOf('key_1', { state: 'revoked' }), digestOf('key_1'), 10, noted)
    await store.addKey(keyOf('key_2', { state: 'retiring', endsAtMs: 5000 }), digestOf('key_2'), 10, noted)
    const limits = { profiles: null, perMinute: 1, addresses: null }
    expect(await store.limitKey('key_1', limits, 3000, noted)).toBe(false)
    expect(await store.limitKey('key_9', limits, 3000, noted)).toBe(false)
    expect(await store.limitKey('key_2', limits, 4999, noted)).toBe(true)
    expect(await store.limitKey('key_2', noLimits, 5000, noted)).toBe(false)
    expect(await store.findKey('key_2')).toMatchObject({ limits })
  })

  test('an account is found as it was added, and others are not', async () => {
    await store.addAccount(account, noted)
    expect(await other.findAccount('acc_1')).toStrictEqual(account)
    expect(await other.findAccount('acc_2')).toBeUndefined()
  })

  test('an account cannot be added twice', async () => {
    await store.addAccount(account, noted)
    await expect(store.addAccount({ ...account, name: 'Eve' }, noted)).rejects.toThrow()
    expect((await store.findAccount('acc_1'))?.name).toBe('Ada')
  })

  test('accounts are listed in order of creation, up to the requested number', async () => {
    for (const [id, createdAtMs] of [
      ['acc_b', 3],
      ['acc_a', 2],
      ['acc_c', 1],
    ] as const)
      await store.addAccount({ ...account, id, name: id, createdAtMs }, noted)
    expect((await store.listAccounts(2)).map(({ id }) => id)).toEqual(['acc_c', 'acc_a'])
  })

  test('of two accounts with the same name that are added at once, one is added', async () => {
    const added = await Promise.all(['acc_1', 'acc_2'].map((id) => store.addAccount({ ...account, id }, noted)))
    expect(added.filter(Boolean)).toHaveLength(1)
    expect(await store.listAccounts(9)).toHaveLength(1)
  })

  test('a plan is changed, but not for an account that does not exist', async () => {
    await store.addAccount(account, noted)
    expect(await store.setPlan('acc_1', 'max', noted)).toBe(true)
    expect((await store.findAccount('acc_1'))?.planId).toBe('max')
    expect(await store.setPlan('acc_2', 'max', noted)).toBe(false)
  })

  test('a key is found by its digest, together with its account', async () => {
    await store.addAccount({ ...account, suspended: true }, noted)
    const key = keyOf('key_1', { endsAtMs: 9000 })
    expect(await store.addKey(key, digestOf('key_1'), 10, noted)).toBe(true)
    expect(await store.find(digestOf('key_1'))).toEqual({ key, account: { ...account, suspended: true } })
    expect(await store.findKey('key_1')).toEqual(key)
    expect(await store.find('another digest')).toBeUndefined()
    expect(await store.findKey('key_2')).toBeUndefined()
  })

  test('a key of a nonexistent account and a duplicate digest are errors', async () => {
    await store.addAccount(account, noted)
    await expect(store.addKey(keyOf('key_1', { accountId: 'acc_9' }), digestOf('key_1'), 10, noted)).rejects.toThrow()
    await store.addKey(keyOf('key_1'), digestOf('key_1'), 10, noted)
    await expect(store.addKey(keyOf('key_2'), digestOf('key_1'), 10, noted)).rejects.toThrow()
    expect(await store.findKey('key_2')).toBeUndefined()
  })

  test('of many keys added at once from two places, exactly the allowed number is stored', async () => {
    await store.addAccount(account, noted)
    const added = await bothAdd(20, (place, index) =>
      place.addKey(keyOf(`key_${index}`), digestOf(`key_${index}`), 7, noted),
    )
    expect(added.filter(Boolean)).toHaveLength(7)
    expect(await store.listKeys('acc_1', 100)).toHaveLength(7)
  })

  test('revoked keys and retiring keys past their end make room for others', async () => {
    await store.addAccount(account, noted)
    expect(await store.addKey(keyOf('key_1'), digestOf('key_1'), 2, noted)).toBe(true)
    expect(await store.addKey(keyOf('key_2'), digestOf('key_2'), 2, noted)).toBe(true)
    expect(await store.addKey(keyOf('key_3'), digestOf('key_3'), 2, noted)).toBe(false)
    await store.revokeKey('key_1', 2500, noted)
    expect(
      await store.rotateKey(
        {
          oldKeyId: 'key_2',
          nowMs: 2500,
          endsAtMs: 5000,
          next: keyOf('key_3', { createdAtMs: 2500 }),
          nextDigest: digestOf('key_3'),
        },
        noted,
      ),
    ).toBe(true)
    expect(await store.addKey(keyOf('key_4', { createdAtMs: 4999 }), digestOf('key_4'), 2, noted)).toBe(false)
    expect(await store.addKey(keyOf('key_4', { createdAtMs: 5000 }), digestOf('key_4'), 2, noted)).toBe(true)
  })

  test('keys are listed newest first and only for their account', async () => {
    await store.addAccount(account, noted)
    await store.addAccount({ ...account, id: 'acc_2', name: 'Second' }, noted)
    for (const [index, accountId] of ['acc_1', 'acc_2', 'acc_1', 'acc_1'].entries()) {
      await store.addKey(keyOf(`key_${index}`, { accountId, createdAtMs: index }), digestOf(`key_${index}`), 10, noted)
    }
    expect((await store.listKeys('acc_1', 2)).map(({ id }) => id)).toEqual(['key_3', 'key_2'])
  })

  test('a rotated key retires at the given end, and its successor works', async () => {
    await store.addAccount(account, noted)
    await store.addKey(keyOf('key_1'), digestOf('key_1'), 10, noted)
    expect(
      await store.rotateKey(
        { oldKeyId: 'key_1', nowMs: 3000, endsAtMs: 7000, next: keyOf('key_2'), nextDigest: digestOf('key_2') },
        noted,
      ),
    ).toBe(true)
    expect(await store.findKey('key_1')).toMatchObject({ state: 'retiring', endsAtMs: 7000, revokedAtMs: null })
    expect((await store.find(digestOf('key_2')))?.key.state).toBe('active')
  })

  test('a key rotated without an overlap is revoked immediately', async () => {
    await store.addAccount(account, noted)
    await store.addKey(keyOf('key_1'), digestOf('key_1'), 10, noted)
    expect(
      await store.rotateKey(
        { oldKeyId: 'key_1', nowMs: 3000, endsAtMs: 3000, next: keyOf('key_2'), nextDigest: digestOf('key_2') },
        noted,
      ),
    ).toBe(true)
    expect(await store.findKey('key_1')).toMatchObject({ state: 'revoked', revokedAtMs: 3000 })
  })

  test('rotation does not extend the life of a key that expires sooner', async () => {
    await store.addAccount(account, noted)
    await store.addKey(keyOf('key_1', { endsAtMs: 4000 }), digestOf('key_1'), 10, noted)
    await store.rotateKey(
      { oldKeyId: 'key_1', nowMs: 3000, endsAtMs: 7000, next: keyOf('key_2'), nextDigest: digestOf('key_2') },
      noted,
    )
    expect((await store.findKey('key_1'))?.endsAtMs).toBe(4000)
  })

  test.each([
    ['disabled', { state: 'disabled' }],
    ['revoked', { state: 'revoked', revokedAtMs: 1 }],
    ['retiring', { state: 'retiring', endsAtMs: 9000 }],
    ['expired', { endsAtMs: 3000 }],
    ['of another account', { accountId: 'acc_2' }],
  ] as const)('a key that is %s is not rotated', async (_case, changes) => {
    await store.addAccount(account, noted)
    await store.addAccount({ ...account, id: 'acc_2', name: 'Second' }, noted)
    const key = keyOf('key_1', changes)
    await store.addKey(key, digestOf('key_1'), 10, noted)
    expect(
      await store.rotateKey(
        { oldKeyId: 'key_1', nowMs: 3000, endsAtMs: 7000, next: keyOf('key_2'), nextDigest: digestOf('key_2') },
        noted,
      ),
    ).toBe(false)
    expect(await store.findKey('key_1')).toEqual(key)
    expect(await store.findKey('key_2')).toBeUndefined()
  })

  test('of many simultaneous rotations of one key from two places, one succeeds', async () => {
    await store.addAccount(account, noted)
    await store.addKey(keyOf('key_old'), digestOf('key_old'), 10, noted)
    const rotated = await bothAdd(10, (place, index) =>
      place.rotateKey(
        {
          oldKeyId: 'key_old',
          nowMs: 3000,
          endsAtMs: 7000,
          next: keyOf(`key_${index}`),
          nextDigest: digestOf(`key_${index}`),
        },
        noted,
      ),
    )
    expect(rotated.filter(Boolean)).toHaveLength(1)
    expect(await store.listKeys('acc_1', 100)).toHaveLength(2)
  })

  test('a key is revoked once and permanently', async () => {
    await store.addAccount(account, noted)
    await store.addKey(keyOf('key_1'), digestOf('key_1'), 10, noted)
    expect(await store.revokeKey('key_1', 4000, noted)).toBe(true)
    expect(await store.revokeKey('key_1', 5000, noted)).toBe(false)
    expect(await store.revokeKey('key_9', 5000, noted)).toBe(false)
    expect(await store.findKey('key_1')).toMatchObject({ state: 'revoked', revokedAtMs: 4000 })
  })

  test('upstreams are listed in the order in which they were added, with every field', async () => {
    await store.addAccount(account, noted)
    const plain = upstreamOf('ups_2', {
      provider: 'openai',
      baseUrl: null,
      format: null,
      authHeader: null,
      sealedCredential: null,
      credentialHint: null,
    })
    expect(await store.addUpstream(upstreamOf('ups_1'), 5, noted)).toBe(true)
    expect(await store.addUpstream(plain, 5, noted)).toBe(true)
    expect(await other.listUpstreams('acc_1')).toEqual([
      { ...upstreamOf('ups_1'), position: 1 },
      { ...plain, position: 2 },
    ])
  })

  test('of many upstreams added at once from two places, exactly the allowed number is stored, each at its own position', async () => {
    await store.addAccount(account, noted)
    const added = await bothAdd(12, (place, index) => place.addUpstream(upstreamOf(`ups_${index}`), 5, noted))
    expect(added.filter(Boolean)).toHaveLength(5)
    expect((await store.listUpstreams('acc_1')).map(({ position }) => position)).toEqual([1, 2, 3, 4, 5])
  })

  test('only its own account can remove an upstream', async () => {
    await store.addAccount(account, noted)
    await store.addUpstream(upstreamOf('ups_1'), 5, noted)
    expect(await store.removeUpstream('acc_2', 'ups_1', noted)).toBe(false)
    expect(await store.removeUpstream('acc_1', 'ups_1', noted)).toBe(true)
    expect(await store.removeUpstream('acc_1', 'ups_1', noted)).toBe(false)
    expect(await store.listUpstreams('acc_1')).toEqual([])
  })

  test('every change moves the revision, nothing else does, and other nodes see it', async () => {
    const seen = [await other.revision()]
    const expectMoved = async (moved: boolean) => {
      seen.push(await other.revision())
      expect(seen.at(-1) !== seen.at(-2)).toBe(moved)
    }
    await store.addAccount(account, noted)
    await expectMoved(true)
    await store.setPlan('acc_1', 'pro', noted)
    await expectMoved(true)
    await store.setPlan('acc_9', 'pro', noted)
    await expectMoved(false)
    await store.addKey(keyOf('key_1'), digestOf('key_1'), 1, noted)
    await expectMoved(true)
    await store.addKey(keyOf('key_2'), digestOf('key_2'), 1, noted)
    await expectMoved(false)
    await store.rotateKey(
      { oldKeyId: 'key_1', nowMs: 3000, endsAtMs: 7000, next: keyOf('key_2'), nextDigest: digestOf('key_2') },
      noted,
    )
    await expectMoved(true)
    await store.revokeKey('key_2', 4000, noted)
    await expectMoved(true)
    await store.addUpstream(upstreamOf('ups_1'), 5, noted)
    await expectMoved(true)
    await store.removeUpstream('acc_1', 'ups_1', noted)
    await expectMoved(true)
    await store.find(digestOf('key_1'))
    await expectMoved(false)
  })

  test('a request record is read back with every field that was written and no others', async () => {
    const attempts = [{ backend: 'b-1', outcome: 'answered', status: 200, ms: 12, upstreamRequestId: 'up-1' }]
    const full = requestRow('req_full', 1000, {
      stream: 1,
      attempts: JSON.stringify(attempts),
      input_tokens: 3,
      output_tokens: 4,
      cached_tokens: 1,
      reasoning_tokens: 2,
      usage_source: 'estimated',
      error_code: 'upstream_timeout',
      first_content_ms: 7,
    })
    await db
      .insertInto('requests')
      .values([full, requestRow('req_bare', 1000, { state: 'open', total_ms: null })])
      .execute()
    const facts = { accountId: 'acc_1', keyId: 'key_1', profile: 'svc-router/frontier', format: 'openai-chat' }
    const common = { ...facts, units: 1, periodId: '2026-11', admittedAtMs: 1000, charged: 1 }
    expect(await store.findRequest('req_full')).toStrictEqual({
      ...common,
      id: 'req_full',
      stream: true,
      state: 'done',
      attempts,
      usage: { inputTokens: 3, outputTokens: 4, cachedTokens: 1, reasoningTokens: 2, source: 'estimated' },
      errorCode: 'upstream_timeout',
      firstContentMs: 7,
      totalMs: 5,
    })
    expect(await store.findRequest('req_bare')).toStrictEqual({
      ...common,
      id: 'req_bare',
      stream: false,
      state: 'open',
      attempts: [],
      totalMs: 0,
    })
    expect(await store.findRequest('req_none')).toBeUndefined()
  })

  test('request records are listed newest first, page by page without a gap, optionally for one account', async () => {
    const rows = Array.from({ length: 9 }, (_, index) =>
      // Two at the same time, and one admitted later than its ID was minted.
      requestRow(`req_${index}`, index === 2 ? 10 : Math.floor(index / 2), {
        account_id: index % 3 === 0 ? 'acc_2' : 'acc_1',
      }),
    )
    await db.insertInto('requests').values(rows).execute()
    const pages = async (accountId?: string) => {
      const ids: string[] = []
      for (;;) {
        const selection = {
          limit: 2,
          ...(accountId && { accountId }),
          ...(ids.length > 0 && { beforeId: ids.at(-1)! }),
        }
        const page = await store.listRequests(selection)
        if (page.length === 0) return ids
        ids.push(...page.map(({ id }) => id))
      }
    }
    expect(await pages()).toEqual([8, 7, 6, 5, 4, 3, 2, 1, 0].map((index) => `req_${index}`))
    expect(await pages('acc_2')).toEqual(['req_6', 'req_3', 'req_0'])
    expect(await pages('acc_1')).toEqual([2, 8, 7, 5, 4, 1].map((index) => `req_${index}`))
  })

  test('old request records are deleted in bounded steps; newer ones and the units used remain', async () => {
    const idAt = (timeMs: number) => `${lowestIdAt('req_', timeMs)}0000`
    await db
      .insertInto('requests')
      .values([1, 2, 3, 4, 5, 6].map((timeMs) => requestRow(idAt(timeMs), timeMs)))
      .execute()
    await db.insertInto('usage').values({ account_id: 'acc_1', period_id: '2026-11', used: 6 }).execute()
    expect(await store.deleteRequestsBefore(5, 3)).toBe(3)
    expect(await store.deleteRequestsBefore(5, 3)).toBe(1)
    expect(await store.deleteRequestsBefore(5, 3)).toBe(0)
    expect((await store.listRequests({ limit: 10 })).map(({ id }) => id)).toEqual([idAt(6), idAt(5)])
    expect(await store.usedUnits('acc_1', '2026-11')).toBe(6)
    expect(await store.usedUnits('acc_1', '2026-12')).toBe(0)
  })

  test('integers beyond 32 bits are read back as numbers', async () => {
    const createdAtMs = 4_102_444_800_123
    await store.addAccount({ ...account, createdAtMs }, noted)
    expect((await store.findAccount('acc_1'))?.createdAtMs).toBe(createdAtMs)
  })

  test('processes that start at once on new data all find the complete schema', async () => {
    const openNew = await engine.fresh()
    const opened = await Promise.all(Array.from({ length: 6 }, () => openNew()))
    const names = await opened[0]!.selectFrom('migrations').select('name').execute()
    expect(names.map(({ name }) => name)).toEqual(migrations.map(({ name }) => name))
    await Promise.all(opened.map((each) => each.destroy()))
  })

  test('a new migration is applied once to an existing schema', async () => {
    await store.addAccount(account, noted)
    const next: Migration = { name: '900-next', statements: ['create table extra (id text primary key)'] }
    await migrate(db, async () => {}, [...migrations, next])
    await migrate(db, async () => {}, [...migrations, next])
    expect(await store.findAccount('acc_1')).toEqual(account)
  })

  test('token counts that no page could read are repaired', async () => {
    await store.addAccount(account, noted)
    const absurd = { input_tokens: 2 ** 60, output_tokens: 2 ** 60, cached_tokens: 2 ** 60, reasoning_tokens: 2 ** 60 }
    const rows = Array.from({ length: 9 }, (_, index) =>
      requestRow(`req_${index}`, 1000, { usage_source: 'counted', ...absurd }),
    )
    await db.insertInto('requests').values(rows).execute()
    const { statements } = migrations.find(({ name }) => name === '015-token-counts')!
    for (const statement of statements) await sql.raw(statement).execute(db)
    const { usage } = (await store.findRequest('req_1'))!
    expect(usage).toMatchObject({ inputTokens: 100_000_000, reasoningTokens: 100_000_000 })
    const sums = await db
      .selectFrom('requests')
      .select(({ fn }) => fn.sum('input_tokens').as('input'))
      .execute()
    expect(Number(sums[0]!.input)).toBe(900_000_000)
  })

  test('data of a newer version is not touched, and the error says so', async () => {
    await db.insertInto('migrations').values({ name: '999-future', checksum: 'x', applied_at_ms: 1 }).execute()
    const refused = open()
    await expect(refused).rejects.toThrow(SchemaMismatch)
    await expect(refused).rejects.toThrow(/newer version of svc-router.*999-future/)
  })

  test('an earlier version works with a newer schema if every migration that it does not know says so', async () => {
    const last = migrations.at(-1)!.name
    const column: Migration = { name: '901-column', statements: ['create table more (id text)'], worksWith: last }
    const compatible: Migration = { name: '902-table', statements: ['create table most (id text)'], worksWith: last }
    const later: Migration = { name: '903-index', statements: ['create index i on most (id)'], worksWith: column.name }
    await migrate(db, async () => {}, [...migrations, column, compatible])
    const reopened = await open()
    await reopened.destroy()
    // The newer version, started again, applies nothing twice.
    await migrate(db, async () => {}, [...migrations, column, compatible, later])
    await expect(open()).rejects.toThrow(/newer version of svc-router.*903-index/)
    await migrate(db, async () => {}, [...migrations, column])
  })

  test('a migration that differs from the applied one is rejected', async () => {
    await db.updateTable('migrations').set({ checksum: 'changed' }).execute()
    await expect(open()).rejects.toThrow(SchemaMismatch)
  })

  test('a migration that fails changes nothing', async () => {
    const broken: Migration = { name: '900-broken', statements: ['create table half (id text)', 'create nonsense'] }
    await expect(migrate(db, async () => {}, [...migrations, broken])).rejects.toThrow()
    await migrate(db, async () => {}, [
      ...migrations,
      { name: '900-fixed', statements: ['create table half (id text)'] },
    ])
    const applied = await db.selectFrom('migrations').select('name').execute()
    expect(applied.map(({ name }) => name)).toContain('900-fixed')
  })
})
