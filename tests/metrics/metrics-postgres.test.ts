import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { createAccount } from '../../src/accounts/accounts.ts'
import { createKey } from '../../src/accounts/keys.ts'
import { startApp, type App } from '../../src/app/app.ts'
import { openStore } from '../../src/app/storage.ts'
import { loadConfig } from '../../src/config/load.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { type SimulatedProvider, startSimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import type { Store } from '../../src/storage/store.ts'
import { hasPostgres } from '../postgres.ts'
import { sharedPostgres, type SharedPostgres } from '../shared-postgres.ts'
import { readSeries } from './series.ts'

describe.runIf(hasPostgres('metrics'))('metrics of a service on PostgreSQL', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-router-metrics-'))
  const [clock, random] = [systemClock(), systemRandom()]
  let server: SharedPostgres
  let provider: SimulatedProvider
  let app: App
  let store: Store
  let key: string

  beforeAll(async () => {
    server = await sharedPostgres()
    provider = await startSimulatedProvider({ name: 'alpha' })
    const path = join(folder, 'svc-router.yaml')
    writeFileSync(
      path,
      stringify({
        listen: { port: 0 },
        metrics_listen: { port: 0 },
        data: join(folder, 'data'),
        database: { url_env: 'DATABASE_URL' },
        providers: { alpha: { preset: 'custom', base_url: provider.baseUrl, format: 'openai-chat' } },
        backends: { alpha: { provider: 'alpha', model: 'simulated' } },
      }),
    )
    const env = { DATABASE_URL: await server.createMigratedDatabase() }
    const config = loadConfig({ path, explicit: true, overrides: {}, env, random, localSecrets: 'make' })
    app = await startApp({ ...config, drainDelayMs: 0 }, { log: () => {}, clock, random })
    store = await openStore(config)
    const deps = { store, clock, random, pepper: config.secrets.pepper, actor: { kind: 'cli' } } as const
    const account = await createAccount(deps, 'tester', 'max', config.plans)
    key = (await createKey(deps, account.id, 'test')).key.reveal()
  })
  afterAll(async () => {
    await store?.close()
    await app?.stop()
    await provider?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const chat = (extra: object, signal?: AbortSignal): Promise<Response> =>
    fetch(`${app.config.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'user-agent': 'tests/1.0' },
      body: JSON.stringify({
        model: 'svc-router/frontier',
        messages: [{ role: 'user', content: 'Say hello.' }],
        ...extra,
      }),
      ...(signal && { signal }),
    })

  test('every delivered answer is durable and charged, and none stays open', async () => {
    const scrape = async (): Promise<ReadonlyMap<string, number>> =>
      readSeries(await (await fetch(`http://127.0.0.1:${app.config.metricsListen!.port}/metrics`)).text())
    for (const stream of [true, false, true, false]) expect(await (await chat({ stream })).text()).not.toBe('')
    provider.script([{ do: 'cut', afterEvents: 3 }])
    await (await chat({ stream: true })).text()
    provider.script([{ do: 'answer', words: 100, tokenDelayMs: 50 }])
    const leaving = new AbortController()
    const left = await chat({ stream: true }, leaving.signal)
    expect(left.status).toBe(200)
    leaving.abort()
    await expect.poll(async () => (await scrape()).get('svc_router_open_requests{stream="true"}')).toBe(0)
    const series = await scrape()
    const frontier = 'profile="svc-router/frontier"'
    expect(series.get(`svc_router_admissions_total{${frontier}}`)).toBe(6)
    expect(series.get(`svc_router_charged_units_total{${frontier}}`)).toBe(6)
    expect(series.get('svc_router_delivered_uncounted_total')).toBe(0)
    expect(series.get('svc_router_store_seconds_count{operation="admit"}')).toBe(6)
    await expect.poll(async () => (await scrape()).get('svc_router_queue_length{queue="ledger"}')).toBe(0)
  })
})
