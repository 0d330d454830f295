import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSession } from '../../src/accounts/identity/sessions.ts'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { routes } from '../../src/web/routes.ts'
import type { Service } from '../service.ts'
import { startWeb, Visitor } from './browser-less.ts'
import { ScanningDouble } from './fake-scanning.ts'

/** Every secret, by name. Secrets that the service creates are added during the test. */
const secrets: Record<string, string> = {
  prompt: 'canary-prompt-3f9d1c77',
  answer: 'canary-answer-51c2aa90',
  'an error message of a provider': 'canary-upstream-84b2aa10',
  credential: 'sk-canary-credential-000011112222',
  'the secret of Stripe': 'sk_live_canary000011112222',
  'the secret of its webhooks': 'whsec_canary333344445555',
  email: 'canary.person@example.com',
  'a message to support': 'canary-support-77aa01',
  'a malformed key': `sk_svc_${'Canary0'.repeat(5)}abc`,
  'a token of another vendor': 'ghp_canary0000111122223333',
}
/** Secrets that messages to the service and its emails may contain. */
const keptAsTheyAre = ['email', 'a message to support']
const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const env = { CANARY_KEY: secrets['the secret of Stripe']!, CANARY_HOOK: secrets['the secret of its webhooks']! }
const stripe = { secret_key_env: 'CANARY_KEY', webhook_secret_env: 'CANARY_HOOK', prices: { pro: 'price_1Made' } }
const upstreamSays = JSON.stringify({ error: { message: secrets['an error message of a provider'], type: 'x' } })

let double: ScanningDouble
let service: Service
let owner: Visitor
let stranger: Visitor
const nobody = (): Visitor => new Visitor(service.config.appUrl)
/** Every recorded output, its reader, and the secrets that may be in it. */
const seen: { readonly what: string; readonly text: string; readonly own: readonly string[] }[] = []
const note = (what: string, text: string, own: readonly string[] = []): void => void seen.push({ what, text, own })
const headersOf = (response: Response): string => JSON.stringify([...response.headers])
const prompt = [{ role: 'user', content: `Tell me about ${secrets['prompt']}.` }]

beforeAll(async () => {
  double = await ScanningDouble.start()
  const settings = { billing: { stripe }, leaked_keys: { github: { keys_url: double.keysUrl } } }
  ;({ service } = await startWeb({ env, settings }))
  secrets['a key'] = service.key
})
afterAll(async () => {
  await service.stop()
  await double.stop()
})

test('an account is created, connected, and signed in, and sees only its own pages', async () => {
  owner = nobody()
  const asked = await owner.post('/account/setup', { email: secrets['email']! })
  const at = asked.headers.get('location')!
  const letter = await (await owner.get('/dev/outbox')).text()
  secrets['a code'] = /^\s+(\d{6})$/m.exec(letter)![1]!
  secrets['a link'] = /link\?token=([\w-]{43})/.exec(letter)![1]!
  await read('a wrong code', await owner.post(at, { code: secrets['a code'] === '123456' ? '123457' : '123456' }))
  const first = await (await owner.post(at, { code: secrets['a code'] })).text()
  secrets['a first key'] = /sk_svc_[0-9A-Za-z]{38}/.exec(first)![0]
  secrets['a session'] = owner.cookie.split('=')[1]!
  const credential = secrets['credential']!
  await read(
    'a provider without a model',
    await owner.post('/account/upstreams', { provider: 'openai', model: '', credential }),
  )
  await owner.post('/account/upstreams', { provider: 'openai', model: 'gpt-5.1', credential, untested: 'on' })
  const profiles = ['svc-router/frontier', 'svc-router/fusion']
  const made = await (await owner.post('/account/keys', { name: 'second', profiles })).text()
  secrets['a second key'] = /sk_svc_[0-9A-Za-z]{38}/.exec(made)![0]
  stranger = nobody()
  const accountsDeps = { ...service.accountsDeps, store: service.store }
  const { account } = await service.addAccount('stranger', 'free')
  const { token } = await openSession(accountsDeps, account.id, { method: 'link', agent: 'Tests' })
  stranger.cookie = `svc_session=${token.reveal()}`
  secrets["a stranger's session"] = token.reveal()
  await read('a used link', await nobody().post('/sign-in/link', { token: secrets['a link'] }))
  // Passkeys need a host name.
  const named = new Visitor(service.config.appUrl.replace('127.0.0.1', 'localhost'))
  const signIn = await (await named.get('/sign-in')).text()
  secrets['a challenge'] = /challenge&quot;:&quot;([\w.-]+)&quot;/.exec(signIn)?.[1] ?? ''
  expect(secrets['a challenge'].length).toBeGreaterThan(20)
  const clientDataJSON = Buffer.from(JSON.stringify({ challenge: secrets['a challenge'] })).toString('base64url')
  const answer = JSON.stringify({ id: 'x', rawId: 'x', type: 'public-key', response: { clientDataJSON } })
  await read('a passkey that is none', await named.post('/sign-in/passkey', { answer }))
})

test('requests are answered and fail in every way', async () => {
  const say = (step: ScriptStep): void =>
    service.providers.forEach((provider) => provider.script([{ ...step, repeat: true }]))
  say({ do: 'answer', text: `It is ${secrets['answer']}.` })
  const responses: Response[] = [
    await service.chat({ messages: prompt }),
    await service.chat({ messages: prompt, stream: true }),
    await service.post('/messages', { model: 'svc-router/frontier', messages: prompt, max_tokens: 50 }),
    await service.responses({ input: secrets['prompt'] }),
    await service.chat({ model: 'svc-router/fusion', messages: prompt }),
    await service.responses({ model: 'svc-router/fusion', input: secrets['prompt'], stream: true }),
  ]
  for (const response of responses) {
    const text = await response.text()
    expect([response.status, text.includes(secrets['answer']!)]).toEqual([200, true])
    note(`headers of ${response.url}`, headersOf(response))
  }
  const failing: readonly ScriptStep[] = [
    { do: 'status', status: 401, body: upstreamSays },
    { do: 'status', status: 400, body: upstreamSays },
    { do: 'status', status: 429, retryAfter: '1', body: upstreamSays },
    { do: 'status', status: 500, body: upstreamSays },
    { do: 'broken_first_event' },
    { do: 'html' },
    { do: 'reset' },
    { do: 'error_event', afterEvents: 0 },
  ]
  for (const step of failing) {
    say(step)
    for (const extra of [{}, { stream: true }, { model: 'svc-router/fusion' }])
      await read(`after ${step.do} ${step.status ?? ''}`, await service.chat({ messages: prompt, ...extra }))
  }
  say({ do: 'answer', text: secrets['answer']! })
  const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
  const refused: readonly Promise<Response>[] = [
    service.chat({ messages: prompt }, bearer(secrets['a malformed key']!)),
    service.chat({ messages: prompt }, bearer(secrets['credential']!)),
    service.chat({ messages: prompt }, { authorization: '' }),
    service.chat({ messages: prompt }, { 'user-agent': '' }),
    service.chat({ messages: secrets['prompt'] }),
    service.chat({ messages: prompt, temperature: secrets['prompt'], tools: [{ type: secrets['prompt'] }] }),
    service.post('/chat/completions', `{"messages": "${secrets['prompt']}`),
    service.responses({ input: prompt, previous_response_id: `resp_${secrets['prompt']}` }),
    service.post(`/nothing?key=${service.key}`, { prompt }),
  ]
  for (const response of await Promise.all(refused)) {
    expect(response.status).toBeGreaterThanOrEqual(400)
    await read(`refused: ${response.status}`, response)
  }
})

test('other services send webhooks and reports, and leaked keys are found', async () => {
  const { appUrl } = service.config
  for (const signature of ['', 't=1,v1=00', secrets['the secret of its webhooks']!]) {
    const headers = { 'stripe-signature': signature }
    await read(
      'a webhook',
      await fetch(`${appUrl}/webhooks/stripe`, { method: 'POST', headers, body: secrets['prompt']! }),
    )
  }
  const tokens = ['a second key', 'a token of another vendor', 'a malformed key'].map((name) => secrets[name]!)
  const matches = tokens.map((token) => ({ token, type: 'x', url: '', source: 'commit' }))
  const reported = await double.report(appUrl, matches)
  expect(reported.status).toBe(200)
  await read('a report', reported)
  await read('a forged report', await double.report(appUrl, matches, { body: JSON.stringify([matches]) }))
  await read('a found key', await nobody().post('/leaked-key', { key: secrets['a first key']! }))
  const { email = '', 'a message to support': text = '' } = secrets
  expect((await nobody().post('/support', { email, text: `It fails: ${text}`, request_id: '' })).status).toBe(200)
  for (const name of ['a key', 'credential', 'a session'])
    await read(
      `support refuses ${name}`,
      await nobody().post('/support', { email: '', text: `It is: svc_session=${secrets[name]}` }),
    )
})

test('every page and form is opened by the owner, a stranger, and a visitor without an account', async () => {
  const { 'a link': link = '', 'a code': code = '', credential = '' } = secrets
  for (const { method, path, access } of routes) {
    if (path.startsWith('/dev/') || /sign-out|end-all|revoke-all|delete$|upgrade$/.test(path) || access === 'webhook')
      continue
    const there = path.replaceAll(/:\w+/g, 'canary-id')
    for (const [who, visitor] of [
      ['the owner', owner],
      ['a stranger', stranger],
      ['nobody', nobody()],
    ] as const) {
      const what = `${method} ${path} by ${who}`
      // The download of the owner contains all their data, but no secret that grants access.
      const own = who !== 'the owner' ? [] : path.endsWith('/download') ? ['email', 'a message to support'] : ['email']
      if (method === 'GET') await read(what, await visitor.get(`${there}?token=${link}&next=canary`), own)
      else if (access === 'account' || who === 'nobody')
        await read(what, await visitor.post(there, { email: 'x', model: 'x', token: link, credential, code }), own)
    }
  }
  for (const path of ['/model-catalog', '/pricing', '/health', '/ready', '/v1/models'])
    await read(path, await fetch(`${service.origin}${path}`, { headers: { 'user-agent': 'tests/1.0' } }))
  expect(seen.length).toBeGreaterThan(150)
}, 60_000)

const endOfCommand = '\n--- end of a command ---\n'
/** Runs all commands in one process, because starting a process for each takes most of the time. */
const runInTurn = `
  import { pathToFileURL } from 'node:url'
  const [program, main, lines] = process.argv
  for (const from of [process, process.stdout, process.stderr]) from.setMaxListeners(0)
  for (const [index, line] of JSON.parse(lines).entries()) {
    process.argv = [program, main, ...line]
    await import(pathToFileURL(main) + '?' + index)
    if (process.exitCode !== 0) process.exit()
    process.stdout.write(${JSON.stringify(endOfCommand)})
  }
`

test('every command that reads data is run', async () => {
  const config = ['--config', join(service.folder, 'svc-router.yaml'), '--data', service.config.dataDir]
  const [account] = (await service.store.listAccounts(100)).filter(({ id }) => id !== service.account.id)
  const [record] = await service.store.listRequests({ accountId: service.account.id, limit: 1 })
  const commands = [
    'check',
    'accounts list',
    'audit list',
    'audit export',
    'audit checkpoint',
    'tickets list',
    'keys list --account tester',
    'requests --account tester',
    `request ${record!.id} --json`,
    `keys list --account ${account!.id}`,
    `upstream list --account ${account!.id}`,
  ]
  const lines = commands.map((command) => [...command.split(' '), ...config])
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '--eval', runInTurn, main, JSON.stringify(lines)],
    { env: { ...process.env, ...env }, timeout: 60_000 },
  )
  const answers = stdout.split(endOfCommand)
  expect(answers.length).toBe(commands.length + 1)
  for (const [index, command] of commands.entries()) {
    expect(answers[index]!.length, command).toBeGreaterThan(10)
    note(`svc-router ${command}`, answers[index]!, command === 'tickets list' ? keptAsTheyAre : [])
  }
  note('what commands say besides', stderr)
}, 60_000)

test('no secret appears in any answer, header, page, command output, log line, audit event, or file where it does not belong', async () => {
  note('the log', JSON.stringify(service.events))
  note(
    'the audit log',
    JSON.stringify([await service.store.readAudit(0, 1000), await service.store.listAudit({ limit: 1000 })]),
  )
  expect(JSON.stringify(service.events)).toMatch(/"answered".*"leak_report"/s)
  for (const name of filesIn(service.config.dataDir))
    note(`the file ${name}`, readFileSync(join(service.config.dataDir, name)).toString('latin1'), [
      ...keptAsTheyAre,
      'a code',
    ])
  const leaks = seen.flatMap(({ what, text, own }) =>
    Object.entries(secrets)
      .filter(([name, secret]) => !own.includes(name) && holds(text, secret))
      .map(([name]) => `${name} in ${what}`),
  )
  expect(leaks).toEqual([])
})

/** Whether a text contains a secret. A code has six digits, which do not count within a longer number. */
function holds(text: string, secret: string): boolean {
  return /^\d+$/.test(secret) ? new RegExp(`(?<![\\w.])${secret}(?![\\w.])`).test(text) : text.includes(secret)
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    statSync(join(folder, name)).isFile(),
  )
}

/** Records a whole answer. The page of a link contains the link's token in its form, as intended. */
async function read(what: string, response: Response, own: readonly string[] = []): Promise<void> {
  const text = await response.text()
  note(what, `${headersOf(response)} ${text.replaceAll(/<input type="hidden" name="token" value="[^"]*"/g, '')}`, own)
}
