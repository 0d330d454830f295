import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { digestTables, readTables } from '../../../src/storage/backup/table-contents.ts'
import { databasePath } from '../../../src/storage/sqlite/connect-sqlite.ts'
import { Harness, type Spoken } from '../harness.ts'

let cli: Harness
let file: string
/** A second service with the same secrets and an empty data folder. */
let other: Harness

beforeEach(() => {
  cli = new Harness()
  other = new Harness()
  for (const harness of [cli, other]) {
    harness.isStoreReal = true
    harness.env['SVC_ROUTER_SEALING_KEY'] = 'ab'.repeat(32)
    harness.env['SVC_ROUTER_PEPPER'] = 'made-up-pepper-of-the-tests'
  }
  cli.hasStore = true
  file = join(cli.folder, 'all.backup')
})
afterEach(() => {
  cli.remove()
  other.remove()
})

async function run(harness: Harness, ...args: string[]): Promise<Spoken> {
  const spoken = await harness.say(...args)
  expect(spoken.code, spoken.err).toBe(0)
  return spoken
}

async function runJson<Value>(harness: Harness, ...args: string[]): Promise<Value> {
  return JSON.parse((await run(harness, ...args, '--json')).out) as Value
}

interface KeyLine {
  readonly id: string
  readonly state: string
}

async function makeData(): Promise<string> {
  await run(cli, 'accounts', 'create', 'ada', '--plan', 'pro')
  await run(cli, 'accounts', 'create', 'eve')
  await run(cli, 'keys', 'create', '--account', 'ada')
  return (await runJson<KeyLine[]>(cli, 'keys', 'list', '--account', 'ada'))[0]!.id
}

/** What a data folder contains, table by table. */
function contents({ dataDir }: Harness): ReturnType<typeof digestTables> {
  using database = new DatabaseSync(databasePath(dataDir), { readOnly: true })
  return digestTables(database, readTables(database))
}

/** What a data folder contains after a restore that failed. */
const failedRestore = ['owner.db', 'svc-router.db.restoring']
const changedByRestore = ['audit_checkpoints', 'audit_head', 'audit_log', 'revisions']

test('a backup is one private file, and a restore brings back every table by content', async () => {
  await makeData()
  const before = contents(cli)
  const { out, err } = await run(cli, 'backup', file)
  expect(out).toContain(`backup    ${file}`)
  expect(out).toContain('2 accounts, 1 key, 0 requests, audit log to entry 3')
  expect(err).toContain('store SVC_ROUTER_PEPPER and SVC_ROUTER_SEALING_KEY somewhere else')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readdirSync(cli.folder).sort()).toEqual(['all.backup', 'data'])
  // The database was only read.
  expect(contents(cli)).toEqual(before)

  await run(other, 'restore', file, '--accept-lost-changes')
  const after = contents(other)
  expect(Object.keys(after)).toEqual(Object.keys(before))
  for (const [table, content] of Object.entries(before))
    if (!changedByRestore.includes(table)) expect(after[table], table).toEqual(content)
  expect(after['audit_log']!.rows).toBe(before['audit_log']!.rows + 1)
  expect(await runJson(other, 'audit', 'list', '--limit', '1')).toMatchObject([
    { sequence: 4, actor: { kind: 'cli' }, event: { type: 'backup.restored', reapplied: 0 } },
  ])
  expect(await runJson(other, 'audit', 'verify')).toEqual({ state: 'intact', entries: 4, provenTo: 4 })
  expect(readdirSync(other.dataDir).sort()).toEqual(['audit-checkpoint.json', 'owner.db', 'svc-router.db'])
})

test('a restore with the later audit log takes away again what was taken away, and its log has no gap', async () => {
  const keyId = await makeData()
  await run(cli, 'operators', 'create', 'boss@example.com', '--role', 'admin')
  await run(cli, 'operators', 'create', 'old@example.com', '--role', 'admin')
  await run(cli, 'operators', 'create', 'less@example.com', '--role', 'support')
  await run(cli, 'operators', 'create', 'more@example.com', '--role', 'viewer')
  await run(cli, 'keys', 'create', '--account', 'ada', '--name', 'turned')
  await run(cli, 'backup', file)
  await run(cli, 'keys', 'revoke', keyId, '--yes')
  const turned = (await runJson<KeyLine[]>(cli, 'keys', 'list', '--account', 'ada')).find(({ id }) => id !== keyId)!.id
  await run(cli, 'keys', 'rotate', turned)
  await run(cli, 'keys', 'create', '--account', 'ada')
  await run(cli, 'accounts', 'suspend', 'eve')
  await run(cli, 'accounts', 'plan', 'ada', 'free')
  await run(cli, 'operators', 'remove', 'old@example.com')
  await run(cli, 'operators', 'role', 'less@example.com', '--role', 'viewer')
  await run(cli, 'operators', 'role', 'more@example.com', '--role', 'admin')
  await run(cli, 'backends', 'quarantine', 'simulated-alpha')
  const exported = join(cli.folder, 'audit.jsonl')
  writeFileSync(exported, `${(await run(cli, 'audit', 'export')).out}\n`)

  const { err } = await run(other, 'restore', file, '--since', exported)
  expect(err).toContain('Reapplied 8 changes from 9 later audit entries.')
  expect(err).toContain('Not applied, because the log does not contain the data that they need: 1 key.created.')
  const keys = await runJson<KeyLine[]>(other, 'keys', 'list', '--account', 'ada')
  expect(new Map(keys.map(({ id, state }) => [id, state]))).toEqual(
    new Map([
      [keyId, 'revoked'],
      [turned, 'retiring'],
    ]),
  )
  expect(await runJson(other, 'accounts', 'list')).toMatchObject([
    { name: 'ada', planId: 'free' },
    { name: 'eve', suspended: true },
  ])
  const operators = (await run(other, 'operators', 'list')).out
  expect(operators).toMatch(/old@example.com +admin +removed/)
  expect(operators).toMatch(/less@example.com +viewer +active/)
  // An entry never gives more rights.
  expect(operators).toMatch(/more@example.com +viewer +active/)
  expect((await run(other, 'backends', 'list')).out).toMatch(/simulated-alpha.*quarantined/)
  const lines = (await run(other, 'audit', 'export')).out.split('\n')
  expect(lines.slice(0, -1)).toEqual((await run(cli, 'audit', 'export')).out.split('\n'))
  expect(await runJson(other, 'audit', 'verify')).toMatchObject({ state: 'intact' })
})

test('an audit log that does not continue the backup changes nothing', async () => {
  await makeData()
  const early = join(cli.folder, 'early.jsonl')
  writeFileSync(early, `${(await run(cli, 'audit', 'export')).out}\n`)
  await run(cli, 'accounts', 'create', 'later')
  await run(cli, 'backup', file)
  const lines = (await run(cli, 'audit', 'export')).out
  const logs = { early: '', other: lines.replace('"planId":"pro"', '"planId":"max"'), text: 'nothing of the kind\n' }
  for (const [name, text] of Object.entries(logs)) {
    const path = join(cli.folder, `${name}.jsonl`)
    if (text !== '') writeFileSync(path, text)
    const { code, err } = await other.say('restore', file, '--since', path)
    expect(code).toBe(1)
    expect(err).toContain('does not continue the audit log of the backup')
    expect(readdirSync(other.dataDir)).toEqual(failedRestore)
  }
})

test('after a rejected restore, nothing starts in the empty folder until a restore succeeds or the mark is deleted', async () => {
  await makeData()
  await run(cli, 'backup', file)
  const bad = join(cli.folder, 'bad.backup')
  writeFileSync(bad, readFileSync(file).subarray(0, 50_000))
  const rejected: (readonly string[])[] = [
    [bad, '--accept-lost-changes'],
    [file, '--since', bad],
    [join(cli.folder, 'missing.backup'), '--accept-lost-changes'],
    [file, '--since', join(cli.folder, 'missing.jsonl')],
  ]
  const mark = join(other.dataDir, 'svc-router.db.restoring')
  mkdirSync(other.dataDir)
  for (const args of rejected) {
    expect((await other.say('restore', ...args)).code).toBe(1)
    expect(readdirSync(other.dataDir)).toEqual(failedRestore)
    expect(statSync(mark).size).toBe(0)
    const { code, err } = await other.say('accounts', 'list')
    expect(code).toBe(3)
    expect(err).toContain('this data folder has no database, because a restore into it did not succeed')
    expect(err).toContain('run svc-router restore FILE again, with a good backup')
    expect(err).toContain(`to start without data, delete ${mark}`)
    if (args[0] === bad) rmSync(other.dataDir, { recursive: true })
  }
  await run(other, 'restore', file, '--accept-lost-changes')
  expect(existsSync(mark)).toBe(false)
  expect((await run(other, 'accounts', 'list')).out).toContain('ada')

  rmSync(other.dataDir, { recursive: true })
  expect((await other.say('restore', bad, '--accept-lost-changes')).code).toBe(1)
  rmSync(mark)
  expect((await run(other, 'accounts', 'list')).out).not.toContain('ada')
})

test('a restore asks what to do about later changes, and overwrites nothing', async () => {
  await makeData()
  await run(cli, 'backup', file)
  const undecided = await other.say('restore', file)
  expect(undecided.code).toBe(2)
  expect(undecided.err).toContain('keys that were revoked after the backup would work again')
  expect((await other.say('restore', file, '--since', file, '--accept-lost-changes')).code).toBe(2)
  expect(existsSync(other.dataDir)).toBe(false)

  mkdirSync(other.dataDir)
  writeFileSync(join(other.dataDir, 'notes.txt'), 'mine')
  const { code, err } = await other.say('restore', file, '--accept-lost-changes')
  expect(code).toBe(1)
  expect(err).toContain('is not empty (notes.txt)')
  expect(readdirSync(other.dataDir)).toEqual(['notes.txt'])
  const again = await cli.say('restore', file, '--accept-lost-changes')
  expect(again.code).toBe(1)
  expect(again.err).toContain('is not empty')
})

test('a restore needs the secrets of the service: a backup contains none', async () => {
  await makeData()
  await run(cli, 'backup', file)
  const refusals: [env: Record<string, string>, reason: string][] = [
    [{}, 'cannot be used without the secrets of the service'],
    [
      { SVC_ROUTER_SEALING_KEY: 'ab'.repeat(32), SVC_ROUTER_PEPPER: 'another-pepper-of-the-tests' },
      'a different pepper',
    ],
    [
      { SVC_ROUTER_SEALING_KEY: 'cd'.repeat(32), SVC_ROUTER_PEPPER: 'made-up-pepper-of-the-tests' },
      'was signed with another sealing key',
    ],
  ]
  for (const [env, reason] of refusals) {
    other.env = env
    for (const choice of ['--check', '--accept-lost-changes']) {
      const { code, err } = await other.say('restore', file, choice)
      expect(code).toBe(1)
      expect(err).toContain(reason)
    }
    expect(existsSync(databasePath(other.dataDir))).toBe(false)
  }
  await run(other, 'restore', file, '--accept-lost-changes', '--trust')
})

test('a backup says where it cannot be written, and replaces nothing', async () => {
  await makeData()
  await run(cli, 'backup', file)
  const places: [path: string, reason: string][] = [
    [file, 'already exists'],
    [join(cli.dataDir, 'b.backup'), 'inside the data folder'],
    [join(cli.folder, 'missing', 'b.backup'), 'there is no folder'],
    ['/proc/b.backup', 'free'],
  ]
  for (const [path, reason] of places) {
    const { code, err } = await cli.say('backup', path)
    expect(code, path).toBe(1)
    expect(err).toContain(reason)
  }
  expect((await cli.say('backup')).code).toBe(2)
  expect((await cli.say('backup', join(cli.folder, 'c.backup'), '--keep', '2')).err).toContain(
    '--keep requires a folder',
  )
  cli.hasStore = false
  expect((await cli.say('backup', join(cli.folder, 'd.backup'))).code).toBe(3)
})

test('--keep deletes the oldest backups of a folder and touches no other file', async () => {
  await makeData()
  const folder = join(cli.folder, 'backups')
  mkdirSync(folder)
  const old = ['svc-router-20250101T000000Z.backup', 'svc-router-20250102T000000Z.backup']
  const others = ['svc-router-2025.backup', 'mine.backup', 'svc-router-20250101T000000Z.backup.gz']
  for (const name of [...old, ...others]) writeFileSync(join(folder, name), '')
  await run(cli, 'backup', folder, '--keep', '2')
  const names = readdirSync(folder)
  expect(names.filter((name) => others.includes(name)).sort()).toEqual(others.toSorted())
  const kept = names.filter((name) => !others.includes(name)).sort()
  expect(kept).toHaveLength(2)
  expect(kept[0]).toBe(old[1])
  await run(cli, 'restore', join(folder, kept[1]!), '--check')
})

test('services that share a folder do not disturb each other, and what a killed one left is deleted', async () => {
  await makeData()
  const folder = join(cli.folder, 'backups')
  mkdirSync(folder)
  const running = 'svc-router-20250102T000000Z.backup.partial'
  const left = ['svc-router-20250101T000000Z.backup.partial', 'svc-router-20250101T000000Z.backup.a1B2.partial']
  for (const name of [running, ...left]) writeFileSync(join(folder, name), '')
  const longAgo = new Date(Date.now() - 2 * 3_600_000)
  for (const name of left) utimesSync(join(folder, name), longAgo, longAgo)
  await run(other, 'accounts', 'create', 'bob')
  const spoken = await Promise.all([cli.say('backup', folder), other.say('backup', folder)])
  // Those that begin in the same second have the same name, and the first to end gets it.
  for (const { code, err } of spoken) if (code !== 0) expect(err).toContain('already exists')
  const names = readdirSync(folder)
  expect(names.filter((name) => name.endsWith('.partial'))).toEqual([running])
  const complete = names.filter((name) => name.endsWith('.backup'))
  expect(complete).toHaveLength(spoken.filter(({ code }) => code === 0).length)
  expect(complete).not.toEqual([])
  for (const name of complete) await run(cli, 'restore', join(folder, name), '--check')
})

test('a broken audit log is backed up with a warning, deletes no older backup, and is restored only on request', async () => {
  await makeData()
  const folder = join(cli.folder, 'backups')
  mkdirSync(folder)
  await run(cli, 'backup', folder)
  const earlier = ['svc-router-20250101T000000Z.backup', 'svc-router-20250102T000000Z.backup']
  renameSync(join(folder, readdirSync(folder)[0]!), join(folder, earlier[0]!))
  copyFileSync(join(folder, earlier[0]!), join(folder, earlier[1]!))
  {
    using database = new DatabaseSync(databasePath(cli.dataDir))
    database.exec('drop trigger audit_log_no_update')
    database.exec(`update audit_log set entry = replace(entry, '"planId":"pro"', '"planId":"max"') where sequence = 1`)
  }
  const foreign = await cli.say('backup', file)
  expect(foreign.code).toBe(1)
  expect(foreign.err).toContain('triggers that svc-router did not create')
  {
    using database = new DatabaseSync(databasePath(cli.dataDir))
    database.exec(
      `create trigger audit_log_no_update before update on audit_log begin select raise(abort, 'audit_log is append-only'); end`,
    )
  }
  const broken = await cli.say('backup', folder, '--keep', '1')
  expect(broken.code).toBe(1)
  expect(broken.err).toContain('its audit log is broken at entry 1')
  expect(readdirSync(folder).filter((name) => earlier.includes(name))).toHaveLength(2)
  const path = /^backup +(.*)$/m.exec(broken.out)![1]!
  const refused = await other.say('restore', path, '--accept-lost-changes')
  expect(refused.code).toBe(1)
  expect(refused.err).toContain('is broken at entry 1')
  rmSync(other.dataDir, { recursive: true, force: true })
  await run(other, 'restore', path, '--accept-lost-changes', '--trust')
})
