import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { commands } from '../../src/cli/commands.ts'
import { findPreset, presetNames } from '../../src/config/presets.ts'
import { isWellFormedKey } from '../../src/domain/keys.ts'
import type { RequestRecord } from '../../src/domain/requests.ts'
import { accountFile } from '../providers/google-account.ts'
import { requestOpening } from '../request-opening.ts'
import { Harness } from './harness.ts'

let cli: Harness
beforeEach(() => {
  cli = new Harness()
})
afterEach(() => cli.remove())

const record: RequestRecord = {
  ...requestOpening,
  charged: 1,
  attempts: [
    { backend: 'a', outcome: 'server_error', status: 503, ms: 11 },
    { backend: 'b', outcome: 'answered', status: 200, ms: 40.4, upstreamRequestId: 'up-1' },
  ],
  usage: { inputTokens: 3, outputTokens: 5, cachedTokens: 0, reasoningTokens: 0, source: 'estimated' },
  firstContentMs: 30,
  totalMs: 52,
  state: 'done',
  admittedAtMs: Date.UTC(2026, 10, 20),
  periodId: '2026-11',
}

describe('every command', () => {
  test.each(commands.map(({ name }) => name))(
    '%s explains itself, by --help and by help, and touches nothing',
    async (name) => {
      const byOption = await cli.say(...name.split(' '), '--help')
      const byCommand = await cli.say('help', ...name.split(' '))
      expect(byOption).toEqual({ code: 0, out: byCommand.out, err: '' })
      expect(byOption.out).toContain(`Usage: npx svc-router ${name}`)
      expect(byOption.out).toContain('--json')
      expect(cli.seen).toEqual([])
    },
  )

  test('the example of start needs no configuration file', async () => {
    const { out } = await cli.say('help', 'start')
    expect(out).toMatch(/^Example: npx svc-router start --port 8787 --data \.\/data$/m)
  })

  test.each([[['keys', '--help']], [['help', 'keys']]])(
    'the first word of several commands explains those alone: %j',
    async (args) => {
      const said = await cli.say(...args)
      const names = said.out.split('\n').flatMap((line) => /^ {2}(\w+ \w+)/.exec(line)?.[1] ?? [])
      expect(names).toEqual(['keys create', 'keys list', 'keys limit', 'keys rotate', 'keys revoke'])
    },
  )

  test.each([[[]], [['help']], [['--help']]])(
    'without a command, an overview of all commands is printed: %j',
    async (args) => {
      const { code, out } = await cli.say(...args)
      expect(code).toBe(0)
      for (const { name } of commands) expect(out).toContain(`  ${name}`)
    },
  )

  test("version prints its own version and Node's", async () => {
    expect(await cli.say('version')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^svc-router \d+\.\d+\.\d+$/) as string,
    })
    expect(JSON.parse((await cli.say('version', '--json')).out)).toEqual({
      version: expect.any(String) as string,
      node: process.versions.node,
    })
  })
})

test('managed-access resale without configured providers says where to add one', async () => {
  const said = await cli.say('managed-access', 'resale', 'openai', '--note', 'N-1')
  expect(said).toMatchObject({ code: 1, out: '' })
  expect(said.err).toContain('add it to "providers" in the configuration')
})

describe('invalid arguments end with exit code 2 and the next command', () => {
  test.each([
    [['stort'], 'did you mean "npx svc-router start"?'],
    [['keys', 'crate'], 'did you mean "npx svc-router keys create"?'],
    [['keys'], 'one of: keys create, keys list, keys limit, keys rotate, keys revoke'],
    [['frobnicate'], 'npx svc-router help'],
    [['keys', 'create', '--nam', 'x'], 'did you mean --name?'],
    [['keys', 'create', '--name'], '--name NAME'],
    [['keys', 'create', '--json=yes'], '--json'],
    [['keys', 'create', 'laptop'], 'npx svc-router help keys create'],
    [['keys', 'rotate'], 'npx svc-router keys list'],
    [['keys', 'rotate', 'key_1', '--overlap', '2h'], '--overlap 24h'],
    [['keys', 'revoke', 'key_1'], 'keys revoke key_1 --yes'],
    [['accounts', 'create'], 'accounts create NAME'],
    [['accounts', 'plan', 'local'], 'accounts plan ACCOUNT PLAN'],
    [['requests', '--limit', '0'], '--limit 20'],
    [['start', '--port', '70000'], '--port 8787'],
    [['upstream', 'add', 'opnai', '--model', 'm'], 'did you mean "openai"?'],
    [['upstream', 'add', 'openai'], '--model gpt-5.1'],
    [['upstream', 'add', 'custom', '--model', 'm'], '--base-url https://'],
    [['upstream', 'add', 'ollama', '--model', 'm', '--base-url', 'localhost:11434'], '--base-url https://'],
    [
      ['upstream', 'add', 'ollama', '--model', 'm', '--base-url', 'https://x.example/v1?key=sk-madeup0madeup0madeup0'],
      '--credential-env NAME',
    ],
    [['upstream', 'add', 'ollama', '--model', 'm', '--format', 'soap'], '--format openai-chat'],
    [['upstream', 'remove', 'ups_1'], 'upstream remove ups_1 --yes'],
  ])('%j', async (args, fix) => {
    const { code, out, err } = await cli.say(...args)
    expect([code, out]).toEqual([2, ''])
    expect(err).toMatch(/^error: .+\n {2}= fix: .+$/)
    expect(err).toContain(fix)
    expect(cli.seen).toEqual([])
  })

  test.each([
    ['http://models.example/v1', 2],
    ['https://models.example/v1', 0],
  ])('in production, a credential is sent only over https: %s ends with %i', async (baseUrl, expected) => {
    cli.env = {
      NODE_ENV: 'production',
      SVC_ROUTER_PEPPER: 'made-up-pepper-of-the-tests',
      SVC_ROUTER_SEALING_KEY: Buffer.alloc(32, 7).toString('base64'),
      MADE_UP: 'made-up-credential',
    }
    const path = join(cli.folder, 'mine.yaml')
    writeFileSync(path, 'app_url: https://app.example.com')
    await cli.say('accounts', 'create', 'ada', '--config', path)
    const args = ['custom', '--model', 'm', '--base-url', baseUrl, '--credential-env', 'MADE_UP', '--account', 'ada']
    const { code, err } = await cli.say('upstream', 'add', ...args, '--config', path)
    expect([code, err.includes('sent only over https')]).toEqual([expected, expected === 2])
  })

  test.each([['--api-key', 'made-up-secret-1'], ['--token=made-up-secret-1'], ['made-up-secret-1']])(
    'a secret among the arguments is refused and not repeated: %s',
    async (...args) => {
      const { code, err } = await cli.say('upstream', 'add', 'openai', '--model', 'm', ...args)
      expect(code).toBe(2)
      expect(err).not.toContain('made-up-secret-1')
    },
  )

  test('"reload" is refused with what to do instead', async () => {
    const { code, out, err } = await cli.say('reload')
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain('cannot reload its configuration file')
    expect(err).toContain('restart the nodes one at a time')
  })

  test('options before the command are refused with where they belong', async () => {
    const { code, out, err } = await cli.say('--config', 'other.yaml', 'status')
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain('must start with a command')
    expect(err).toContain('write options after the command')
  })

  test('with --json an error is JSON on standard error', async () => {
    const { out, err } = await cli.say('stort', '--json')
    expect(out).toBe('')
    expect(JSON.parse(err)).toMatchObject({ error: { message: 'there is no such command', exit_code: 2 } })
  })

  test('colors are printed only if they are enabled', async () => {
    cli.colors = true
    expect((await cli.say('stort')).err).toContain('\u001B[31m')
    expect((await cli.say('stort', '--no-color')).err).not.toContain('\u001B')
  })
})

describe('keys', () => {
  beforeEach(async () => {
    await cli.say('accounts', 'create', 'local', '--plan', 'max')
  })

  test('create prints only the key to standard output, and the next command to standard error', async () => {
    const { code, out, err } = await cli.say('keys', 'create', '--name', 'laptop')
    expect([code, isWellFormedKey(out)]).toEqual([0, true])
    expect(err).toContain('shown only once')
    expect(err).toContain(`npx svc-router keys list --data ${cli.dataDir}`)
    expect(err).not.toContain(out)
  })

  test('a printed command names the same account, if the command has that option', async () => {
    await cli.say('accounts', 'create', 'team a')
    const { err } = await cli.say('keys', 'create', '--account', 'team a')
    expect(err).toContain(`npx svc-router keys list --data ${cli.dataDir} --account 'team a'`)
  })

  test('list shows hints and states but no key, and the same data with --json', async () => {
    const { out: key } = await cli.say('keys', 'create', '--name', 'laptop')
    const table = await cli.say('keys', 'list')
    expect(table.out).toMatch(/^ID +NAME +KEY +STATE/)
    expect(table.out).toMatch(/laptop +sk_svc_....….... +active/)
    const data = await cli.say('keys', 'list', '--json')
    expect(JSON.parse(data.out)).toMatchObject([{ name: 'laptop', state: 'active' }])
    expect(data.err).toBe('')
    expect(table.out + data.out).not.toContain(key)
  })

  test('a key can be rotated and then revoked', async () => {
    const made = JSON.parse((await cli.say('keys', 'create', '--json')).out) as { id: string; key: string }
    const next = JSON.parse((await cli.say('keys', 'rotate', made.id, '--overlap', '1h', '--json')).out) as {
      id: string
      key: string
      replaces: string
    }
    expect(next.replaces).toBe(made.id)
    expect(isWellFormedKey(next.key)).toBe(true)
    expect(await cli.say('keys', 'revoke', made.id, '--yes')).toMatchObject({ code: 0, out: made.id })
    expect(await cli.say('keys', 'revoke', made.id, '--yes')).toMatchObject({
      code: 1,
      err: expect.stringContaining('already revoked') as string,
    })
    expect(await cli.say('keys', 'rotate', 'key_unknown')).toMatchObject({
      code: 1,
      err: expect.stringContaining('keys list') as string,
    })
    expect(cli.store.keys.map(({ state }) => state)).toEqual(['revoked', 'active'])
  })

  test('limits can be set at creation, changed one by one, removed, and listed', async () => {
    const limits = [
      '--profile',
      'svc-router/frontier',
      '--per-minute',
      '30',
      '--address',
      '10.0.0.0/8',
      '--address',
      '::1',
    ]
    const made = JSON.parse((await cli.say('keys', 'create', ...limits, '--json')).out) as {
      id: string
      limits: object
    }
    const addresses = ['10.0.0.0/8', '::1']
    expect(made.limits).toEqual({ profiles: ['svc-router/frontier'], perMinute: 30, addresses })
    expect((await cli.say('keys', 'list')).out).toMatch(
      /svc-router\/frontier; 30 per minute; from 10\.0\.0\.0\/8, ::1$/,
    )
    const changed = await cli.say('keys', 'limit', made.id, '--profile', 'all', '--per-minute', '7', '--json')
    expect(JSON.parse(changed.out)).toMatchObject({ limits: { profiles: null, perMinute: 7, addresses } })
    const lifted = await cli.say('keys', 'limit', made.id, '--per-minute', 'none', '--address', 'any')
    expect(lifted.err).toContain('no key limits')
    expect(JSON.parse((await cli.say('keys', 'list', '--json')).out)).toMatchObject([
      { id: made.id, limits: { profiles: null, perMinute: null, addresses: null } },
    ])
    const types = cli.store.records.map(({ event }) => event.type)
    expect(types.slice(-4)).toEqual(['key.created', 'key.limited', 'key.limited', 'key.limited'])
  })

  test.each([
    [['--profile', 'svc-router/unknown'], 'only be limited to profiles that exist'],
    [['--profile', 'all', '--profile', 'svc-router/frontier'], 'only be limited to profiles that exist'],
    [['--per-minute', '0'], 'a whole number from 1'],
    [['--per-minute', '601'], "the plan's requests per minute"],
    [['--per-minute', 'many'], 'a whole number from 1'],
    [['--address', '10.0.0.0/33'], 'IPv4 or IPv6'],
    [[], 'there is nothing to change'],
  ])('invalid limits are rejected and change nothing: %j', async (options, what) => {
    const { id } = JSON.parse((await cli.say('keys', 'create', '--json')).out) as { id: string }
    const { code, err } = await cli.say('keys', 'limit', id, ...options)
    expect(code).not.toBe(0)
    expect(err).toContain(what)
    expect(cli.store.keys[0]?.limits).toEqual({ profiles: null, perMinute: null, addresses: null })
  })

  test('the limits of an unknown or revoked key cannot be changed', async () => {
    const { id } = JSON.parse((await cli.say('keys', 'create', '--json')).out) as { id: string }
    expect((await cli.say('keys', 'limit', 'key_unknown', '--per-minute', '1')).err).toContain('there is no such key')
    await cli.say('keys', 'revoke', id, '--yes')
    expect((await cli.say('keys', 'limit', id, '--per-minute', '1')).err).toContain('already revoked')
  })

  test('names from users cannot control the terminal', async () => {
    cli.store.accounts.push({ ...cli.store.accounts[0]!, id: 'acc_evil', name: 'evil\u001B[2J\u202E' })
    expect((await cli.say('accounts', 'list')).out).toContain('evil?[2J?')
  })

  test('the store is closed even after a failure', async () => {
    cli.seen.length = 0
    await cli.say('keys', 'create')
    await cli.say('keys', 'create', '--account', 'nobody')
    expect(cli.seen).toEqual(['open', 'close', 'open', 'close'])
  })
})

describe('accounts', () => {
  test('without an account, commands say how to create one', async () => {
    expect(await cli.say('keys', 'list')).toMatchObject({
      code: 1,
      err: expect.stringContaining('npx svc-router accounts create NAME') as string,
    })
  })

  test('new accounts have the default plan and can change to existing plans', async () => {
    await cli.say('accounts', 'create', 'team')
    expect(cli.store.accounts).toMatchObject([{ name: 'team', planId: 'free' }])
    expect(JSON.parse((await cli.say('accounts', 'plan', 'team', 'pro', '--json')).out)).toMatchObject({
      name: 'team',
      planId: 'pro',
    })
    expect(await cli.say('accounts', 'plan', 'team', 'pra')).toMatchObject({
      code: 1,
      err: expect.stringContaining('did you mean "pro"?') as string,
    })
    expect((await cli.say('accounts', 'list')).out).toMatch(/team +pro +open/)
  })

  test('the only account or the local one is selected by default, otherwise --account is required', async () => {
    await cli.say('accounts', 'create', 'one')
    expect((await cli.say('keys', 'create')).code).toBe(0)
    await cli.say('accounts', 'create', 'two')
    expect(await cli.say('keys', 'create')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--account NAME') as string,
    })
    expect((await cli.say('keys', 'create', '--account', 'two')).code).toBe(0)
    await cli.say('accounts', 'create', 'local')
    await cli.say('keys', 'create')
    expect(cli.store.keys.map(({ accountId }) => cli.store.accounts.find(({ id }) => id === accountId)?.name)).toEqual([
      'one',
      'two',
      'local',
    ])
  })
})

describe('upstream', () => {
  const secret = 'made-up-credential-of-the-tests'
  beforeEach(async () => {
    await cli.say('accounts', 'create', 'local')
  })

  test('a cloud credential is given as JSON, stored as one line, and provides region and project', async () => {
    const accessKey = { AccessKeyId: 'AKIAMADEUP0MADEUP000', SecretAccessKey: 'made-up-secret-of-the-tests' }
    cli.stdin = JSON.stringify(accessKey, undefined, 2)
    const bedrock = await cli.say(
      'upstream',
      'add',
      'bedrock',
      '--model',
      'openai.gpt-oss-120b',
      '--region',
      'eu-west-1',
    )
    cli.stdin = JSON.stringify(accountFile, undefined, 2)
    const vertex = await cli.say('upstream', 'add', 'vertex', '--model', 'gemini-2.5-pro', '--json')
    cli.stdin = JSON.stringify(accountFile)
    const regional = await cli.say('upstream', 'add', 'vertex', '--model', 'm', '--region', 'europe-west4')
    cli.stdin = JSON.stringify({ ...accessKey, region: 'us-west-2' })
    await cli.say('upstream', 'add', 'bedrock', '--model', 'm')
    const list = await cli.say('upstream', 'list')
    expect([bedrock.code, vertex.code, regional.code, list.code]).toEqual([0, 0, 0, 0])
    const project = 'v1/projects/made-up-project/locations'
    expect(cli.store.upstreams.map(({ baseUrl, credentialHint }) => [baseUrl, credentialHint])).toEqual([
      ['https://bedrock-mantle.eu-west-1.api.aws/v1', 'P000'],
      [`https://aiplatform.googleapis.com/${project}/global/publishers/google`, '9999'],
      [`https://europe-west4-aiplatform.googleapis.com/${project}/europe-west4/publishers/google`, '9999'],
      ['https://bedrock-mantle.us-west-2.api.aws/v1', 'P000'],
    ])
    for (const { out, err } of [bedrock, vertex, regional, list])
      expect(out + err).not.toMatch(/made-up-secret|PRIVATE/)
  })

  test.each([
    ['bedrock', '{"AccessKeyId":"short"}', ['--region', 'eu-west-1'], 'aws configure export-credentials'],
    ['bedrock', 'made-up-bedrock-api-key', [], '--region us-east-1'],
    ['bedrock', 'made-up-bedrock-api-key', ['--region', 'EU West'], '--region us-east-1'],
    ['vertex', 'made-up-key', [], 'gcloud iam service-accounts keys create'],
    ['vertex', JSON.stringify({ ...accountFile, token_uri: 'https://example.com' }), [], 'gcloud iam'],
  ])('a credential of %s that cannot sign requests is rejected with a fix', async (provider, stdin, options, fix) => {
    cli.stdin = stdin
    const { code, err } = await cli.say('upstream', 'add', provider, '--model', 'm', ...options)
    expect(code).toBe(2)
    expect(err).toContain(fix)
    expect(err).not.toMatch(/made-up|PRIVATE|short/)
    expect(cli.store.upstreams).toEqual([])
  })

  test('a credential comes from standard input or a named variable and is never printed', async () => {
    cli.stdin = `${secret}\n`
    const first = await cli.say('upstream', 'add', 'openai', '--model', 'gpt-5.1', '--json')
    cli.stdin = ''
    cli.env['MY_KEY'] = secret
    const second = await cli.say(
      'upstream',
      'add',
      'azure-openai',
      '--model',
      'm',
      '--base-url',
      'https://x.example.com/openai/v1?api-version=1',
      '--credential-env',
      'MY_KEY',
    )
    const list = await cli.say('upstream', 'list')
    const asData = await cli.say('upstream', 'list', '--json')
    expect([first.code, second.code]).toEqual([0, 0])
    expect(second.err).toContain('It answered a test request')
    for (const { out, err } of [first, second, list, asData])
      expect(out + err).not.toMatch(/made-up-credential|sealed ups/)
    expect(
      cli.store.upstreams.map(({ provider, sealedCredential }) => [
        provider,
        sealedCredential?.endsWith(String(secret.length)),
      ]),
    ).toEqual([
      ['openai', true],
      ['azure-openai', true],
    ])
    expect(list.out).toMatch(/openai +gpt-5\.1 +…ests/)
  })

  test('a provider that needs no credential can be added without one', async () => {
    expect((await cli.say('upstream', 'add', 'ollama', '--model', 'm')).code).toBe(0)
    expect(cli.store.upstreams[0]?.sealedCredential).toBeNull()
  })

  const optional = presetNames.filter((name) => findPreset(name)?.credential === 'optional')
  test.each(optional)('piped input is the credential of %s, too', async (preset) => {
    const add = ['upstream', 'add', preset, '--model', 'm', '--base-url', 'http://127.0.0.1:1/v1']
    cli.stdin = `${secret}\n`
    expect((await cli.say(...add)).code).toBe(0)
    expect((await cli.say(...add, '--no-credential')).code).toBe(0)
    cli.stdinIsTty = true
    expect((await cli.say(...add)).code).toBe(0)
    expect(cli.store.upstreams.map(({ sealedCredential }) => sealedCredential !== null)).toEqual([true, false, false])
  })

  test.each([
    ['rejected_credentials', 401, 4, 'rejected the credential'],
    ['not_found', 404, 1, 'model'],
    ['unreachable', undefined, 5, 'URL'],
    ['timeout', undefined, 5, 'in time'],
    ['rejected_content', 400, 1, 'model name'],
  ] as const)('a provider that fails its test with %s is not saved', async (outcome, status, code, word) => {
    cli.test = { outcome, ms: 3, reason: 'no such model', ...(status === undefined ? {} : { status }) }
    const add = ['upstream', 'add', 'ollama', '--model', 'm']
    const failed = await cli.say(...add)
    expect([failed.code, failed.out, cli.store.upstreams.length]).toEqual([code, '', 0])
    expect(failed.err).toContain('the provider was not saved')
    expect(failed.err).toContain(word)
    expect(failed.err).toContain('no such model')
    expect(failed.err).toContain('--no-test')
    const untested = await cli.say(...add, '--no-test')
    expect([untested.code, cli.store.upstreams.length]).toEqual([0, 1])
    expect(untested.err).toContain('was not tested')
  })

  test('upstream add sets every timeout and extra headers', async () => {
    const timeouts = ['--connect-timeout', '5s', '--first-content-timeout', '300s', '--whole-answer-timeout', '10m']
    const rest = ['--idle-timeout', '90s', '--total-timeout', '20m', '--header', 'X-Team=blue', '--header', 'x-b: a=b']
    const added = await cli.say('upstream', 'add', 'ollama', '--model', 'm', ...timeouts, ...rest)
    expect(added.code).toBe(0)
    expect(cli.store.upstreams[0]).toMatchObject({
      timeouts: {
        connectMs: 5_000,
        firstContentMs: 300_000,
        wholeAnswerMs: 600_000,
        idleMs: 90_000,
        totalMs: 1_200_000,
      },
      headers: { 'x-team': 'blue', 'x-b': 'a=b' },
    })
  })

  test.each([
    ['--idle-timeout', 'soon', '--idle-timeout takes a duration'],
    ['--first-content-timeout', '25h', '--first-content-timeout takes a duration'],
    ['--header', 'authorization=Bearer made-up', 'authorization cannot be an extra header'],
    ['--header', 'x-key=sk-madeup0madeup0madeup0', 'looks like a credential'],
    ['--header', 'content-length=5', 'must not be set'],
    ['--header', 'x-a=b\r\nx-c: d', 'control characters'],
  ])('%s %s is rejected', async (option, value, sentence) => {
    const { code, err } = await cli.say('upstream', 'add', 'ollama', '--model', 'm', option, value)
    expect([code, cli.store.upstreams.length]).toEqual([2, 0])
    expect(err).toContain(sentence)
    expect(err).not.toMatch(/madeup0|Bearer/)
  })

  test('if the credential is missing, the next command names the usual variable', async () => {
    for (const isTty of [true, false]) {
      cli.stdinIsTty = isTty
      expect(await cli.say('upstream', 'add', 'openai', '--model', 'm')).toMatchObject({
        code: 2,
        err: expect.stringContaining('--credential-env OPENAI_API_KEY') as string,
      })
    }
    expect(
      await cli.say('upstream', 'add', 'openai', '--model', 'm', '--credential-env', 'sk-made-up-123456'),
    ).toMatchObject({ code: 2, err: expect.not.stringContaining('sk-made') as string })
  })

  test.each([
    ['answered', 0, 'The provider answered. Next: '],
    [
      'rejected_credentials',
      4,
      ' rejected the credential, or your credit there is used up. If it is, add credit. Otherwise, next: ',
    ],
    ['unreachable', 5, 'The provider cannot be reached.'],
    ['timeout', 5, 'The provider did not answer in time.'],
    ['rejected_content', 1, 'The provider rejected the test request.'],
    ['rate_limited', 1, 'The provider is not accepting more requests right now.'],
  ] as const)('a test that ends as %s ends with %d', async (outcome, code, advice) => {
    cli.test = { outcome: 'answered', ms: 3 }
    await cli.say('upstream', 'add', 'ollama', '--model', 'm')
    cli.test = { outcome, ms: 3 }
    const result = await cli.say('upstream', 'test')
    expect(result.code).toBe(code)
    expect(result.out).toContain(outcome)
    expect(result.err).toContain(advice)
    expect(result.err).toContain('npx svc-router')
    expect(JSON.parse((await cli.say('upstream', 'test', cli.store.upstreams[0]!.id, '--json')).out)).toMatchObject([
      { outcome, provider: 'ollama' },
    ])
  })

  test('an unknown upstream can be neither tested nor removed', async () => {
    expect((await cli.say('upstream', 'test', 'ups_x')).code).toBe(1)
    expect((await cli.say('upstream', 'remove', 'ups_x', '--yes')).code).toBe(1)
    await cli.say('upstream', 'add', 'ollama', '--model', 'm')
    expect((await cli.say('upstream', 'remove', cli.store.upstreams[0]!.id, '--yes')).code).toBe(0)
    expect(cli.store.upstreams).toEqual([])
  })
})

describe('requests', () => {
  test('a request is shown with its attempts', async () => {
    cli.records.push(record)
    const { code, out } = await cli.say('request', 'req_1')
    expect(code).toBe(0)
    expect(out).toMatch(/attempt 1 +a, server error, 503, 11 ms/)
    expect(out).toMatch(/attempt 2 +b, answered, 200, 40 ms, up-1/)
    expect(out).toMatch(/tokens +3 in, 5 out \(estimated\)/)
    expect(JSON.parse((await cli.say('request', 'req_1', '--json')).out)).toEqual(record)
    expect(await cli.say('request', 'req_2')).toMatchObject({
      code: 1,
      err: expect.stringContaining('npx svc-router requests') as string,
    })
  })

  test('a request that skipped backends shows which ones and why', async () => {
    cli.records.push({ ...record, passedBy: [{ backend: 'b-0', reason: 'rate' }] })
    expect((await cli.say('request', 'req_1')).out).toMatch(
      /^skipped +b-0: its provider is limiting our request rate$/m,
    )
  })

  test('a fused request is shown with its decision, its costs, and the result of every call', async () => {
    const usage = {
      inputTokens: 200,
      outputTokens: 90,
      cachedTokens: 50,
      reasoningTokens: 10,
      source: 'counted',
    } as const
    const fused: RequestRecord = {
      ...record,
      profile: 'svc-router/fusion',
      fusions: [
        {
          preset: 'balanced',
          prompts: { panel: 'fusion-panel/1', judge: 'fusion-judge/1' },
          mode: 'synthesised',
          asked: 3,
          answered: 2,
          quorum: 2,
          isSelfPanel: false,
          dropOuts: [{ member: 'b', why: 'server_error' }],
          verdict: 'synthesize',
          answerType: 'open',
          disagreements: 1,
          degraded: ['member_lost'],
          calls: [
            { role: 'panel', member: 'a', status: 'answered', ms: 412, usage, costUsd: 0.01234 },
            { role: 'panel', member: 'b', status: 'server_error', ms: 9 },
            { role: 'synthesis', member: 'a', status: 'answered', ms: 80, usage: { ...usage, source: 'estimated' } },
          ],
          panelMs: 415,
          judgeMs: 300,
          totalMs: 900,
          costUsd: 0.01234,
        },
      ],
    }
    cli.records.push(fused)
    const { out } = await cli.say('request', 'req_1')
    for (const line of [
      /^fusion +synthesized$/m,
      /^panel +2 of 3 answered, quorum 2, preset balanced$/m,
      /^verdict +synthesize, 1 disagreement, answer type open$/m,
      /^phases +panel 415 ms, judge 300 ms, total 900 ms$/m,
      /^cost +0\.0123 USD$/m,
      /^degraded +member lost$/m,
      /^dropped +b \(server error\)$/m,
      /^ROLE +MEMBER +RESULT +TIME +IN +CACHED +OUT +REASONING +COST$/m,
      /^panel +a +answered +412 ms +200 +50 +90 +10 +0\.0123 USD$/m,
      /^panel +b +server error +9 ms +- +- +- +- +-$/m,
      /^synthesis +a +answered +80 ms +~200 +~50 +~90 +~10 +-$/m,
    ])
      expect(out).toMatch(line)
    expect(JSON.parse((await cli.say('request', 'req_1', '--json')).out)).toEqual({
      ...fused,
    })
    expect((await cli.say('requests')).out).toMatch(/req_1 .* done +fusion:synthesized 2\/3 +1 +- +52 ms/)
  })

  test('the latest requests of all accounts or of one are listed', async () => {
    await cli.say('accounts', 'create', 'team')
    const mine = { ...record, id: 'req_2', accountId: cli.store.accounts[0]!.id }
    cli.records.push(record, mine, record)
    expect(JSON.parse((await cli.say('requests', '--json', '--limit', '2')).out)).toEqual([record, mine])
    expect(JSON.parse((await cli.say('requests', '--json', '--account', 'team')).out)).toEqual([mine])
    expect((await cli.say('requests')).out).toMatch(/req_1 .* done +a:server_error b:answered +1 +- +52 ms/)
  })

  test('requests --cache shows what was read from caches, and why not more', async () => {
    expect((await cli.say('requests', '--cache')).err).toContain('No figures about prompt caches in the last 30 days')
    const group = { keyId: 'key_1', client: 'codex', inputTokens: 1_000, readTokens: 900 }
    cli.cache.push({ ...group, reason: 'hit', turns: 8 }, { ...group, reason: 'tools', turns: 2, readTokens: 0 })
    const said = await cli.say('requests', '--cache')
    expect(said.out).toMatch(/key_1 +codex +10 +2000 +45% +2 × the tools changed/)
    expect(said.err).toContain('/caching')
  })

  test('requests --sessions shows what sessions cost, and an unknown cost is not 0', async () => {
    await cli.say('accounts', 'create', 'team')
    expect((await cli.say('requests', '--sessions')).err).toContain(
      'No request in the last 30 days belongs to a session',
    )
    const tokens = { inputTokens: 10, cachedTokens: 9, outputTokens: 1 }
    const times = { firstMs: 0, lastMs: Date.UTC(2026, 10, 22, 12) }
    cli.sessions.push({ session: 'ses_1', requests: 5, priced: 4, usd: '1.25', savedUsd: '3', ...tokens, ...times })
    cli.sessions.push({ session: 'ses_2', requests: 2, priced: 0, usd: '0', savedUsd: '0', ...tokens, ...times })
    const { out } = await cli.say('requests', '--sessions', '--account', 'team')
    expect(out).toMatch(/ses_1 +2026-11-22T12:00:00Z +5 +1\.25 USD +3\.00 USD +1\n/)
    expect(out).toMatch(/ses_2 +2026-11-22T12:00:00Z +2 +unknown +unknown +2/)
    cli.records.push({ ...record, session: 'ses_1' })
    expect((await cli.say('request', record.id)).out).toContain('ses_1: 5 requests, 1.25 USD; the cost of 1 is unknown')
  })

  test('rejected requests are counted by error, with a link to the explanation', async () => {
    expect((await cli.say('requests', '--refused')).err).toContain('No requests were rejected in the last 7 days')
    const last = { lastRequestId: 'req_9', lastKeyId: 'key_1', lastAtMs: Date.UTC(2026, 10, 22, 12) }
    cli.refused.push({ accountId: 'acc_1', code: 'key_revoked', requests: 12, ...last })
    cli.refused.push({ accountId: 'acc_2', code: 'invalid_json', requests: 3, ...last })
    const { out, err } = await cli.say('requests', '--refused')
    expect(out).toMatch(/^ERROR +COUNT +LAST +REQUEST +KEY +ACCOUNT\nkey_revoked +12 +2026-11-22T12:00:00Z +req_9/)
    expect(err).toMatch(/http\S+\/docs\/errors\/key_revoked$/m)
    expect(JSON.parse((await cli.say('requests', '--refused', '--json', '--limit', '1')).out)).toEqual([cli.refused[0]])
    expect((await cli.say('requests')).err).toMatch(/Rejected in the last 7 days: 15\. See why: .* requests --refused/)
  })
})

describe('configuration', () => {
  test('check prints the effective configuration and writes nothing', async () => {
    const { code, out, err } = await cli.say('check')
    expect([code, cli.seen]).toEqual([0, []])
    expect(out).toContain('pepper: "********"')
    expect(err).toContain('npx svc-router start')
    expect(JSON.parse((await cli.say('check', '--json')).out)).toMatchObject({ mode: 'local', default_plan: 'free' })
  })

  test('an invalid configuration ends every command with 3, all problems, and the next command', async () => {
    const path = join(cli.folder, 'mine.yaml')
    writeFileSync(path, 'mode: prod\nlisten: {prot: 1}')
    for (const name of [['check'], ['start'], ['keys', 'list']]) {
      const { code, out, err } = await cli.say(...name, '--config', path)
      expect([code, out]).toEqual([3, ''])
      expect(err).toContain(`${path}:1:7`)
      expect(err).toContain(`${path}:2:10`)
      expect(err).toContain('2 problems in the configuration. Fix them, then run: npx svc-router check')
    }
    const { err } = await cli.say('check', '--config', path, '--json')
    expect(JSON.parse(err)).toMatchObject({
      error: {
        exit_code: 3,
        problems: [
          { line: 1, column: 7 },
          { line: 2, column: 10 },
        ],
      },
    })
  })

  test('a missing configuration file that was named ends with 3', async () => {
    expect(await cli.say('start', '--config', join(cli.folder, 'none.yaml'))).toMatchObject({
      code: 3,
      err: expect.stringContaining('there is no file') as string,
    })
  })

  test('the default file may be missing even if it is named explicitly', async () => {
    const here = process.cwd()
    process.chdir(cli.folder)
    try {
      expect(await cli.say('check', '--config', './svc-router.yaml')).toMatchObject({ code: 0 })
    } finally {
      process.chdir(here)
    }
  })
})

describe('a data folder without data', () => {
  const beginning = ['start', 'accounts create']
  /** Commands that need no data at all. */
  const apart = ['help', 'version', 'check']
  const others = commands.map(({ name }) => name).filter((name) => ![...beginning, ...apart].includes(name))

  test.each([
    ['keys list'],
    ['keys create'],
    ['keys rotate', 'key_1'],
    ['keys limit', 'key_1', '--per-minute', '1'],
    ['keys revoke', 'key_1', '--yes'],
    ['accounts list'],
    ['accounts plan', 'local', 'pro'],
    ['upstream list'],
    ['upstream test'],
    ['upstream remove', 'up_1', '--yes'],
    ['requests'],
    ['request', 'req_1'],
  ])('%s says that there is no data, creates nothing, and ends with 3', async (name, ...rest) => {
    cli.hasStore = false
    const { code, out, err } = await cli.say(...name.split(' '), ...rest)
    expect({ code, out }).toEqual({ code: 3, out: '' })
    expect(err).toContain(`there is no svc-router data in ${cli.dataDir}`)
    expect(err).toContain(`npx svc-router start --data ${cli.dataDir}`)
    expect(existsSync(cli.dataDir)).toBe(false)
    expect(cli.seen).toEqual([])
    expect(others).toContain(name)
  })

  test('accounts create starts a new data folder', async () => {
    cli.hasStore = false
    expect((await cli.say('accounts', 'create', 'team')).code).toBe(0)
  })
})
