import { setTimeout } from 'node:timers/promises'
import { setBudget } from '../../src/accounts/budgets.ts'
import { openIncident, updateIncident } from '../../src/accounts/status/incidents.ts'
import { periodAt } from '../../src/domain/account-meter.ts'
import type { AuditRecord } from '../../src/domain/audit.ts'
import type { CacheVerdict } from '../../src/domain/cache-verdict.ts'
import { errorCodes } from '../../src/domain/error-message.ts'
import { idMinter } from '../../src/runtime/ids.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import type { RequestRow } from '../../src/storage/schema/schema.ts'
import { openSqlite } from '../../src/storage/sqlite/open-sqlite.ts'
import type { Service } from '../service.ts'

/** What a request cost; every seventh one has no known price. */
function costColumns(
  count: number,
  isFailed: boolean,
): Pick<RequestRow, 'cost' | 'cost_source' | 'cache_saved' | 'price_version'> {
  const price_version = isFailed ? null : '2026-11-25'
  if (count % 7 === 6) return { cost: null, cost_source: null, cache_saved: null, price_version }
  if (isFailed) return { cost: 0, cost_source: 'estimated', cache_saved: 0, price_version }
  const cache_saved = count % 3 === 0 ? -1_062_500_000 : 3_825_000_000
  return { cost: 3_450_000_000 + count * 1_234_567, cost_source: 'counted', cache_saved, price_version }
}

/** A past month of requests, as the ledger stores it. */
async function fillPast({ config, account, store }: Service): Promise<void> {
  const [key] = await store.listKeys(account.id, 1)
  let admittedAtMs = 0
  // IDs sort by time, and a request that looks older than the retention would be deleted.
  const mintId = idMinter('req_', () => admittedAtMs, systemRandom())
  const db = await openSqlite(config.dataDir)
  try {
    for (let ago = 1; ago < 28; ago++) {
      for (let count = 0; count < (ago * 7) % 13; count++) {
        const isFailed = (ago + count) % 6 === 0
        admittedAtMs = Date.now() - ago * 86_400_000
        const row: RequestRow = {
          id: mintId(),
          account_id: account.id,
          key_id: key!.id,
          profile: count % 3 === 0 ? 'svc-router/fusion' : 'svc-router/frontier',
          format: 'openai-chat',
          stream: 1,
          units: 1,
          period_id: periodAt(admittedAtMs).id,
          admitted_at_ms: admittedAtMs,
          state: 'done',
          charged: isFailed ? 0 : 1,
          due_mark: null,
          attempts: JSON.stringify([
            {
              backend: 'beta',
              outcome: isFailed ? 'timeout' : 'answered',
              ms: 1240,
              ...(!isFailed && { cache: verdict(count) }),
            },
          ]),
          input_tokens: isFailed ? null : 900,
          output_tokens: isFailed ? null : 210,
          cached_tokens: isFailed || count % 3 === 0 ? 0 : 850,
          reasoning_tokens: 0,
          usage_source: isFailed ? null : 'counted',
          cache_write_tokens: isFailed || count % 3 !== 0 ? null : 850,
          usage_details: null,
          ...costColumns(count, isFailed),
          error_code: isFailed ? 'upstream_timeout' : null,
          first_content_ms: isFailed ? null : 320,
          total_ms: 1250,
          fusions: null,
          passed_by: null,
          session: count % 4 === 3 ? null : `ses_MadeUpOfATest_${ago % 5}_${count % 2}`,
          number: null,
          node_id: null,
          holds: null,
          booked: null,
        }
        await db.insertInto('requests').values(row).execute()
      }
    }
  } finally {
    await db.destroy()
  }
}

/** Fills all pages of the service's account, and creates a link that signs in to it. */
export async function fillAccount(service: Service): Promise<void> {
  for (const address of ['somebody@example.com', 'somebody.else@example.com']) await service.addEmail(address)
  await service.connectOwn('sk-made-up-credential-of-a-test-9fQk')
  const { stored } = await service.addNamedKey('billing-worker')
  await service.rotateLater(stored.id)
  const gone = await service.addNamedKey('old laptop')
  await service.revoke(gone.stored.id)
  const incidents = { ...service.accountsDeps, store: service.store }
  await openIncident(incidents, { title: 'Slow answers', impact: 'minor', text: 'We are investigating.' })
  const { id } = await openIncident(incidents, { title: 'No sign-in', impact: 'major', text: 'Emails are delayed.' })
  // The list is newest first, in milliseconds.
  await setTimeout(2)
  await updateIncident(incidents, id, 'resolved', 'Emails arrive again.')
  for (let request = 0; request < 3; request++) await service.chat()
  await service.chat({ model: 'svc-router/fusion' })
  const failing = Array.from({ length: 10 }, () => ({ do: 'status', status: 503 }) as const)
  for (const provider of service.providers) provider.script(failing)
  await service.chat()
  for (const provider of service.providers) provider.script([])
  await fillPast(service)
  await fillRefused(service)
  await fillBudget(service, stored.id)
  await fillWebhooks(service)
}

/** A budget of a key that no test uses, nearly used up. */
async function fillBudget({ config, account, store, accountsDeps }: Service, keyId: string): Promise<void> {
  const deps = { ...accountsDeps, store }
  const kind = { scope: 'key', subject: keyId, window: 'month', rolling: false } as const
  const { id } = await setBudget(deps, account.id, { ...kind, unit: 'usd', limit: 20_000_000_000 }, 'account', [])
  const db = await openSqlite(config.dataDir)
  const bucket_ms = Date.parse(`${new Date().toISOString().slice(0, 7)}-01T00:00:00Z`)
  const spending = { budget_id: id, bucket_ms, account_id: account.id, spent: 16_400_000_000, held: 0 }
  await db.insertInto('budget_spending').values(spending).execute()
  await db.destroy()
}

/** Webhooks with messages in every state. */
async function fillWebhooks({ config, account, store }: Service): Promise<void> {
  const nowMs = Date.now()
  const record: AuditRecord = {
    actor: { kind: 'cli' },
    atMs: nowMs,
    event: { type: 'webhook.added', accountId: account.id, webhookId: 'whk_MadeUp' },
  }
  const common = { accountId: account.id, sealedSecret: 'none', sealedPrevious: 'none' }
  const urls = ['https://hooks.example.com/svc-router', `https://alerts.example.com/${'very-long-path/'.repeat(5)}`]
  for (const [index, url] of urls.entries()) {
    const previousUntilMs = index === 0 ? nowMs + 80_000_000 : null
    const webhook = {
      ...common,
      id: `whk_MadeUp${index}`,
      url,
      previousUntilMs,
      createdAtMs: nowMs - 86_400_000 + index,
    }
    await store.addWebhook(webhook, 9, record)
  }
  const rows = [
    { state: 'delivered', result: 'delivered', attempts: 1, due_at_ms: null, type: 'budget.alert' },
    { state: 'failed', result: 'unreachable', attempts: 6, due_at_ms: null, type: 'budget.alert' },
    { state: 'waiting', result: '503', attempts: 4, due_at_ms: nowMs + 600_000, type: 'budget.alert' },
    { state: 'failed', result: 'timeout', attempts: 1, due_at_ms: null, type: 'webhook.test' },
  ].map(({ type, ...row }, index) => ({
    ...row,
    id: `adl_${index}`,
    event_id: `evt_${index}`,
    account_id: account.id,
    channel: 'webhook',
    target: 'whk_MadeUp0',
    body: JSON.stringify({ type }),
    created_at_ms: nowMs - (4 - index) * 3_600_000,
    attempted_at_ms: nowMs,
  }))
  const db = await openSqlite(config.dataDir)
  await db.insertInto('alert_deliveries').values(rows).execute()
  await db.destroy()
}

/** Rejected requests with every error code. */
async function fillRefused({ account, store }: Service): Promise<void> {
  const [key] = await store.listKeys(account.id, 1)
  const lastAtMs = Date.now() - 60_000
  const hours = errorCodes.map((code, index) => ({
    accountId: account.id,
    code,
    hourMs: Math.floor(lastAtMs / 3_600_000) * 3_600_000,
    requests: 1 + ((index * 7919) % 100_000),
    lastRequestId: `req_0MadeUpOfATest${String(index).padStart(10, '0')}`,
    lastKeyId: key!.id,
    lastAtMs: lastAtMs - index * 1000,
  }))
  await store.addRefused(hours)
}

/** What providers said about their caches. */
function verdict(count: number): CacheVerdict {
  const reason = (['tools', 'hit', 'hit', 'expired', 'hit', 'hit', 'item'] as const)[count % 7]!
  const figures = { before: 880, expected: reason === 'hit' ? 880 : 0, read: reason === 'hit' ? 850 : 0 }
  return {
    reason,
    ...figures,
    client: count % 2 === 0 ? 'codex' : 'claude-code',
    ...(reason === 'item' && { item: 14 }),
  }
}
