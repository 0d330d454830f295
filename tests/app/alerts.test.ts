import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { addWebhook, testWebhook } from '../../src/accounts/alerts/webhooks.ts'
import { startAlerts } from '../../src/app/alerts.ts'
import { createRuntime } from '../../src/app/runtime.ts'
import type { Storage } from '../../src/app/storage.ts'
import { loadConfig } from '../../src/config/load.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { createSealer } from '../../src/runtime/sealer.ts'
import { openSqlite } from '../../src/storage/sqlite/open-sqlite.ts'
import { createStore } from '../../src/storage/store.ts'
import { someRecord } from '../audit-record.ts'
import { serveHttp } from '../providers/support.ts'

test.each([
  ['local', 1, 'delivered'],
  ['production', 0, 'unreachable'],
] as const)('in %s mode, %i messages reach a private address', async (mode, reached, result) => {
  await using parts = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'svc-router-test-'))
  parts.defer(() => rmSync(folder, { recursive: true, force: true }))
  let got = 0
  const { baseUrl } = await serveHttp((_, response) => {
    got += 1
    response.writeHead(204).end()
  })
  const path = join(folder, 'none.yaml')
  const random = systemRandom()
  const given = { path, explicit: false, overrides: { data: folder }, env: {}, random, localSecrets: 'make' } as const
  const clock = systemClock()
  const runtime = createRuntime({ ...loadConfig(given), mode }, { clock, random, log: () => {} })
  const store = createStore(await openSqlite(folder))
  parts.defer(() => store.close())
  await store.addAccount({ id: 'acc_1', name: 'Ada', planId: 'free', suspended: false, createdAtMs: 1 }, someRecord())
  const { pepper } = runtime.config.secrets
  const sealer = createSealer({ ...runtime.keys, random })
  const control = { store, clock, random, pepper, actor: { kind: 'cli' }, sealer, webhooksUrl: 'http://x/' } as const
  // As if the address had been public when it was added.
  const { webhook } = await addWebhook({ ...control, requiresHttps: false }, 'acc_1', baseUrl)
  await testWebhook({ ...control, requiresHttps: false }, 'acc_1', webhook.id)
  const storage = { store, nowMs: () => clock.nowMs() } as unknown as Storage
  const alerts = startAlerts(runtime, {
    storage,
    mail: { sendMail: undefined },
    providers: { postJson: () => Promise.resolve() },
    onFailed: (error) => {
      throw error
    },
  })
  parts.use(alerts)
  const last = async () => (await store.listWebhookDeliveries('acc_1', webhook.id, 1))[0]?.result
  await expect.poll(last, { timeout: 10_000 }).toBe(result)
  expect(got).toBe(reached)
})
