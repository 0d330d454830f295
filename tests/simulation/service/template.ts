import { DatabaseSync } from 'node:sqlite'
import { createAccount } from '../../../src/accounts/accounts.ts'
import type { AccountsDeps } from '../../../src/accounts/control-plane.ts'
import { createKey } from '../../../src/accounts/keys.ts'
import { addUpstream } from '../../../src/accounts/upstreams.ts'
import type { Config } from '../../../src/config/config.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { sealingKeys } from '../../../src/config/sealing-keys.ts'
import type { ChainLink } from '../../../src/domain/audit-chain.ts'
import { createVault } from '../../../src/providers/auth/vault.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import { openMigrated, queriesOn } from '../../../src/storage/sqlite/open-sqlite.ts'
import { createStore } from '../../../src/storage/store.ts'
import { Dice } from '../dice.ts'

/** The first moment of every world: 40 s before a month ends, so that some schedules cross its end. */
export const worldStartMs = Date.UTC(2026, 10, 30, 23, 59, 20)

export const providerNames = ['alpha', 'beta', 'gamma'] as const

/** The account with its own provider and credential, which nobody else may use. */
export const ownerOfUpstream = 2
/** How every secret of the simulation begins that is not a key. */
export const secretStart = 'secret-text-'
export const upstreamCredential = `${secretStart}of-upstream-of-account-2`

interface TemplateAccount {
  readonly id: string
  readonly plan: string
  readonly keys: readonly { readonly id: string; readonly key: string }[]
}

/** What every world starts with. */
export interface Template {
  readonly config: Config
  readonly database: Uint8Array
  readonly accounts: readonly TemplateAccount[]
  readonly auditLog: readonly ChainLink[]
}

const file = `
data: /nowhere
keep_alive: 1s
plans:
  free: { name: Free, requests_per_minute: 4, requests_per_month: 9, premium: false }
  pro: { name: Pro, requests_per_minute: 8, requests_per_month: 5, premium: true, fusions_at_once: 2 }
  max: { name: Max, requests_per_minute: 30, requests_per_month: 1000, premium: true, fusions_at_once: 4 }
providers:
  alpha: { preset: custom, base_url: 'http://alpha.sim/v1', format: openai-chat }
  beta: { preset: custom, base_url: 'http://beta.sim/v1', format: openai-responses }
  gamma: { preset: custom, base_url: 'http://gamma.sim/v1', format: anthropic-messages }
backends:
  alpha: { provider: alpha, model: model-of-alpha, timeouts: { connect: 1s, first_content: 3s, whole_answer: 4s, idle: 2s, total: 12s } }
  beta: { provider: beta, model: model-of-beta, timeouts: { connect: 1s, first_content: 3s, whole_answer: 4s, idle: 2s, total: 12s } }
  gamma: { provider: gamma, model: model-of-gamma, timeouts: { connect: 1s, first_content: 3s, whole_answer: 4s, idle: 2s, total: 12s } }
`

let made: Promise<Template> | undefined

/** Made once per process: the configuration, and a database with accounts and keys. */
export function worldTemplate(): Promise<Template> {
  return (made ??= makeTemplate())
}

async function makeTemplate(): Promise<Template> {
  const dice = new Dice(1)
  const random = (count: number): Uint8Array => dice.bytes(count)
  const config = loadConfig({
    path: 'simulated.yaml',
    explicit: true,
    given: { text: file },
    overrides: {},
    env: {
      SVC_ROUTER_PEPPER: 'a pepper of the simulation',
      SVC_ROUTER_SEALING_KEY: Buffer.from(random(32)).toString('hex'),
    },
    random,
    localSecrets: 'pretend',
  })
  const database = new DatabaseSync(':memory:')
  // Most tables are empty: small pages make the database a quarter as large, and each schedule searches it.
  database.exec('pragma page_size = 512')
  await openMigrated(() => database)
  const store = createStore(queriesOn(() => database))
  const deps: AccountsDeps = {
    store,
    clock: { nowMs: () => worldStartMs - 3_600_000 },
    random,
    pepper: config.secrets.pepper,
    actor: { kind: 'cli' },
  }
  const accounts: TemplateAccount[] = []
  for (const [index, plan] of ['free', 'pro', 'max'].entries()) {
    const { id } = await createAccount(deps, `account-${index}`, plan, config.plans)
    const keys = [await createKey(deps, id, 'first'), await createKey(deps, id, 'second')]
    accounts.push({ id, plan, keys: keys.map(({ key, stored }) => ({ id: stored.id, key: key.reveal() })) })
  }
  const vault = createVault({ ...sealingKeys(config.secrets), random })
  await addUpstream(
    deps,
    accounts[ownerOfUpstream]!.id,
    {
      provider: 'custom',
      model: 'own-model',
      baseUrl: 'http://own.sim/v1',
      format: 'openai-chat',
      authHeader: null,
      credential: new Secret(upstreamCredential),
      timeouts: { connectMs: 1_000, firstContentMs: 3_000, wholeAnswerMs: 4_000, idleMs: 2_000, totalMs: 12_000 },
    },
    (owner, id, secret) => vault.seal(owner, id, secret),
  )
  const links = database.prepare('select entry, hash from audit_log order by sequence').all()
  return { config, database: database.serialize(), accounts, auditLog: links as unknown as Template['auditLog'] }
}
