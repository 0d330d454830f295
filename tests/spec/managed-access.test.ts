import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { takeCheckpoint, verifyAudit } from '../../src/accounts/audit/audit.ts'
import type { AccountsDeps } from '../../src/accounts/control-plane.ts'
import {
  recordResale,
  requestManagedAccess,
  reviewManagedRequest,
  revokeResale,
  switchManagedAccess,
} from '../../src/accounts/managed-access/managed-access.ts'
import { sealingKeys } from '../../src/config/sealing-keys.ts'
import { checkpointKeys } from '../../src/domain/checkpoint.ts'
import { startSimulatedProvider, type SimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { openSqlite } from '../../src/storage/sqlite/open-sqlite.ts'
import type { Store } from '../../src/storage/store.ts'
import { Service } from '../service.ts'

const credential = 'made-up-credential-of-the-operator'
/** The contract's time limit from a failing check to the last accepted request. */
const offWithinMs = 1_000
const askEveryMs = 10

let vendor: SimulatedProvider
let service: Service
let deps: AccountsDeps<Store>

beforeEach(async () => {
  vendor = await startSimulatedProvider({ name: 'vendor', capture: true })
  service = await Service.start({
    formats: [],
    env: { MADE_UP: credential },
    settings: {
      simulated: false,
      providers: { vendor: { preset: 'custom', base_url: vendor.baseUrl, format: 'openai-chat' } },
      backends: { theirs: { provider: 'vendor', model: 'm', credential_env: 'MADE_UP', managed: true } },
    },
  })
  deps = { ...service.accountsDeps, store: service.store }
})
afterEach(async () => {
  await service.stop()
  await vendor.close()
})

const status = async (): Promise<number> => (await service.chat()).status

/** A check that fails on a busy machine keeps access closed for 10 s. */
const opensWithinMs = 40_000

async function until(right: number, limitMs: number): Promise<number> {
  const startMs = performance.now()
  for (;;) {
    const seen = await status()
    const tookMs = performance.now() - startMs
    if (seen === right) return tookMs
    if (tookMs > limitMs) throw new Error(`after ${tookMs} ms it is still ${seen}`)
    await sleep(askEveryMs)
  }
}

async function open(): Promise<void> {
  const { id } = await requestManagedAccess(deps, service.account.id)
  await reviewManagedRequest(deps, id, 'approved')
  await switchManagedAccess(deps, true)
  await recordResale(deps, 'vendor', 'CONTRACT-17')
  await until(200, opensWithinMs)
}

describe('managed access (contract 23)', { timeout: 60_000 }, () => {
  test("the operator's credential serves only an approved account, once every check passes", async () => {
    expect(await status()).toBe(403)
    const { id } = await requestManagedAccess(deps, service.account.id)
    await switchManagedAccess(deps, true)
    await recordResale(deps, 'vendor', 'CONTRACT-17')
    await expect(until(200, 1_500)).rejects.toThrow('still 403')
    await reviewManagedRequest(deps, id, 'approved')
    await until(200, opensWithinMs)
    const stranger = await service.addAccount('stranger', 'max')
    const refused = await service.chat({}, { authorization: `Bearer ${stranger.key}` })
    expect(refused.status).toBe(403)
    expect(JSON.stringify(service.events)).not.toContain(credential)
    expect(await refused.text()).not.toContain(credential)
  })

  test.each([
    ['the operator switches it off', () => switchManagedAccess(deps, false)],
    ['the resale controls are revoked', () => revokeResale(deps, 'vendor')],
    ['entries of the audit log can be changed', () => spoil('drop trigger audit_log_no_update')],
    [
      'writes to the quotas are lost',
      () =>
        spoil(
          "create trigger lose before update on usage when new.account_id = 'proof' begin select raise(ignore); end",
        ),
    ],
  ])('access ends within a second when %s', async (_what, happen) => {
    await open()
    await happen()
    expect(await until(403, offWithinMs)).toBeLessThan(offWithinMs)
    const before = vendor.captured().length
    for (let count = 0; count < 5; count++) expect(await status()).toBe(403)
    expect(vendor.captured().length).toBe(before)
    const keys = checkpointKeys(sealingKeys(service.config.secrets))
    await takeCheckpoint(service.store, keys, Date.now())
    expect((await verifyAudit(service.store, { keys })).state).toBe('intact')
    const types = (await service.store.listAudit({ limit: 100 })).map(({ event }) => event.type)
    expect(types).toContain('managed.opened')
    expect(types).toContain('managed.closed')
  })
})

async function spoil(statement: string): Promise<void> {
  const db = await openSqlite(service.config.dataDir)
  await sql.raw(statement).execute(db)
  await db.destroy()
}

describe('a running request when access ends (contract 6.18, 23.6)', { timeout: 60_000 }, () => {
  test.each([
    ['its failover', 'svc-router/frontier'],
    ['its fusion', 'svc-router/fusion'],
  ])("%s makes no new call with the operator's credential", async (_what, model) => {
    const timeouts = { first_content: '2s', whole_answer: '2s' }
    await service.stop()
    service = await Service.start({
      formats: [],
      env: { MADE_UP: credential },
      settings: {
        simulated: false,
        providers: { vendor: { preset: 'custom', base_url: vendor.baseUrl, format: 'openai-chat' } },
        backends: Object.fromEntries(
          ['first', 'second', 'third'].map((id) => [
            id,
            { provider: 'vendor', model: id, credential_env: 'MADE_UP', managed: true, timeouts },
          ]),
        ),
      },
    })
    deps = { ...service.accountsDeps, store: service.store }
    await open()
    const before = vendor.captured().length
    vendor.script([{ do: 'silence', repeat: true }])
    const answered = service.chat({ model })
    await expect.poll(() => vendor.captured().length).toBeGreaterThan(before)
    await new Promise((resolve) => setTimeout(resolve, 200))
    const begun = vendor.captured().length
    await switchManagedAccess(deps, false)
    // The open calls time out now. No others may follow.
    await (await answered).text()
    expect(vendor.captured().length).toBe(begun)
  })
})
