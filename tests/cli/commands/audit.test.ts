import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Kysely, sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { requestManagedAccess } from '../../../src/accounts/managed-access/managed-access.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import type { Tables } from '../../../src/storage/schema/schema.ts'
import { createStore, type Store } from '../../../src/storage/store.ts'
import { openEmptySqlite } from '../../empty-database.ts'
import { Harness } from '../harness.ts'

let cli: Harness
let db: Kysely<Tables>
let store: Store
let inFolder: (name: string) => string

beforeEach(async () => {
  cli = new Harness()
  db = await openEmptySqlite(join(cli.folder, 'database'))
  store = createStore(db)
  cli.real = store
  cli.env['SVC_ROUTER_SEALING_KEY'] = 'ab'.repeat(32)
  cli.env['SVC_ROUTER_PEPPER'] = 'made-up-pepper-of-the-tests'
  inFolder = (name) => join(cli.folder, name)
})
afterEach(async () => {
  await store.close()
  cli.remove()
})

/** Runs a command that must succeed and keeps its output in a file, as a shell does. */
async function keep(name: string, ...args: string[]): Promise<string> {
  const { code, out } = await cli.say(...args)
  expect(code).toBe(0)
  writeFileSync(inFolder(name), `${out}\n`)
  return inFolder(name)
}

async function makeChanges(): Promise<void> {
  await cli.say('accounts', 'create', 'ada', '--plan', 'free')
  await cli.say('accounts', 'plan', 'ada', 'pro')
  await cli.say('accounts', 'suspend', 'ada')
  await cli.say('accounts', 'resume', 'ada')
  await cli.say('keys', 'create', '--account', 'ada')
}

describe('audit', () => {
  test('list shows who changed what, newest first, in pages, and for one account', async () => {
    await makeChanges()
    await cli.say('accounts', 'create', 'eve')
    const { out, err } = await cli.say('audit', 'list', '--limit', '2')
    expect(out).toMatch(
      /^NUMBER +TIME +BY +EVENT +DETAILS\n6 .* cli +account.created +accountId=acc_\w+ planId=free\n5 .*key.created/,
    )
    expect(err).toContain('audit list --before 5')
    const page = await cli.say('audit', 'list', '--before', '3', '--json')
    expect(JSON.parse(page.out)).toMatchObject([
      { sequence: 2, actor: { kind: 'cli' }, event: { type: 'account.plan_changed', planId: 'pro' } },
      { sequence: 1, event: { type: 'account.created' } },
    ])
    const ofEve = JSON.parse((await cli.say('audit', 'list', '--account', 'eve', '--json')).out) as unknown[]
    expect(ofEve).toHaveLength(1)
  })

  test('an export with its checkpoint can be verified without the database', async () => {
    await makeChanges()
    const file = await keep('audit.jsonl', 'audit', 'export')
    const checkpoint = await keep('checkpoint.json', 'audit', 'checkpoint')
    cli.openFailure = new Error('no database here')
    expect(await cli.say('audit', 'verify', '--file', file, '--checkpoint', checkpoint)).toMatchObject({
      code: 0,
      out: 'intact: 5 entries, proven through entry 5',
    })
    expect((await cli.say('audit', 'verify', '--file', file)).code).toBe(6)
    // On a machine without the sealing key the checkpoint is worth what its place is worth.
    cli.env['SVC_ROUTER_SEALING_KEY'] = 'cd'.repeat(32)
    expect((await cli.say('audit', 'verify', '--file', file, '--checkpoint', checkpoint)).code).toBe(6)
    expect((await cli.say('audit', 'verify', '--file', file, '--checkpoint', checkpoint, '--trust')).code).toBe(0)
  })

  test('a changed or truncated export, or a forged checkpoint, is reported with its position and reason', async () => {
    await makeChanges()
    const file = await keep('audit.jsonl', 'audit', 'export')
    const checkpoint = await keep('checkpoint.json', 'audit', 'checkpoint')
    const lines = readFileSync(file, 'utf8').split('\n')
    const verify = async (text: string, ...more: string[]) => {
      writeFileSync(inFolder('forged.jsonl'), text)
      return cli.say('audit', 'verify', '--file', inFolder('forged.jsonl'), '--checkpoint', checkpoint, ...more)
    }
    expect(await verify(lines.with(1, lines[1]!.replace('pro', 'max')).join('\n'))).toMatchObject({
      code: 1,
      out: expect.stringMatching(/^broken at entry 2: .*changed/) as string,
    })
    expect(await verify(`${lines.slice(0, 3).join('\n')}\n`)).toMatchObject({
      code: 1,
      out: expect.stringMatching(/^broken at entry 4: .*missing/) as string,
    })
    expect(JSON.parse((await verify('nothing\n', '--json')).out)).toEqual({
      state: 'broken',
      at: { sequence: 1, why: 'malformed' },
    })
    writeFileSync(checkpoint, readFileSync(checkpoint, 'utf8').replace('"sequence":5', '"sequence":3'))
    expect(await verify(`${lines.slice(0, 3).join('\n')}\n`)).toMatchObject({
      code: 1,
      out: expect.stringContaining('forged') as string,
    })
  })

  test('verify reports the same for the database, and a broken log is not signed', async () => {
    await makeChanges()
    expect((await cli.say('audit', 'verify')).code).toBe(6)
    const checkpoint = await keep('checkpoint.json', 'audit', 'checkpoint')
    await cli.say('accounts', 'create', 'eve')
    expect(await cli.say('audit', 'verify', '--checkpoint', checkpoint)).toMatchObject({
      code: 0,
      out: 'intact: 6 entries, proven through entry 5',
      err: expect.stringContaining('1 newer entry is not signed yet') as string,
    })
    await sql`drop trigger audit_log_no_delete`.execute(db)
    await sql`delete from audit_log where sequence = 4`.execute(db)
    expect(await cli.say('audit', 'verify')).toMatchObject({
      code: 1,
      out: 'broken at entry 4: the entry is missing, but a later one exists',
    })
    await sql`delete from audit_log where sequence > 4`.execute(db)
    expect(await cli.say('audit', 'checkpoint')).toMatchObject({
      code: 1,
      err: expect.stringContaining('audit verify') as string,
    })
  })

  test.each([
    [['--trust'], 'add --file FILE'],
    [['--file', 'nowhere.jsonl'], 'there is no file nowhere.jsonl'],
    [['--checkpoint', import.meta.filename], 'a file with the output of "audit checkpoint"'],
  ])('invalid arguments end with 2: %j', async (args, fix) => {
    const { code, err } = await cli.say('audit', 'verify', ...args)
    expect([code, err]).toEqual([2, expect.stringContaining(fix)])
  })
})

describe('accounts', () => {
  test('an account can be suspended once and resumed once', async () => {
    await cli.say('accounts', 'create', 'ada')
    expect((await cli.say('accounts', 'suspend', 'ada')).code).toBe(0)
    expect((await store.listAccounts(5))[0]?.suspended).toBe(true)
    expect(await cli.say('accounts', 'suspend', 'ada')).toMatchObject({ code: 1 })
    expect((await cli.say('accounts', 'resume', 'ada')).code).toBe(0)
    expect((await cli.say('accounts', 'resume', 'ada')).err).toContain('is not suspended')
  })
})

describe('managed access', () => {
  const config = `providers: { vendor: { preset: custom, base_url: "https://models.example/v1" } }
backends: { theirs: { provider: vendor, model: m, credential_env: MADE_UP, managed: true } }
`
  const say = (...args: string[]) => cli.say(...args, '--config', inFolder('svc-router.yaml'))
  beforeEach(async () => {
    writeFileSync(inFolder('svc-router.yaml'), config)
    cli.env['MADE_UP'] = 'made-up-credential-of-the-tests'
    await say('accounts', 'create', 'ada')
  })
  const request = async (): Promise<string> => {
    const [account] = await store.listAccounts(1)
    const parts = { store, clock: systemClock(), random: systemRandom(), pepper: new Secret('made up') }
    const actor = { kind: 'session', sessionId: 'ses_1', accountId: account!.id } as const
    return (await requestManagedAccess({ ...parts, actor }, account!.id)).id
  }

  test('status runs the checks, and managed access is on once the switch is on and all three pass', async () => {
    expect((await say('managed-access', 'status')).out).toMatch(
      /switch +off\ndurable quotas +proven\ndurable audit events +proven\nresale agreement with vendor +NOT recorded: managed access is off$/,
    )
    await say('managed-access', 'on')
    await say('managed-access', 'resale', 'vendor', '--note', 'CONTRACT-17')
    expect((await say('managed-access', 'status')).out).toMatch(
      /switch +on\n[^]*vendor +recorded: managed access is on$/,
    )
    cli.proof = () => Promise.reject(new Error('made up'))
    expect(JSON.parse((await say('managed-access', 'status', '--json')).out)).toMatchObject({
      durableQuotas: false,
      durableAudit: true,
      providers: [{ provider: 'vendor', resaleRecorded: true, on: false }],
    })
    await say('managed-access', 'resale', 'vendor', '--revoke')
    await say('managed-access', 'off')
    expect((await say('managed-access', 'off')).err).toContain('is already in that state')
    expect((await store.listAudit({ limit: 4 })).map(({ event }) => event.type)).toEqual([
      'managed.switched_off',
      'managed.resale_revoked',
      'managed.resale_recorded',
      'managed.switched_on',
    ])
  })

  test('a request can be listed, approved, and ended, but not decided twice', async () => {
    const id = await request()
    expect((await say('managed-access', 'requests', '--state', 'requested')).out).toContain(id)
    expect((await say('managed-access', 'approve', id)).code).toBe(0)
    expect((await say('managed-access', 'approve', id)).code).toBe(1)
    expect((await say('managed-access', 'reject', id)).code).toBe(0)
    expect((await say('managed-access', 'requests')).out).toContain('rejected')
    expect((await say('managed-access', 'approve', 'mar_none')).err).toContain('no such request')
  })

  test.each([
    [['resale', 'vendor'], 2],
    [['resale', 'vendor', '--note', 'N-1', '--revoke'], 2],
    [['resale', 'vendro', '--note', 'N-1'], 1],
    [['resale', 'vendor', '--note', 'sk-madeup0madeup0madeup0'], 1],
    [['resale', 'vendor', '--revoke'], 1],
    [['requests', '--state', 'lost'], 2],
  ])('%j is rejected', async (args, code) => {
    expect((await say('managed-access', ...args)).code).toBe(code)
    expect((await store.managedAccess()).controls).toEqual([])
  })
})
