import { createAccount } from '../../src/accounts/accounts.ts'
import { createKey } from '../../src/accounts/keys.ts'
import { loadConfig } from '../../src/config/load.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { openSqlite } from '../../src/storage/sqlite/open-sqlite.ts'
import { createStore } from '../../src/storage/store.ts'

/**
 * Creates accounts on these plans, each with a key, as an operator would in another process. Returns the keys. `path`:
 * the configuration file. `dataDir`: the data folder, if the file does not name it.
 */
export async function addAccounts<Name extends string>(
  path: string,
  plans: Readonly<Record<Name, string>>,
  dataDir?: string,
): Promise<Record<Name, string>> {
  const random = systemRandom()
  const overrides = { data: dataDir }
  const config = loadConfig({ path, explicit: true, overrides, env: {}, random, localSecrets: 'make' })
  const store = createStore(await openSqlite(config.dataDir))
  const { pepper } = config.secrets
  const deps = { store, clock: systemClock(), random, pepper, actor: { kind: 'cli' } as const }
  const keys: [string, string][] = []
  try {
    for (const [name, plan] of Object.entries<string>(plans)) {
      const { id } = await createAccount(deps, name, plan, config.plans)
      keys.push([name, (await createKey(deps, id, 'test')).key.reveal()])
    }
  } finally {
    await store.close()
  }
  return Object.fromEntries(keys) as Record<Name, string>
}
