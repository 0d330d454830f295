import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createRuntime } from '../../../src/app/runtime.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { providerErrorBinding } from '../../../src/domain/provider-error.ts'
import { credentialBinding, generationBinding, textBinding, webhookBinding } from '../../../src/domain/seal-bindings.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { createSealer, type Sealer } from '../../../src/runtime/sealer.ts'
import { databasePath } from '../../../src/storage/sqlite/connect-sqlite.ts'
import { hasPostgres } from '../../postgres.ts'
import { sharedPostgres, type SharedPostgres } from '../../shared-postgres.ts'
import { Harness, type Spoken } from '../harness.ts'

const oldKey = 'ab'.repeat(32)
const newKey = 'cd'.repeat(32)
const values = 45

let cli: Harness

beforeEach(async () => {
  cli = new Harness()
  cli.isStoreReal = true
  cli.env = { SVC_ROUTER_SEALING_KEY: oldKey, SVC_ROUTER_PEPPER: 'made-up-pepper-of-the-tests' }
  await run('accounts', 'create', 'ada')
})
afterEach(() => cli.remove())

async function run(...args: string[]): Promise<Spoken> {
  const spoken = await cli.say(...args)
  expect(spoken.code, spoken.err).toBe(0)
  return spoken
}

/** The sealer of the service with one key and nothing else. */
function sealerOf(key: string): Sealer {
  const path = join(cli.folder, 'none.yaml')
  const env = { ...cli.env, SVC_ROUTER_SEALING_KEY: key }
  const overrides = { data: cli.dataDir }
  const config = loadConfig({ path, explicit: false, overrides, env, random: systemRandom(), localSecrets: 'pretend' })
  const { keys } = createRuntime(config, { clock: systemClock(), random: systemRandom(), log: () => {} })
  return createSealer({ current: keys.current, random: systemRandom() })
}

/** The service with a new key, the old one as the previous one. */
function rotate(): string[] {
  cli.env['SVC_ROUTER_SEALING_KEY'] = newKey
  cli.env['OLD_KEY'] = oldKey
  const path = join(cli.folder, 'rotating.yaml')
  writeFileSync(path, `secrets: { previous_sealing_key_env: OLD_KEY }\n`)
  return ['--config', path]
}

const account = 'acc_1'

/** Every kind of encrypted value, as the service stores it. */
function fill(sealer: Sealer): void {
  using database = new DatabaseSync(databasePath(cli.dataDir))
  const insert = (sql: string, ...cells: (string | number | null)[]): unknown => database.prepare(sql).run(...cells)
  insert(`insert into accounts values (?, 'one', 'free', 0, 1)`, account)
  for (let n = 0; n < values; n++) {
    const credential = sealer.seal(credentialBinding(account, `up_${n}`), `credential ${n}`)
    insert(
      `insert into upstreams (id, account_id, provider, model, sealed_credential, position, created_at_ms)
        values (?, ?, 'p', 'm', ?, ?, 1)`,
      `up_${n}`,
      account,
      credential,
      n,
    )
    const item = sealer.seal(textBinding(account, 'conv_1', 'item'), `item ${n}`)
    insert(`insert into conversation_items values ('conv_1', ?, ?, ?, 1, ?)`, n, account, `digest ${n}`, item)
  }
  insert(
    `insert into upstreams (id, account_id, provider, model, position, created_at_ms) values ('up', ?, 'p', 'm', 99, 1)`,
    account,
  )
  const secrets = ['new', 'old'].map((secret) => sealer.seal(webhookBinding(account, 'whk_1'), secret))
  insert(`insert into webhooks values ('whk_1', ?, 'https://example.com/', ?, ?, 9, 1)`, account, ...secrets)
  const owner = sealer.seal(providerErrorBinding(null, 'req_1'), 'message')
  insert(`insert into provider_errors values ('per_1', 'req_1', 'b', null, 1, ?)`, owner)
  const texts = (['response', 'input', 'output'] as const).map((purpose) =>
    sealer.seal(textBinding(account, 'resp_1', purpose), purpose),
  )
  insert(`insert into stored_responses values ('resp_1', ?, null, 1, 0, 1, ?, ?, ?)`, account, ...texts)
  const metadata = sealer.seal(textBinding(account, 'conv_1', 'metadata'), '{}')
  insert(`insert into conversations values ('conv_1', ?, 1, 1, 1, 1, 1, ?)`, account, metadata)
  const response = sealer.seal(generationBinding(account, 'req_1', 'response'), '{}')
  insert(
    `insert into generations values (?, 'k', 'req_1', 'b', 'f', 0, 1, 'running', 1, 0, null, ?, 1, 1, 1, 1, 1)`,
    account,
    response,
  )
  const chunk = sealer.seal(generationBinding(account, 'req_1', 0), 'chunk')
  insert(`insert into generation_chunks values ('req_1', 0, ?, ?)`, account, chunk)
}

const all = 2 * values + 9

/** Decrypts every value with one key alone. @throws SealError if one needs another */
function readAll(sealer: Sealer): string[] {
  using database = new DatabaseSync(databasePath(cli.dataDir))
  const column = (sql: string): string[] =>
    database
      .prepare(sql)
      .all()
      .map((row) => String(Object.values(row)[0]))
  const credentials = column(
    `select sealed_credential from upstreams where sealed_credential is not null order by position`,
  )
  const items = column(`select sealed from conversation_items order by position`)
  return [
    ...credentials.map((value, n) => sealer.open(credentialBinding(account, `up_${n}`), value)),
    ...items.map((value) => sealer.open(textBinding(account, 'conv_1', 'item'), value)),
    ...['secret', 'previous'].map((name) =>
      sealer.open(webhookBinding(account, 'whk_1'), column(`select sealed_${name} from webhooks`)[0]!),
    ),
    sealer.open(providerErrorBinding(null, 'req_1'), column('select sealed from provider_errors')[0]!),
    ...(['response', 'input', 'output'] as const).map((purpose) =>
      sealer.open(
        textBinding(account, 'resp_1', purpose),
        column(`select sealed_${purpose} from stored_responses`)[0]!,
      ),
    ),
    sealer.open(textBinding(account, 'conv_1', 'metadata'), column('select sealed_metadata from conversations')[0]!),
    sealer.open(generationBinding(account, 'req_1', 'response'), column('select sealed_response from generations')[0]!),
    sealer.open(generationBinding(account, 'req_1', 0), column('select sealed from generation_chunks')[0]!),
  ]
}

test('after reseal, every value of every table is readable with the new key alone, and sizes are unchanged', async () => {
  fill(sealerOf(oldKey))
  const before = readAll(sealerOf(oldKey))
  const stored = storedBytes()
  const rotating = rotate()
  expect((await run('secrets', 'status', ...rotating)).out).toBe(
    `Not encrypted with the current sealing key: ${all} values.`,
  )
  const { out, err } = await run('secrets', 'reseal', ...rotating)
  expect(out).toBe(`encrypted ${all} values with the current sealing key`)
  expect(err).toContain('no longer needs the previous sealing key')
  expect(readAll(sealerOf(newKey))).toEqual(before)
  expect(() => readAll(sealerOf(oldKey))).toThrow('unknown_key')
  expect(storedBytes()).toEqual(stored)
  expect((await run('secrets', 'status', ...rotating)).out).toBe(
    'Every value is encrypted with the current sealing key.',
  )
  expect((await run('secrets', 'reseal', ...rotating)).out).toBe('encrypted 0 values with the current sealing key')
})

test('a value that no configured key decrypts is left as it is, and reported', async () => {
  fill(sealerOf(oldKey))
  cli.env['SVC_ROUTER_SEALING_KEY'] = newKey
  const status = await run('secrets', 'status')
  expect(status.out).toContain(`Encrypted with a key that is not configured: ${all} values.`)
  expect(status.err).toContain('If you still have the key, configure it as the previous one')
  expect(status.err).not.toContain('secrets reseal')
  const { code, err } = await cli.say('secrets', 'reseal')
  expect(code).toBe(1)
  expect(err).toContain(`${all} values cannot be decrypted with the configured keys`)
  expect(readAll(sealerOf(oldKey))).toHaveLength(all)
})

test('while the pepper changes, the status counts keys that were not used since', async () => {
  await run('keys', 'create', '--account', 'ada')
  cli.env['OLD_PEPPER'] = cli.env['SVC_ROUTER_PEPPER']!
  cli.env['SVC_ROUTER_PEPPER'] = 'another-pepper-of-the-tests'
  const path = join(cli.folder, 'peppers.yaml')
  writeFileSync(path, 'secrets: { previous_pepper_env: OLD_PEPPER }\n')
  expect((await run('secrets', 'status', '--config', path)).out).toContain(
    'Not used since the pepper changed: 1 API key.',
  )
  const { out } = await run('secrets', 'status', '--json', '--config', path)
  expect(JSON.parse(out)).toEqual({ other_key: 0, unknown_key: 0, other_pepper: 1 })
})

function storedBytes(): unknown {
  using database = new DatabaseSync(databasePath(cli.dataDir))
  return database.prepare('select * from stored_bytes').all()
}

describe.runIf(hasPostgres('changing the sealing key'))('on PostgreSQL', { timeout: 120_000 }, () => {
  let server: SharedPostgres
  beforeEach(async () => {
    server = await sharedPostgres()
  }, 60_000)

  test('reseal works the same', async () => {
    fill(sealerOf(oldKey))
    const before = readAll(sealerOf(oldKey))
    rotate()
    cli.env['TEST_DATABASE_URL'] = await server.createDatabase()
    const path = join(cli.folder, 'postgres.yaml')
    writeFileSync(path, 'database: { url_env: TEST_DATABASE_URL }\nsecrets: { previous_sealing_key_env: OLD_KEY }\n')
    await run('database', 'to-postgres', '--config', path)
    expect((await run('secrets', 'reseal', '--config', path)).out).toBe(
      `encrypted ${all} values with the current sealing key`,
    )
    await run('database', 'to-sqlite', '--config', path)
    expect(readAll(sealerOf(newKey))).toEqual(before)
  })
})
