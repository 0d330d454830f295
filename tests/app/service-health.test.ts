import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { createAccount } from '../../src/accounts/accounts.ts'
import { createKey } from '../../src/accounts/keys.ts'
import { startApp, type App } from '../../src/app/app.ts'
import { readServiceHealth } from '../../src/app/service-health.ts'
import { openStore } from '../../src/app/storage.ts'
import { type Config } from '../../src/config/config.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { ServiceHealth } from '../../src/domain/service-health.ts'
import { type Clock, systemClock } from '../../src/runtime/clock.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { type SimulatedProvider, startSimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import type { Store } from '../../src/storage/store.ts'
import { hasPostgres } from '../postgres.ts'
import { sharedPostgres, type SharedPostgres } from '../shared-postgres.ts'

/** Nodes report every 5 s; here, twenty times as often. */
const hurry = 20
/** Shorter times are as they are: a database that shares the machine with other tests is not twenty times as fast. */
const shortestHurriedMs = 5_000

describe.runIf(hasPostgres('health of the service'))('the health of a service with three nodes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-router-health-'))
  const random = systemRandom()
  const system = systemClock()
  const clock: Clock = {
    nowMs: () => system.nowMs(),
    monotonicMs: () => system.monotonicMs(),
    after: (ms, run) => system.after(ms < shortestHurriedMs ? ms : ms / hurry, run),
  }
  let server: SharedPostgres
  let provider: SimulatedProvider
  let store: Store
  let key: string
  const nodes: App[] = []

  /** Node 0 cannot reach the provider. */
  function configOf(number: number, url: string): Config {
    const path = join(folder, `node-${number}.yaml`)
    const base = number === 0 ? 'http://127.0.0.1:9/v1' : provider.baseUrl
    writeFileSync(
      path,
      stringify({
        listen: { port: 0 },
        data: join(folder, `node-${number}`),
        database: { url_env: 'DATABASE_URL' },
        providers: { alpha: { preset: 'custom', base_url: base, format: 'openai-chat' } },
        backends: { alpha: { provider: 'alpha', model: 'simulated' } },
      }),
    )
    const env = {
      DATABASE_URL: url,
      SVC_ROUTER_PEPPER: 'the pepper of every node of this test',
      SVC_ROUTER_SEALING_KEY: Buffer.alloc(32, 7).toString('base64'),
    }
    return loadConfig({ path, explicit: true, overrides: {}, env, random, localSecrets: 'make' })
  }

  beforeAll(async () => {
    server = await sharedPostgres()
    provider = await startSimulatedProvider({ name: 'alpha' })
    const url = await server.createMigratedDatabase()
    for (const number of [0, 1, 2])
      nodes.push(await startApp({ ...configOf(number, url), drainDelayMs: 0 }, { log: () => {}, clock, random }))
    const config = nodes[0]!.config
    store = await openStore(config)
    const deps = { store, clock, random, pepper: config.secrets.pepper, actor: { kind: 'cli' } } as const
    const account = await createAccount(deps, 'tester', 'max', config.plans)
    key = (await createKey(deps, account.id, 'test')).key.reveal()
  })
  afterAll(async () => {
    await Promise.all(nodes.map((node) => node.stop()))
    await store?.close()
    await provider?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const ask = async (node: App): Promise<number> => {
    const answer = await fetch(`${node.config.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'user-agent': 'tests/1.0' },
      body: JSON.stringify({ model: 'svc-router/frontier', messages: [{ role: 'user', content: 'Hello.' }] }),
    })
    await answer.text()
    return answer.status
  }
  const health = (): Promise<ServiceHealth> => readServiceHealth(store, () => clock.nowMs())

  test('every node shows a backend that one of them skips, and a node that stops disappears', async () => {
    for (const node of nodes.slice(1)) expect(await ask(node)).toBe(200)
    await expect
      .poll(async () => {
        expect(await ask(nodes[0]!)).toBeGreaterThanOrEqual(500)
        return (await health()).condition('alpha')
      })
      .toMatchObject({ state: 'closed', skippedBy: { nodes: 1, of: 3 }, lastFailure: { outcome: 'unreachable' } })
    // A node that has only good experience shows it, too.
    const models = await fetch(new URL('models', `${nodes[2]!.config.baseUrl}/`), {
      headers: { authorization: `Bearer ${key}`, 'user-agent': 'tests/1.0' },
    })
    expect(models.headers.get('x-svc-router-backends')).toMatch(/usable=1;.*failing=1/)
    const status = await fetch(new URL('/status.json', nodes[2]!.config.appUrl))
    expect(await status.text()).toContain('some of our servers cannot use it')
    expect((await health()).serving()).toEqual({ nodes: 3, of: 3, reason: undefined })

    await nodes.shift()!.stop()
    const left = await health()
    expect(left.nodes).toHaveLength(2)
    expect(left.condition('alpha')).toMatchObject({ state: 'closed', skippedBy: undefined })
    expect(left.lastHour('alpha')).toMatchObject({ answered: 2, failed: 0 })
  })
})
