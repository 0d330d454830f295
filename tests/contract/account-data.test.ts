import type { Kysely } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { deleteAccount } from '../../src/accounts/delete-account.ts'
import type { AuditRecord } from '../../src/domain/audit.ts'
import { noLimits } from '../../src/domain/key-limits.ts'
import type { RefusedHour } from '../../src/domain/refused-requests.ts'
import { lowestIdAt } from '../../src/runtime/ids.ts'
import { Secret } from '../../src/runtime/secret.ts'
import { createConversationStore } from '../../src/storage/conversation-store.ts'
import { createGenerationStore } from '../../src/storage/generation-store.ts'
import { createResponseStore } from '../../src/storage/response-store.ts'
import type { RequestRow, Tables } from '../../src/storage/schema/schema.ts'
import { createStore, type Store } from '../../src/storage/store.ts'
import { someRecord } from '../audit-record.ts'
import { enginesFor } from './engines.ts'
import { requestRow } from './request-row.ts'

const dayMs = 86_400_000
const noonMs = Date.UTC(2026, 10, 21, 12)

/** An answered request at noon, with two attempts and counted tokens. */
function answeredRow(id: string, changes: Partial<RequestRow> = {}): RequestRow {
  return requestRow(id, noonMs, {
    attempts: JSON.stringify([
      { backend: 'alpha', outcome: 'server_error', ms: 3 },
      { backend: 'beta', outcome: 'answered', ms: 5 },
    ]),
    input_tokens: 10,
    output_tokens: 5,
    cached_tokens: 0,
    reasoning_tokens: 0,
    usage_source: 'counted',
    first_content_ms: 7,
    total_ms: 9,
    ...changes,
  })
}

/** One rejected request at noon. */
function refusedHour(changes: Partial<RefusedHour> = {}): RefusedHour {
  const last = { lastRequestId: 'req_1', lastKeyId: 'key_1', lastAtMs: noonMs + 1 }
  return { accountId: 'acc_1', code: 'invalid_json', hourMs: noonMs, requests: 1, ...last, ...changes }
}

/** The column with a row's account, by table. */
const owned = [
  'accounts',
  'keys',
  'upstreams',
  'requests',
  'usage',
  'meters',
  'budgets',
  'budget_spending',
  'budget_alerts',
  'alert_deliveries',
  'webhooks',
  'stored_responses',
  'conversations',
  'conversation_items',
  'generations',
  'generation_chunks',
  'cache_sessions',
  'emails',
  'sessions',
  'passkeys',
  'managed_requests',
  'upgrade_requests',
  'tickets',
  'refused_requests',
  'declared',
] as const

describe.each(enginesFor('account data'))('account data on %s', (_, engine) => {
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

  const addRows = (...rows: readonly RequestRow[]): Promise<unknown> =>
    db
      .insertInto('requests')
      .values([...rows])
      .execute()

  describe('requests', () => {
    test('request sums are grouped by day, profile, key, last backend, and error, and exclude other accounts', async () => {
      const failed = { error_code: 'server_is_overloaded', charged: 0, usage_source: null, input_tokens: null }
      await addRows(
        answeredRow('req_1'),
        answeredRow('req_2', { usage_source: 'estimated' }),
        answeredRow('req_3', { ...failed, output_tokens: null }),
        answeredRow('req_4', { attempts: null, key_id: 'key_2' }),
        answeredRow('req_5', { admitted_at_ms: noonMs - dayMs }),
        answeredRow('req_6', { admitted_at_ms: noonMs - 2 * dayMs }),
        answeredRow('req_7', { account_id: 'acc_2' }),
      )
      const groups = await store.addUpUsage('acc_1', {
        fromMs: noonMs - dayMs,
        untilMs: noonMs + dayMs,
        maxPerDay: 1000,
      })
      const common = { profile: 'svc-router/frontier', keyId: 'key_1', backend: 'beta', errorCode: null }
      const nothing = { cachedTokens: 0, cacheWriteTokens: 0, cost: { usd: '0', savedUsd: '0', priced: 0 } }
      expect(groups).toEqual([
        {
          ...common,
          day: '2026-11-20',
          requests: 1,
          charged: 1,
          inputTokens: 10,
          outputTokens: 5,
          estimated: 0,
          ...nothing,
        },
        {
          ...common,
          day: '2026-11-21',
          requests: 2,
          charged: 2,
          inputTokens: 20,
          outputTokens: 10,
          estimated: 1,
          ...nothing,
        },
        expect.objectContaining({ errorCode: 'server_is_overloaded', requests: 1, charged: 0, inputTokens: 0 }),
        expect.objectContaining({ keyId: 'key_2', backend: null, requests: 1 }),
      ])
      const bounded = await store.addUpUsage('acc_1', { fromMs: noonMs, untilMs: noonMs + 1, maxPerDay: 2 })
      expect(bounded.reduce((sum, { requests }) => sum + requests, 0)).toBe(2)
    })

    test('costs are summed exactly, beyond what a double can hold, and unknown ones are counted', async () => {
      const most = Number.MAX_SAFE_INTEGER
      await addRows(
        answeredRow('req_1', { cost: most, cache_saved: -3, cached_tokens: 4, cache_write_tokens: 7 }),
        answeredRow('req_2', { cost: most, cache_saved: null }),
        answeredRow('req_3', { cost: 1, cache_saved: -4, cache_write_tokens: 2 }),
        answeredRow('req_4', { cost: null }),
        answeredRow('req_5', { cost: 0, cache_saved: 0 }),
      )
      const [group, ...others] = await store.addUpUsage('acc_1', {
        fromMs: noonMs - dayMs,
        untilMs: noonMs + 1,
        maxPerDay: 1000,
      })
      expect(others).toEqual([])
      expect(group).toMatchObject({
        requests: 5,
        cachedTokens: 4,
        cacheWriteTokens: 9,
        cost: { usd: '18014.398509481983', savedUsd: '-0.000000000007', priced: 4 },
      })
    })

    test('costs of sessions are summed over days, the most expensive first, and filter the sums and the list', async () => {
      const most = Number.MAX_SAFE_INTEGER
      const yesterday = noonMs - dayMs
      await addRows(
        answeredRow('req_1', { session: 'ses_1', cost: most, cache_saved: 2, cached_tokens: 8 }),
        answeredRow('req_2', { session: 'ses_1', cost: most, cache_saved: 1, admitted_at_ms: yesterday }),
        answeredRow('req_3', { session: 'ses_1', cost: null }),
        answeredRow('req_4', { session: 'ses_2', cost: null, admitted_at_ms: yesterday }),
        answeredRow('req_5', { session: 'ses_3', cost: 7 }),
        answeredRow('req_6', { cost: 9 }),
        answeredRow('req_7', { session: 'ses_1', account_id: 'acc_2' }),
      )
      const first = {
        session: 'ses_1',
        requests: 3,
        priced: 2,
        usd: '18014.398509481982',
        savedUsd: '0.000000000003',
        inputTokens: 30,
        cachedTokens: 8,
        outputTokens: 15,
        firstMs: yesterday,
        lastMs: noonMs,
      }
      const span = { fromMs: yesterday, untilMs: noonMs + 1, limit: 10 }
      const found = await store.addUpSessions('acc_1', span)
      expect(found[0]).toEqual(first)
      expect(found.map(({ session, priced }) => [session, priced])).toEqual([
        ['ses_1', 2],
        ['ses_3', 1],
        ['ses_2', 0],
      ])
      expect(await store.addUpSessions('acc_1', { ...span, limit: 1 })).toHaveLength(1)
      expect(await store.findSessionCost('acc_1', 'ses_1')).toEqual(first)
      expect(await store.findSessionCost('acc_2', 'ses_3')).toBeUndefined()
      const groups = await store.addUpUsage('acc_1', { ...span, maxPerDay: 10, session: 'ses_1' })
      expect(groups.map(({ day, requests }) => [day, requests])).toEqual([
        ['2026-11-20', 1],
        ['2026-11-21', 2],
      ])
      const listed = await store.listActivity('acc_1', { limit: 10, session: 'ses_1' }, 100)
      expect(listed.map(({ id, session }) => [id, session])).toEqual([
        ['req_3', 'ses_1'],
        ['req_1', 'ses_1'],
        ['req_2', 'ses_1'],
      ])
    })

    test('costs of all accounts are summed by day, account, profile, and last backend', async () => {
      const at = (ms: number, name: string, changes: Partial<RequestRow>): RequestRow =>
        answeredRow(lowestIdAt('req_', ms) + name, { admitted_at_ms: ms, ...changes })
      const most = Number.MAX_SAFE_INTEGER
      await addRows(
        at(noonMs, 'a', { cost: most }),
        at(noonMs, 'b', { cost: most, cache_saved: 5 }),
        at(noonMs, 'c', { account_id: 'acc_2', cost: null }),
        at(noonMs, 'd', { account_id: 'acc_2', attempts: null, cost: 3 }),
        at(noonMs - dayMs, 'e', { cost: 1 }),
        at(noonMs - 2 * dayMs, 'f', { cost: 1 }),
      )
      const span = { fromMs: noonMs - dayMs, untilMs: noonMs + 1 }
      const groups = await store.addUpCosts({ ...span, maxPerDay: 100 })
      expect(
        groups.map(({ day, accountId, backend, requests, cost }) => [day, accountId, backend, requests, cost]),
      ).toEqual([
        ['2026-11-20', 'acc_1', 'beta', 1, { usd: '0.000000000001', savedUsd: '0', priced: 1 }],
        ['2026-11-21', 'acc_1', 'beta', 2, { usd: '18014.398509481982', savedUsd: '0.000000000005', priced: 2 }],
        ['2026-11-21', 'acc_2', 'beta', 1, { usd: '0', savedUsd: '0', priced: 0 }],
        ['2026-11-21', 'acc_2', null, 1, { usd: '0.000000000003', savedUsd: '0', priced: 1 }],
      ])
      const bounded = await store.addUpCosts({ ...span, maxPerDay: 1 })
      expect(bounded.map(({ requests }) => requests)).toEqual([1, 1])
    })

    test('requests are listed newest first, with every filter, page by page', async () => {
      await addRows(
        answeredRow('req_1', { admitted_at_ms: noonMs - dayMs }),
        answeredRow('req_2', { error_code: 'key_revoked', key_id: 'key_2' }),
        answeredRow('req_3', { profile: 'svc-router/fusion' }),
        answeredRow('req_4', { state: 'open' }),
        answeredRow('req_5', { account_id: 'acc_2' }),
      )
      const list = async (more: object, among = 100): Promise<string[]> =>
        (await store.listActivity('acc_1', { limit: 10, ...more }, among)).map(({ id }) => id)
      expect(await list({})).toEqual(['req_4', 'req_3', 'req_2', 'req_1'])
      expect(await list({ limit: 2, beforeId: 'req_4' })).toEqual(['req_3', 'req_2'])
      expect(await list({ beforeId: 'req_5' }), 'a cursor of another account').toEqual([])
      expect(await list({ outcome: 'failed' })).toEqual(['req_2'])
      expect(await list({ outcome: 'answered' })).toEqual(['req_3', 'req_1'])
      expect(await list({ profile: 'svc-router/fusion' })).toEqual(['req_3'])
      expect(await list({ keyId: 'key_2' })).toEqual(['req_2'])
      expect(await list({ fromMs: noonMs - dayMs, untilMs: noonMs })).toEqual(['req_1'])
      expect(await list({ profile: 'svc-router/frontier' }, 2), 'of the two newest').toEqual(['req_4'])
      expect((await store.findActivity('acc_1', 'req_1'))?.attempts.length).toBe(2)
      expect(await store.findActivity('acc_1', 'req_5')).toBeUndefined()
    })
  })

  describe('rejected requests', () => {
    const hour = 3_600_000
    const openAccounts = async (...accountIds: readonly string[]): Promise<void> => {
      for (const id of accountIds)
        await store.addAccount({ id, name: id, planId: 'free', suspended: false, createdAtMs: 1 }, someRecord())
    }
    const all = { fromMs: 0, untilMs: noonMs + dayMs, limit: 9 }

    test('rejections are counted per hour, and summed over all hours for a period and an account, latest first', async () => {
      await openAccounts('acc_1', 'acc_2')
      await store.addRefused([
        refusedHour({ requests: 2 }),
        refusedHour({ code: 'key_revoked', hourMs: noonMs - hour }),
      ])
      const later = { lastRequestId: 'req_9', lastKeyId: 'key_9', lastAtMs: noonMs + 9.5 }
      await store.addRefused([refusedHour({ requests: 5, ...later }), refusedHour({ accountId: 'acc_2' })])
      await store.addRefused([refusedHour({ requests: 100, hourMs: noonMs - hour, lastAtMs: noonMs - 1 })])
      const { hourMs: _, ...sum } = refusedHour({ requests: 107, ...later, lastAtMs: noonMs + 9 })
      const mine = await store.sumRefused({ ...all, accountId: 'acc_1' })
      expect(mine).toEqual([sum, expect.objectContaining({ code: 'key_revoked', requests: 1 })])
      expect(await store.sumRefused({ ...all, accountId: 'acc_1', fromMs: noonMs })).toEqual([{ ...sum, requests: 7 }])
      expect((await store.sumRefused(all)).map(({ accountId }) => accountId)).toEqual(['acc_1', 'acc_1', 'acc_2'])
      expect((await store.sumRefused({ ...all, limit: 1 })).length).toBe(1)
      const pages = await store.listRefusedHours('acc_1', undefined, 2)
      const rest = await store.listRefusedHours('acc_1', pages.at(-1), 2)
      expect([...pages, ...rest].map(({ hourMs, code, requests }) => [hourMs, code, requests])).toEqual([
        [noonMs, 'invalid_json', 7],
        [noonMs - hour, 'key_revoked', 1],
        [noonMs - hour, 'invalid_json', 100],
      ])
    })

    test('a batch drops the rejections of a deleted account and stores those of the other accounts', async () => {
      await openAccounts('acc_1')
      await store.addRefused([refusedHour({ accountId: 'acc_gone' }), refusedHour()])
      expect((await store.sumRefused(all)).map(({ accountId }) => accountId)).toEqual(['acc_1'])
    })

    test('rejections are swept by the hour, a bounded number at a time', async () => {
      await openAccounts('acc_1')
      const codes = ['invalid_json', 'key_revoked', 'not_found']
      await store.addRefused([refusedHour(), ...codes.map((code) => refusedHour({ code, hourMs: noonMs - hour }))])
      expect(await store.deleteRefusedBefore(noonMs, 2)).toBe(2)
      expect(await store.deleteRefusedBefore(noonMs, 2)).toBe(1)
      expect(await store.deleteRefusedBefore(noonMs, 2)).toBe(0)
      expect((await store.listRefusedHours('acc_1', undefined, 9)).length).toBe(1)
    })

    test('rejections added while their account is being deleted are deleted with it', async () => {
      await openAccounts('acc_1')
      const adding = async (): Promise<void> => {
        for (let count = 0; count < 30; count++)
          await store.addRefused([refusedHour({ hourMs: noonMs + count * hour })])
      }
      await Promise.all([adding(), adding(), store.deleteAccount('acc_1', noonMs, someRecord())])
      expect(await store.listRefusedHours('acc_1', undefined, 99)).toEqual([])
    })
  })

  describe('deleting an account', () => {
    /** Inserts a row into every table that has account data, for two accounts. */
    async function fill(accountId: string): Promise<void> {
      const record = someRecord()
      const n = accountId.slice(-1)
      const address = `a${n}@example.com`
      await store.addAccountWithEmail(
        { id: accountId, name: `Ada ${n}`, planId: 'free', suspended: false, createdAtMs: 1 },
        address,
        record,
      )
      const key = { id: `key_${n}`, accountId, name: 'k', hint: 'sk_svc_Ab12…9fQk', state: 'active' } as const
      await store.addKey(
        { ...key, endsAtMs: null, createdAtMs: 1, revokedAtMs: null, limits: noLimits },
        `digest ${n}`,
        9,
        record,
      )
      await db
        .insertInto('upstreams')
        .values({
          id: `ups_${n}`,
          account_id: accountId,
          provider: 'custom',
          model: 'm',
          position: 1,
          created_at_ms: 1,
        })
        .execute()
      await addRows(answeredRow(`req_${n}`, { account_id: accountId }))
      await db.insertInto('usage').values({ account_id: accountId, period_id: '2026-11', used: 3 }).execute()
      const budget = {
        scope: 'account',
        subject: '',
        former: null,
        unit: 'usd',
        period: 'month',
        rolling: 0,
        amount: 9,
      }
      await db
        .insertInto('budgets')
        .values({ ...budget, id: `bud_${n}`, account_id: accountId, set_by: 'account', created_at_ms: 1 })
        .execute()
      await db
        .insertInto('budget_spending')
        .values({ budget_id: `bud_${n}`, bucket_ms: 1, account_id: accountId, spent: 1, held: 0 })
        .execute()
      await store.addBudgetAlert({ budgetId: `bud_${n}`, windowMs: 1, thresholds: [50], accountId, atMs: 1 }, [
        { id: `adl_${n}`, eventId: 'e', accountId, channel: 'email', target: address, body: '', atMs: 1 },
      ])
      const webhook = { sealedSecret: 's', sealedPrevious: null, previousUntilMs: null, createdAtMs: 1 }
      await store.addWebhook({ ...webhook, id: `whk_${n}`, accountId, url: 'https://example.com/' }, 9, record)
      await db.insertInto('meters').values({ account_id: accountId, admitted: 1, last_at_ms: 1 }).execute()
      const generation = { accountId, requestId: `req_${n}` }
      const generations = createGenerationStore(db)
      await generations.claim({
        ...generation,
        keyDigest: 'k',
        bodyDigest: 'b',
        format: 'openai-chat',
        stream: false,
        isBackground: false,
        createdAtMs: 1,
        expiresAtMs: 9,
      })
      await generations.append({ ...generation, number: 0, sealed: 's', bytes: 1, hasContent: true })
      await store.saveCacheSessions([{ accountId, session: 's', state: '[]', updatedMs: 1, expiresMs: 9 }])
      await createResponseStore(db).save(
        {
          id: `resp_${n}`,
          accountId,
          previousId: undefined,
          createdAtMs: 5,
          links: 1,
          chainBytes: 1,
          sealedResponse: 's',
          sealedInput: 's',
          sealedOutput: 's',
        },
        [`item ${n}`],
      )
      const conversations = createConversationStore(db)
      const conversation = { id: `conv_${n}`, accountId, createdAtMs: 5, lastUsedAtMs: 5, items: 0, bytes: 0 }
      await conversations.add({ ...conversation, sealedMetadata: 's' })
      const limits = { nowMs: 5, sinceMs: 0, maxItems: 9, maxBytes: 9, skipsDuplicates: false }
      await conversations.append(accountId, `conv_${n}`, [{ digest: 'd', bytes: 1, sealed: 's' }], limits)
      await store.addRefused([refusedHour({ accountId, lastRequestId: `req_${n}` })])
      const proof = { id: `prf_${n}`, purpose: 'sign_in', address, createdAtMs: 1, expiresAtMs: 99 } as const
      await store.addProof({ ...proof, accountId: null }, { code: null, link: `link ${n}` }, 0)
      const session = { id: `ses_${n}`, accountId, method: 'email', agent: 'x', createdAtMs: 1 } as const
      await store.addSession({ ...session, lastSeenAtMs: 1, expiresAtMs: 9 }, `session ${n}`, 9)
      const passkey = { id: `passkey ${n}`, accountId, name: 'x', publicKey: 'x', counter: 0, transports: [] }
      await store.addPasskey({ ...passkey, createdAtMs: 1, lastUsedAtMs: null }, 9, record)
      await store.addManagedRequest({ id: `mar_${n}`, accountId, createdAtMs: 1 }, 9, record)
      const ticket = { id: `tkt_${n}`, accountId, replyTo: address, requestId: null, text: 'help' }
      await store.addTicket({ ...ticket, createdAtMs: 1 }, 0, 9)
      await store.markDeclared({ settings: [], objects: [{ accountId, keyName: '' }] })
      await store.billing.linkCustomer(accountId, `customer ${n}`, 50)
      await store.billing.addUpgradeRequest(
        { id: `upg_${n}`, accountId, planId: 'pro', state: 'requested', createdAtMs: 1, decidedAtMs: null },
        9,
        record,
      )
    }

    const countsOf = async (accountId: string): Promise<number[]> =>
      Promise.all(
        owned.map(async (table) => {
          const column = table === 'accounts' ? 'id' : 'account_id'
          const rows = await db
            .selectFrom(table)
            .selectAll()
            .where(column as 'id', '=', accountId)
            .execute()
          return rows.length
        }),
      )
    const planeOf = () => ({
      store,
      clock: { nowMs: () => 1234.5 },
      random: () => new Uint8Array(),
      pepper: new Secret('x'),
      actor: { kind: 'session', sessionId: 'ses_1', accountId: 'acc_1' } as const,
    })

    test('deleting removes every row of the account and no others, increments the revision, and appends an audit event', async () => {
      await fill('acc_1')
      await fill('acc_2')
      expect(await countsOf('acc_1')).toEqual(owned.map(() => 1))
      const revision = await store.revision()
      await deleteAccount(planeOf(), 'acc_1', ' Ada 1 ')
      expect(await countsOf('acc_1')).toEqual(owned.map(() => 0))
      expect(await countsOf('acc_2')).toEqual(owned.map(() => 1))
      expect((await db.selectFrom('stored_items').select('digest').execute()).map((row) => row.digest)).toEqual([
        'item 2',
      ])
      expect([await store.findProof('prf_1'), (await store.findProof('prf_2'))?.id]).toEqual([undefined, 'prf_2'])
      expect(await store.find('digest 1')).toBeUndefined()
      expect(await store.revision()).toBe(revision + 1)
      const [entry] = await store.listAudit({ limit: 1 })
      expect(entry).toMatchObject({ event: { type: 'account.deleted', accountId: 'acc_1' }, atMs: 1234 })
    })

    test('deleting removes support messages that its addresses sent without signing in, and no others', async () => {
      await fill('acc_1')
      const [{ address: replyTo } = { address: '' }] = await store.listEmails('acc_1')
      const ticket = { replyTo, requestId: null, text: 'help', createdAtMs: 1 }
      await store.addTicket({ ...ticket, id: 'tkt_a', accountId: null }, 0, 99)
      await store.addTicket({ ...ticket, id: 'tkt_b', accountId: null, replyTo: 'stranger@example.com' }, 0, 99)
      await store.addTicket({ ...ticket, id: 'tkt_c', accountId: 'acc_2' }, 0, 99)
      await deleteAccount(planeOf(), 'acc_1', 'Ada 1')
      const left = (await store.listTickets(99)).map(({ id }) => id)
      expect(left).toEqual(['tkt_c', 'tkt_b'])
    })

    test('deleting marks a subscription that may still charge for cancellation, and removes billing that was never linked', async () => {
      await fill('acc_1')
      await deleteAccount(planeOf(), 'acc_1', 'Ada 1')
      expect(await store.billing.findBilling('acc_1')).toMatchObject({ closingSinceMs: 1234, checkAtMs: 1234 })
    })

    test("deleting does nothing unless the account's name is given", async () => {
      await fill('acc_1')
      const before = await store.auditHead()
      await expect(deleteAccount(planeOf(), 'acc_1', 'ada 1')).rejects.toThrow('account_name_mismatch')
      await expect(deleteAccount(planeOf(), 'acc_3', 'Ada 1')).rejects.toThrow('account_unknown')
      expect(await countsOf('acc_1')).toEqual(owned.map(() => 1))
      expect(await store.auditHead()).toEqual(before)
    })

    test('deleting changes nothing if the audit event cannot be stored', async () => {
      await fill('acc_1')
      const bad: AuditRecord = {
        actor: { kind: 'cli' },
        atMs: 1,
        event: { type: 'account.deleted', accountId: 'no id' },
      }
      await expect(store.deleteAccount('acc_1', 1, bad)).rejects.toThrow(TypeError)
      expect(await countsOf('acc_1')).toEqual(owned.map(() => 1))
    })

    test('an account with many requests is suspended first, and an interrupted deletion can be repeated', async () => {
      await fill('acc_1')
      await fill('acc_2')
      await db.updateTable('requests').set({ state: 'open' }).where('account_id', '=', 'acc_1').execute()
      const rows = Array.from({ length: 2_500 }, (_, at) => answeredRow(`req_many_${at}`, { admitted_at_ms: at }))
      for (let at = 0; at < rows.length; at += 500) await addRows(...rows.slice(at, at + 500))
      const record: AuditRecord = {
        actor: { kind: 'cli' },
        atMs: 1,
        event: { type: 'account.deleted', accountId: 'acc_1' },
      }
      const failing: AuditRecord = { ...record, event: { type: 'account.deleted', accountId: 'no id' } }
      await expect(store.deleteAccount('acc_1', 1, failing)).rejects.toThrow(TypeError)
      expect(await countsOf('acc_1'), 'all but the ended requests').toEqual(owned.map(() => 1))
      expect((await store.find('digest 1'))?.account.suspended).toBe(true)
      expect(await store.deleteAccount('acc_1', 1, record)).toBe(true)
      expect(await countsOf('acc_1')).toEqual(owned.map(() => 0))
      expect(await countsOf('acc_2')).toEqual(owned.map(() => 1))
      const events = (await store.listAudit({ limit: 2 })).map(({ event }) => event)
      expect(events).toEqual([
        { type: 'account.deleted', accountId: 'acc_1' },
        { type: 'account.suspended', accountId: 'acc_1' },
      ])
    })

    test('the test covers every table that has an account column', async () => {
      const tables = await db.introspection.getTables()
      const named = tables
        .filter(({ columns }) => columns.some(({ name }) => name === 'account_id'))
        .map(({ name }) => name)
      // The triggers of stored_responses write the last one.
      const others = ['audit_log', 'billing', 'sign_in_proofs', 'provider_errors', 'stored_bytes']
      const known = [...owned.filter((name) => name !== 'accounts'), ...others]
      expect(named.toSorted()).toEqual(known.toSorted())
    })
  })

  test('proofs, months, and responses are listed only for their own account', async () => {
    await store.addAccountWithEmail(
      { id: 'acc_1', name: 'A', planId: 'free', suspended: false, createdAtMs: 1 },
      'a@example.com',
      someRecord(),
    )
    const proof = { purpose: 'sign_in', createdAtMs: 1, expiresAtMs: 99 } as const
    await store.addProof(
      { ...proof, id: 'prf_1', address: 'a@example.com', accountId: null },
      { code: null, link: 'a' },
      0,
    )
    await store.addProof(
      { ...proof, id: 'prf_2', address: 'b@example.com', accountId: null },
      { code: null, link: 'b' },
      0,
    )
    await store.addProof({ ...proof, id: 'prf_3', address: null, accountId: 'acc_1' }, { code: null, link: 'c' }, 0)
    await store.addProof(
      { ...proof, id: 'prf_4', purpose: 'add_email', address: 'a@example.com', accountId: 'acc_2' },
      { code: null, link: 'd' },
      0,
    )
    expect((await store.listProofs('acc_1', 9)).map(({ id }) => id)).toEqual(['prf_1', 'prf_3'])
    await db.insertInto('usage').values({ account_id: 'acc_1', period_id: '2026-11', used: 3 }).execute()
    const ticket = { replyTo: 'a@example.com', requestId: null, text: 'help', createdAtMs: 1 }
    await store.addTicket({ ...ticket, id: 'tkt_1', accountId: 'acc_1' }, 0, 9)
    await store.addTicket({ ...ticket, id: 'tkt_2', accountId: null }, 0, 9)
    await store.addTicket({ ...ticket, id: 'tkt_3', accountId: 'acc_2' }, 0, 9)
    await store.addTicket({ ...ticket, id: 'tkt_4', accountId: null, replyTo: 'b@example.com' }, 0, 9)
    expect((await store.listOwnTickets('acc_1', 9)).map(({ id }) => id)).toEqual(['tkt_2', 'tkt_1'])
    expect(await store.listUsedUnits('acc_1', 9)).toEqual([{ periodId: '2026-11', used: 3 }])
    const responses = createResponseStore(db)
    for (const [id, accountId] of [
      ['resp_1', 'acc_1'],
      ['resp_2', 'acc_1'],
      ['resp_3', 'acc_2'],
    ] as const) {
      const sealed = { sealedResponse: 's', sealedInput: 's', sealedOutput: 's' }
      await responses.save(
        { id, accountId, previousId: undefined, createdAtMs: 5, links: 1, chainBytes: 1, ...sealed },
        [],
      )
    }
    const first = await responses.listOf('acc_1', 0, undefined, 1)
    expect(first.map(({ id }) => id)).toEqual(['resp_2'])
    expect((await responses.listOf('acc_1', 0, first[0], 9)).map(({ id }) => id)).toEqual(['resp_1'])
    expect(await responses.listOf('acc_1', 5, undefined, 9)).toEqual([])
  })
})
