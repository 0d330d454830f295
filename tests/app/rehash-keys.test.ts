import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAccount } from '../../src/accounts/accounts.ts'
import type { AccountsDeps } from '../../src/accounts/control-plane.ts'
import { createKey } from '../../src/accounts/keys.ts'
import { startApp } from '../../src/app/app.ts'
import { openStore } from '../../src/app/storage.ts'
import type { Config } from '../../src/config/config.ts'
import { loadConfig } from '../../src/config/load.ts'
import { pepperId } from '../../src/domain/keys.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { systemRandom } from '../../src/runtime/random.ts'

const clock = systemClock()
const random = systemRandom()

let folder: string
let used: string
let unused: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-peppers-'))
  const config = configOf('first')
  const store = await openStore(config)
  const deps: AccountsDeps = { store, clock, random, pepper: config.secrets.pepper, actor: { kind: 'cli' } }
  const account = await createAccount(deps, 'ada', 'max', config.plans)
  used = (await createKey(deps, account.id, 'used')).key.reveal()
  unused = (await createKey(deps, account.id, 'unused')).key.reveal()
  await store.close()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The configuration of the service with one pepper, and another one before it. */
function configOf(pepper: string, previous?: string): Config {
  const path = join(folder, 'svc-router.yaml')
  writeFileSync(
    path,
    `listen: { port: 0 }\ndata: ${folder}/data\n${previous === undefined ? '' : 'secrets: { previous_pepper_env: BEFORE }\n'}`,
  )
  const env = {
    SVC_ROUTER_SEALING_KEY: 'ab'.repeat(32),
    SVC_ROUTER_PEPPER: `pepper of the tests: ${pepper}`,
    BEFORE: `pepper of the tests: ${previous ?? ''}`,
  }
  return loadConfig({ path, explicit: true, overrides: {}, env, random, localSecrets: 'make' })
}

/** Sends requests with these keys to the service, then waits until `keys` keys are not hashed with its pepper. */
async function statuses(config: Config, keys: readonly string[], waitFor?: number): Promise<number[]> {
  const app = await startApp({ ...config, drainDelayMs: 0 }, { log: () => {}, clock, random })
  try {
    const found: number[] = []
    for (const key of keys) {
      const headers = { authorization: `Bearer ${key}`, 'user-agent': 'tests/1' }
      const answer = await fetch(`${app.config.baseUrl}/models`, { headers })
      await answer.body?.cancel()
      found.push(answer.status)
    }
    if (waitFor !== undefined) await expect.poll(() => countOthers(config), { timeout: 5_000 }).toBe(waitFor)
    return found
  } finally {
    await app.stop()
  }
}

async function countOthers(config: Config): Promise<number> {
  const store = await openStore(config)
  try {
    return await store.countKeysWithOtherPeppers(pepperId(config.secrets.pepper), clock.nowMs())
  } finally {
    await store.close()
  }
}

test('a key that is used while the pepper changes works without the previous one; others are counted until then', async () => {
  expect(await statuses(configOf('first'), [used, unused])).toEqual([200, 200])
  expect(await statuses(configOf('second', 'first'), [used, used], 1)).toEqual([200, 200])
  // The old digest stays valid: a node that does not know the new pepper yet goes on.
  expect(await statuses(configOf('second', 'first'), [used])).toEqual([200])
  expect(await statuses(configOf('second'), [used, unused])).toEqual([200, 401])
  expect(await statuses(configOf('third', 'second'), [used], 1)).toEqual([200])
  expect(await statuses(configOf('third'), [used])).toEqual([200])
  // A key that was forgotten works again as soon as its pepper is configured.
  await expect(statuses(configOf('third', 'first'), [unused], 0)).resolves.toEqual([200])
})

test('without a previous pepper, using a key writes nothing', async () => {
  const config = configOf('third')
  const before = await countOthers(config)
  const store = await openStore(config)
  const deps: AccountsDeps = { store, clock, random, pepper: config.secrets.pepper, actor: { kind: 'cli' } }
  const account = await createAccount(deps, 'eve', 'max', config.plans)
  const key = (await createKey(deps, account.id, 'fresh')).key.reveal()
  await store.close()
  expect(await statuses(config, [key])).toEqual([200])
  expect(await countOthers(config)).toBe(before + 1)
})
