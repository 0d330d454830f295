import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createAdminToken } from '../../../src/accounts/admin/admin-tokens.ts'
import { exitCodes } from '../../../src/cli/failures.ts'
import { Service } from '../../service.ts'
import { Harness } from '../harness.ts'

let cli: Harness
let path: string
beforeEach(async () => {
  cli = new Harness()
  cli.isStoreReal = true
  path = join(cli.folder, 'service.yaml')
  expect((await cli.say('accounts', 'create', 'visitor')).code).toBe(0)
})
afterEach(() => cli.remove())

const file = `version: 1
plans:
  team: {name: Team, requests_per_minute: 60, requests_per_month: 5000}
accounts:
  acme:
    plan: team
    keys:
      ci: {requests_per_minute: 30}
`

async function events(): Promise<number> {
  return (JSON.parse((await cli.say('audit', 'list', '--json')).out) as unknown[]).length
}

test('apply makes the changes once, diff then finds none, and the export can be applied', async () => {
  writeFileSync(path, file)
  const before = await cli.say('diff', '-f', path)
  expect(before.code).toBe(exitCodes.different)
  expect(before.out).toMatchInlineSnapshot(`
    "+ plans.team
        name: Team
        requests_per_minute: 60
        requests_per_month: 5000
    + accounts.acme
        plan: team
    + accounts.acme.keys.ci
        requests_per_minute: 30

    Not in the file, and not changed:
      accounts.visitor"
  `)
  expect((await cli.say('apply', '--file', path, '--dry-run')).code).toBe(exitCodes.different)
  const applied = await cli.say('apply', '-f', path)
  expect([applied.code, applied.out]).toEqual([0, expect.stringMatching(/^accounts\.acme\.keys\.ci: sk_svc_\w{38}$/m)])
  const count = await events()
  const again = await cli.say('apply', '-f', path)
  expect(again).toMatchObject({ code: 0, err: expect.stringContaining('No changes.') as string })
  expect((await cli.say('diff', '-f', path)).code).toBe(0)
  const exported = (await cli.say('export')).out
  expect(exported).not.toContain('sk_svc_')
  expect(await events()).toBe(count)
  writeFileSync(path, exported)
  const adopted = await cli.say('apply', '-f', path, '--prune')
  expect(adopted.out).toMatchInlineSnapshot(`
    "+ plans.free (so far only in the configuration)
    + plans.max (so far only in the configuration)
    + plans.pro (so far only in the configuration)"
  `)
  expect((await cli.say('apply', '-f', path, '--prune')).err).toContain('No changes.')
  const listed = (await cli.say('accounts', 'create', 'second', '--plan', 'team')).code
  expect(listed).toBe(0)
})

test('new keys can be written to a private file, which is never overwritten', async () => {
  const secrets = join(cli.folder, 'keys.jsonl')
  cli.stdin = file
  const applied = await cli.say('apply', '-f', '-', '--secrets-out', secrets)
  expect(applied.code).toBe(0)
  expect(applied.out + applied.err).not.toContain('sk_svc_')
  expect(statSync(secrets).mode & 0o777).toBe(0o600)
  expect(JSON.parse(readFileSync(secrets, 'utf8'))).toMatchObject({
    account: 'acme',
    name: 'ci',
    key: expect.stringMatching(/^sk_svc_/),
  })
  cli.stdin = file.replace('ci:', 'other:')
  expect(await cli.say('apply', '-f', '-', '--secrets-out', secrets)).toMatchObject({ code: exitCodes.usage })
  expect((await cli.say('keys', 'list', '--account', 'acme', '--json')).out).not.toContain('other')
})

test('an apply without new keys leaves no file for them, so that a deployment can repeat it', async () => {
  const secrets = join(cli.folder, 'none.jsonl')
  writeFileSync(path, 'version: 1\nplans: {team: {name: Team, requests_per_minute: 1, requests_per_month: 1}}\n')
  for (const _ of ['first', 'again'])
    expect((await cli.say('apply', '-f', path, '--secrets-out', secrets)).code).toBe(0)
  expect(existsSync(secrets)).toBe(false)
})

test('pruning names what it deletes, and does nothing without --yes', async () => {
  writeFileSync(path, file)
  await cli.say('apply', '-f', path)
  writeFileSync(path, 'version: 1\nplans: {}\naccounts: {}\n')
  const asked = await cli.say('apply', '-f', path, '--prune')
  expect(asked.code).toBe(exitCodes.usage)
  expect(asked.err).toContain(
    'this would delete accounts.acme, plans.team, which cannot be undone. Nothing was changed',
  )
  const secrets = join(cli.folder, 'keys.jsonl')
  expect((await cli.say('apply', '-f', path, '--prune', '--secrets-out', secrets)).err).toContain(
    ` --prune --secrets-out ${secrets} --yes`,
  )
  expect((await cli.say('accounts', 'list')).out).toContain('acme')
  expect((await cli.say('apply', '-f', path, '--prune', '--yes')).code).toBe(0)
  const { out } = await cli.say('accounts', 'list')
  expect(out).not.toContain('acme')
  expect(out).toContain('visitor')
})

test('a credential that is not set here and a profile without backends are pointed out', async () => {
  writeFileSync(
    path,
    `version: 1
backends:
  one: {provider: openai, model: m, credential_env: FIRST_KEY}
  two: {provider: openai, model: m, credential_env: SECOND_KEY}
profiles:
  my/empty: {backends: []}
  my/one: {backends: [one]}
`,
  )
  cli.env = { FIRST_KEY: 'made-up-credential' }
  for (const command of ['diff', 'apply']) {
    const { out, err } = await cli.say(command, '-f', path)
    expect(out).toContain('+ profiles.my/empty\n    no backends\n+ profiles.my/one\n    backends: one')
    expect(err).toContain('SECOND_KEY, the credential of backend two, is not set here. It must be set on every node.')
    expect(err).not.toContain('FIRST_KEY')
  }
})

test('a problem is reported at its line, a secret is never repeated, and nothing changes', async () => {
  writeFileSync(path, `${file}      ci: {}\n  bad:\n    plan: nope\n`)
  const repeated = await cli.say('apply', '-f', path)
  expect(repeated).toMatchObject({
    code: exitCodes.config,
    err: expect.stringMatching(/appears twice\n.*service\.yaml:9:7/) as string,
  })
  writeFileSync(path, `${file}  bad:\n    plan: nope\n`)
  const unknown = await cli.say('apply', '-f', path)
  expect(unknown.err).toMatch(/there is no plan "nope"\n.*service\.yaml:10:11/)
  expect(unknown.err).toContain('1 problem in the file. Nothing was changed.')
  const json = await cli.say('diff', '-f', path, '--json')
  expect(JSON.parse(json.err)).toMatchObject({ error: { problems: [{ path: 'accounts.bad.plan', line: 10 }] } })
  writeFileSync(path, `version: 1\nprofiles:\n  my/p: {description: sk-proj-abc123def456ghi789}\n`)
  const secret = await cli.say('apply', '-f', path)
  expect(secret.code).toBe(exitCodes.config)
  expect(secret.err).not.toContain('abc123def456')
  expect((await cli.say('apply', '-f', join(cli.folder, 'missing'))).code).toBe(exitCodes.usage)
  writeFileSync(path, `version: 1\naccounts: ${'['.repeat(50_000)}`)
  expect((await cli.say('apply', '-f', path)).code).toBe(exitCodes.config)
  expect(existsSync(cli.dataDir)).toBe(true)
  expect((await cli.say('accounts', 'list')).out).not.toContain('acme')
})

test('a stored setting that no longer fits the configuration is named, and apply repairs it', async () => {
  const config = join(cli.folder, 'svc-router.yaml')
  writeFileSync(config, 'providers:\n  house: {preset: custom, base_url: "http://127.0.0.1:1/v1"}\n')
  writeFileSync(path, 'version: 1\nbackends:\n  own: {provider: house, model: m}\n')
  expect((await cli.say('apply', '-f', path, '--config', config)).code).toBe(0)
  const broken = await cli.say('accounts', 'list')
  expect(broken.code).toBe(exitCodes.config)
  expect(broken.err).toContain('declared settings at backends.own.provider')
  writeFileSync(path, 'version: 1\nbackends: {}\n')
  expect((await cli.say('apply', '-f', path, '--prune', '--yes')).code).toBe(0)
  expect((await cli.say('accounts', 'list')).code).toBe(0)
})

test('with --url and a token, the same commands work on a service elsewhere', async () => {
  const service = await Service.start({ settings: { admin_api: { enabled: true } } })
  try {
    const mint = async (scope: 'read' | 'write'): Promise<string> => {
      const deps = { ...service.accountsDeps, store: service.store }
      return (await createAdminToken(deps, { name: scope, scope, days: 1 })).secret.reveal()
    }
    const remote = ['--url', service.config.appUrl]
    cli.stdin = file
    expect(await cli.say('diff', '-f', '-', ...remote)).toMatchObject({ code: exitCodes.auth })
    cli.env = { SVC_ROUTER_ADMIN_TOKEN: await mint('read') }
    expect(await cli.say('diff', '-f', '-', ...remote)).toMatchObject({ code: exitCodes.different })
    const refused = await cli.say('apply', '-f', '-', ...remote)
    expect(refused).toMatchObject({
      code: exitCodes.auth,
      err: expect.stringContaining('The token may only read') as string,
    })
    cli.env = { ELSEWHERE: await mint('write') }
    const variable = [...remote, '--token-variable', 'ELSEWHERE']
    expect((await cli.say('diff', '-f', '-', ...variable)).err).toContain(
      `apply -f - --url ${service.config.appUrl} --token-variable ELSEWHERE`,
    )
    const applied = await cli.say('apply', '-f', '-', ...variable)
    expect(applied).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^accounts\.acme\.keys\.ci: sk_svc_/m) as string,
    })
    expect((await cli.say('diff', '-f', '-', ...variable)).code).toBe(0)
    cli.stdin = (await cli.say('export', ...variable)).out
    expect(cli.stdin).toContain('acme:')
    expect((await cli.say('diff', '-f', '-', ...variable)).out).toContain(
      '+ plans.free (so far only in the configuration)',
    )
    expect((await cli.say('apply', '-f', '-', '--prune', ...variable)).code).toBe(0)
    expect((await cli.say('apply', '-f', '-', '--prune', ...variable)).err).toContain('No changes.')
    cli.stdin = file.replace('plan: team', 'plan: nope')
    const invalid = await cli.say('apply', '-f', '-', ...variable)
    expect(invalid).toMatchObject({
      code: exitCodes.config,
      err: expect.stringContaining('at accounts.acme.plan') as string,
    })
    expect((await cli.say('export', '--url', 'http://example.com')).code).toBe(exitCodes.usage)
    expect((await cli.say('export', '--url', service.origin, '--token-variable', 'ELSEWHERE')).code).toBe(
      exitCodes.failure,
    )
  } finally {
    await service.stop()
  }
})
