import { execFileSync } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { CommandError } from '../../../src/cli/failures.ts'
import { readAll } from '../../../src/cli/terminal/read-input.ts'
import { SetupError } from '../../../src/runtime/setup-error.ts'
import { Harness } from '../harness.ts'

let cli: Harness
beforeEach(() => {
  cli = new Harness()
})
afterEach(() => cli.remove())

const keyFile = (): string => join(cli.dataDir, 'first-key')

test('the first start shows the key once, stores it for this user only, and prints a curl command that reads it', async () => {
  const { code, out } = await cli.say('start')
  const key = readFileSync(keyFile(), 'utf8').trim()
  expect(code).toBe(0)
  expect(statSync(keyFile()).mode & 0o777).toBe(0o600)
  expect(out.split(key)).toHaveLength(2)
  expect(out).toMatch(/^svc-router \d/)
  expect(out).toContain('ready      http://127.0.0.1:8787/v1')
  expect(out).toContain('simulated-alpha, simulated-beta, simulated-gamma')
  expect(out).toContain(`-H "authorization: Bearer $(cat ${keyFile()})"`)
  expect(cli.seen).toEqual(['open', 'close', 'start', 'open', 'close', 'stop'])
})

test('a shell parses the printed curl command correctly', async () => {
  const { out } = await cli.say('start', '--json')
  const { curl } = JSON.parse(out) as { curl: string }
  const words = execFileSync('sh', ['-c', `curl() { printf '%s\\n' "$@"; }; ${curl}`], { encoding: 'utf8' })
    .trim()
    .split('\n')
  expect(words).toEqual([
    '-i',
    'http://127.0.0.1:8787/v1/chat/completions',
    '-H',
    `authorization: Bearer ${readFileSync(keyFile(), 'utf8').trim()}`,
    '-H',
    'content-type: application/json',
    '-d',
    '{"model":"svc-router/frontier","messages":[{"role":"user","content":"Hello!"}]}',
  ])
})

test('a later start creates nothing, shows no key, and prints the same curl command', async () => {
  const first = await cli.say('start')
  const before = [readFileSync(keyFile(), 'utf8'), JSON.stringify(cli.store)]
  const second = await cli.say('start')
  expect([readFileSync(keyFile(), 'utf8'), JSON.stringify(cli.store)]).toEqual(before)
  expect(second.out).not.toContain(before[0]!.trim())
  expect(second.out).not.toContain('created')
  const curlOf = (text: string): string | undefined => text.split('\n').find((line) => line.includes('curl -i'))
  expect(curlOf(second.out)).toBe(curlOf(first.out))
})

test('a stored key that no longer works is not recommended', async () => {
  await cli.say('start')
  await cli.say('keys', 'revoke', cli.store.keys[0]!.id, '--yes')
  const { out } = await cli.say('start')
  expect(out).toContain('npx svc-router keys create')
  expect(out).toContain('Bearer $SVC_ROUTER_API_KEY')
})

test('the printed link signs in to the local account for 15 minutes, and only its digest is stored', async () => {
  const { out } = await cli.say('start')
  const [, origin, token = ''] = /^ {4}(http:\/\/\S+)\/sign-in\/link\?token=(\S+)$/m.exec(out) ?? []
  expect([origin, token.length]).toEqual(['http://127.0.0.1:8788', 43])
  const [proof] = cli.proofs
  expect(proof).toMatchObject({ purpose: 'sign_in', address: null, accountId: cli.store.accounts[0]!.id })
  expect(proof!.expiresAtMs - proof!.createdAtMs).toBe(15 * 60_000)
  expect(proof!.digests.code).toBeNull()
  expect(JSON.stringify(proof)).not.toContain(token)
})

test('sign-in-link creates such a link for any account, at the address of the running service', async () => {
  await cli.say('accounts', 'create', 'team-a')
  const { code, out, err } = await cli.say('sign-in-link', '--account', 'team-a')
  expect(code).toBe(0)
  expect(out).toMatch(/^http:\/\/127\.0\.0\.1:8788\/sign-in\/link\?token=[\w-]{43}$/)
  expect(err).toContain('No service is running with this data folder')
  expect(cli.proofs[0]!.accountId).toBe(cli.store.accounts[0]!.id)
})

test('with --json, standard output is one line of data with the actual port', async () => {
  const { out } = await cli.say('start', '--json', '--port', '0')
  expect(JSON.parse(out)).toMatchObject({
    ready: true,
    base_url: 'http://127.0.0.1:4242/v1',
    first_run: true,
    key: readFileSync(keyFile(), 'utf8').trim(),
  })
})

test('the first account gets default_plan if the configuration sets it, and otherwise the plan max', async () => {
  const path = join(cli.folder, 'mine.yaml')
  writeFileSync(path, 'default_plan: pro')
  expect((await cli.say('start', '--config', path)).out).toContain('account "local" on plan pro')
  const other = new Harness()
  try {
    expect((await other.say('start')).out).toContain('account "local" on plan max')
  } finally {
    other.remove()
  }
})

test('in production, nothing is created and no key is shown', async () => {
  cli.env = {
    NODE_ENV: 'production',
    SVC_ROUTER_PEPPER: 'made-up-pepper-of-the-tests',
    SVC_ROUTER_SEALING_KEY: Buffer.alloc(32, 7).toString('base64'),
  }
  const path = join(cli.folder, 'mine.yaml')
  writeFileSync(path, 'app_url: https://app.example.com')
  const { code, out } = await cli.say('start', '--config', path)
  expect([code, cli.store.accounts, cli.store.keys]).toEqual([0, [], []])
  expect(out).toContain('accounts create NAME')
  expect(out).not.toContain('simulated')
})

test.each([
  [
    'a taken port',
    { startFailure: Object.assign(new Error('x'), { code: 'EADDRINUSE', syscall: 'listen' }) },
    'port 8787 on 127.0.0.1 is in use',
    '--port 8797',
  ],
  [
    'a port for administrators',
    { startFailure: Object.assign(new Error('x'), { code: 'EACCES', syscall: 'listen' }) },
    'does not have permission to listen on port 8787',
    '--port 8787',
  ],
  [
    'an address of another machine',
    { startFailure: Object.assign(new Error('x'), { code: 'EADDRNOTAVAIL' }) },
    'cannot listen on 127.0.0.1',
    '--host',
  ],
  [
    'an unwritable folder',
    { openFailure: Object.assign(new Error('x'), { code: 'EACCES', syscall: 'open' }) },
    'is not writable',
    '--data FOLDER',
  ],
  [
    'a folder that cannot be created',
    { openFailure: Object.assign(new Error('x'), { code: 'EACCES', syscall: 'mkdir', path: '/' }) },
    'is not writable',
    '--data FOLDER',
  ],
  [
    'a file elsewhere that this user may not read',
    { openFailure: Object.assign(new Error('x'), { code: 'EACCES', syscall: 'open', path: '/elsewhere/all.backup' }) },
    '/elsewhere/all.backup cannot be opened: permission denied',
    'check the owner and the permissions of the file',
  ],
  [
    'a database that cannot be opened',
    { openFailure: Object.assign(new Error('x'), { code: 'ERR_SQLITE_ERROR', errcode: 14 }) },
    'is not writable',
    '--data FOLDER',
  ],
  [
    'a locked database',
    { openFailure: Object.assign(new Error('x'), { code: 'ERR_SQLITE_ERROR', errcode: 261 }) },
    'in use by another process',
    '--data FOLDER',
  ],
  [
    'a file that is no database',
    { openFailure: Object.assign(new Error('x'), { code: 'ERR_SQLITE_ERROR', errcode: 26 }) },
    'is damaged',
    'backup',
  ],
  [
    'a data folder in use',
    { startFailure: new SetupError('the data folder is in use', 'stop that one') },
    'the data folder is in use',
    'stop that one',
  ],
])('%s ends with 3, one sentence and the fix', async (_name, failure, what, fix) => {
  Object.assign(cli, failure)
  const { code, err } = await cli.say('start')
  expect(code).toBe(3)
  expect(err).toMatch(/^error: .+\n {2}= fix: .+$/)
  expect(err).toContain(what)
  expect(err).toContain(fix)
})

test('a service that cannot continue stops, says why, and ends with 1, so that its supervisor restarts it', async () => {
  cli.stopFailure = new CommandError(1, 'requests cannot be recorded any more', 'start it again')
  expect(await cli.say('start')).toMatchObject({
    code: 1,
    err: 'error: requests cannot be recorded any more\n  = fix: start it again',
  })
  expect(cli.seen).toContain('stop')
})

test.each(['openFailure', 'startFailure'] as const)(
  'a start waits while the database does not answer: %s',
  async (step) => {
    cli[step] = new CommandError(5, 'the database does not answer', 'check it')
    const started = cli.say('start')
    setTimeout(() => (cli[step] = undefined), 100)
    const { code, out, err } = await started
    expect([code, err]).toEqual([0, expect.stringContaining('note: the database does not answer; waiting for it')])
    expect(err.match(/note:/g)).toHaveLength(1)
    expect(out).toContain('ready')
  },
)

test('a data folder that is a file ends with 3', async () => {
  writeFileSync(cli.dataDir, '')
  expect(await cli.say('start')).toMatchObject({
    code: 3,
    err: expect.stringMatching(/data folder .* cannot be written/) as string,
  })
})

test("a bug is not reported as the operator's mistake", async () => {
  cli.startFailure = new TypeError('bug')
  await expect(cli.say('start')).rejects.toThrow('bug')
})

test('standard input is limited in size and time', async () => {
  expect(await readAll(Readable.from([Buffer.from('abc'), Buffer.from('def')]))).toBe('abcdef')
  await expect(readAll(Readable.from([Buffer.alloc(65_537)]))).rejects.toThrow('too large for a credential')
  await expect(readAll(new Readable({ read() {} }), 5)).rejects.toThrow('timed out waiting for standard input')
})
