import { expect, test } from 'vitest'
import { errorOf } from './config-load.ts'

interface Row {
  readonly name: string
  readonly text: string
  readonly env?: Record<string, string>
  /** The `line:column` of each problem, in the order of the report; `-` for a problem without a position. */
  readonly places: readonly string[]
  /** A part of the fix of each problem. */
  readonly fixes: readonly string[]
}

const production = {
  SVC_ROUTER_PEPPER: 'made-up-pepper-of-the-tests',
  SVC_ROUTER_SEALING_KEY: Buffer.alloc(32, 7).toString('base64'),
}

const embedders =
  'backends:\n  talk: {provider: ollama, model: m}\n  one: {provider: ollama, model: e, embeddings: e}\n' +
  '  two: {provider: ollama, model: f, embeddings: f}\n'

const rows: readonly Row[] = [
  {
    name: 'an unknown setting is answered with the nearest one',
    text: 'lisen: {}',
    places: ['1:1'],
    fixes: ['did you mean "listen"?'],
  },
  {
    name: 'an unknown setting inside a group',
    text: 'listen:\n  prot: 8787',
    places: ['2:3'],
    fixes: ['did you mean "port"?'],
  },
  {
    name: 'an unknown setting that is near nothing lists what is known',
    text: 'edge_gate:\n  something_else: 1',
    places: ['2:3'],
    fixes: ['use one of: enabled'],
  },
  {
    name: 'an unknown setting inside an entry of a map',
    text: 'backends:\n  a:\n    provider: ollama\n    model: m\n    modle: x',
    places: ['5:5'],
    fixes: ['did you mean "model"?'],
  },
  {
    name: 'a setting by the name that it has elsewhere',
    text: 'backends:\n  a:\n    provider: ollama\n    model: m\n    api_key: abc',
    places: ['5:5'],
    fixes: ['did you mean "credential_env"?'],
  },
  {
    name: 'a number in quotes',
    text: 'listen:\n  port: "8787"',
    places: ['2:9'],
    fixes: ['expected a whole number from 0 to 65535'],
  },
  {
    name: 'a number out of range',
    text: 'listen: {port: 70000}',
    places: ['1:16'],
    fixes: ['expected a whole number from 0 to 65535'],
  },
  { name: 'a switch that is no switch', text: 'simulated: maybe', places: ['1:12'], fixes: ['expected true or false'] },
  {
    name: 'a duration without its unit',
    text: 'keep_alive: 10',
    places: ['1:13'],
    fixes: ['expected a duration such as'],
  },
  { name: 'a duration that is too short', text: 'keep_alive: 10ms', places: ['1:13'], fixes: ['at least 100ms'] },
  {
    name: 'a size with a unit that is none',
    text: 'limits: {body: 16MB}',
    places: ['1:16'],
    fixes: ['expected a size such as'],
  },
  {
    name: 'in production, a credential that would leave this machine unencrypted',
    text:
      'mode: production\napp_url: https://app.example.com\nproviders:\n' +
      '  lan: {preset: custom, base_url: "http://models.example/v1"}\n' +
      '  own: {preset: custom, base_url: "http://127.0.0.1:9/v1"}\n' +
      '  trusted: {preset: custom, base_url: "http://models.example/v1", plain_http: true}\n' +
      'backends:\n' +
      ['lan', 'own', 'trusted']
        .map((name) => `  ${name}: {provider: ${name}, model: m, credential_env: MADE_UP, managed: true}\n`)
        .join(''),
    env: { ...production, MADE_UP: 'made-up-credential' },
    places: ['4:35'],
    fixes: ['plain_http: true'],
  },
  { name: 'a mode that is none', text: 'mode: prod', places: ['1:7'], fixes: ['expected local or production'] },
  {
    name: 'a list where settings are expected',
    text: 'listen:\n  - 1',
    places: ['2:3'],
    fixes: ['expected settings indented'],
  },
  { name: 'a text where a map is expected', text: 'plans: none', places: ['1:8'], fixes: ['expected a map'] },
  {
    name: 'a URL with another scheme',
    text: 'app_url: ftp://example.com',
    places: ['1:10'],
    fixes: ['an http or https URL'],
  },
  {
    name: 'a required setting that is missing',
    text: 'plans:\n  gold:\n    name: Gold\n    requests_per_minute: 5',
    places: ['2:3'],
    fixes: ['add "requests_per_month:"'],
  },
  {
    name: 'a name that cannot be one',
    text: 'profiles:\n  My Profile: {}',
    places: ['2:3'],
    fixes: ['in lowercase'],
  },
  {
    name: 'a provider that does not exist',
    text: 'backends:\n  a: {provider: opnai, model: m}',
    places: ['2:17'],
    fixes: ['did you mean "openai"?'],
  },
  {
    name: 'a preset that does not exist',
    text: 'providers:\n  a: {preset: lama-cpp}',
    places: ['2:15'],
    fixes: ['did you mean "llama-cpp"?'],
  },
  {
    name: 'a preset without a base URL',
    text: 'providers:\n  a: {preset: custom}',
    places: ['2:3'],
    fixes: ['add "base_url'],
  },
  {
    name: 'such a preset used by its name',
    text: 'backends:\n  a: {provider: custom, model: m}',
    places: ['2:17'],
    fixes: ['declare it'],
  },
  {
    name: 'the simulated preset cannot be selected by name',
    text: 'backends:\n  a: {provider: simulated, model: m}',
    places: ['2:17'],
    fixes: ['use one of: openai'],
  },
  {
    name: 'a profile with a backend that does not exist',
    text: 'backends:\n  fast: {provider: ollama, model: m}\nprofiles:\n  my/one:\n    backends: [fast, fats]',
    places: ['5:22'],
    fixes: ['did you mean "fast"?'],
  },
  {
    name: 'a profile whose backends give vectors that cannot be compared',
    text: `${embedders}profiles:\n  my/one: {backends: [one, two]}`,
    places: ['6:28'],
    fixes: ['put each kind in its own profile'],
  },
  {
    name: 'a profile that mixes conversations and embeddings',
    text: `${embedders}profiles:\n  my/one: {backends: [talk, one]}`,
    places: ['6:29'],
    fixes: ['put each kind in its own profile'],
  },
  {
    name: 'embeddings under the name that is for conversations',
    text: `${embedders}profiles:\n  svc-router/frontier: {backends: [one]}`,
    places: ['6:35'],
    fixes: ['use a profile with another name'],
  },
  {
    name: 'embeddings without a name',
    text: 'backends:\n  a: {provider: ollama, model: m, embeddings: true}',
    places: ['2:47'],
    fixes: ['expected the name of the embedding space'],
  },
  {
    name: 'a price without its currency',
    text: 'profiles:\n  my/one: {price: {input_per_million: 1}}',
    places: ['2:12'],
    fixes: ['add "currency:"'],
  },
  {
    name: 'a profile that lists a backend twice',
    text: 'backends:\n  b: {provider: ollama, model: m}\nprofiles:\n  my/one: {backends: [b, b]}',
    places: ['4:26'],
    fixes: ['list it once'],
  },
  {
    name: 'the fusion profile for everybody',
    text: 'profiles:\n  svc-router/fusion: {premium: false}',
    places: ['2:32'],
    fixes: ['remove it'],
  },
  {
    name: 'a default plan that does not exist',
    text: 'plans:\n  gold: {name: Gold, requests_per_minute: 5, requests_per_month: 9}\ndefault_plan: golf',
    places: ['3:15'],
    fixes: ['did you mean "gold"?'],
  },
  {
    name: 'a backend without the credential that its provider asks for',
    text: 'backends:\n  a: {provider: openai, model: m}',
    places: ['2:3'],
    fixes: ['add "credential_env: NAME"'],
  },
  {
    name: 'an account without a credential',
    text: 'backends:\n  a: {provider: ollama, model: m, account: local}',
    places: ['2:35'],
    fixes: ['add "credential_env"'],
  },
  {
    name: 'a credential whose variable is not set',
    text: 'backends:\n  a: {provider: openai, model: m, credential_env: OPENAI_API_KEY}',
    places: ['2:51'],
    fixes: ['export OPENAI_API_KEY='],
  },
  { name: 'the same setting twice', text: 'mode: local\nmode: local', places: ['2:1'], fixes: ['keep one of the two'] },
  { name: 'a tab for indentation', text: 'listen:\n\tport: 1', places: ['2:1'], fixes: ['indent with spaces'] },
  { name: 'two documents', text: 'mode: local\n---\nmode: local', places: ['2:1'], fixes: ['keep one document'] },
  { name: 'a file that is a list', text: '- mode', places: ['1:1'], fixes: ['"name: value"'] },
  {
    name: 'production without an app URL',
    text: 'mode: production',
    env: production,
    places: ['-'],
    fixes: ['add "app_url: https://…"'],
  },
  {
    name: 'production without secrets',
    text: 'mode: production\napp_url: https://app.example.com',
    places: ['-', '-'],
    fixes: ['export SVC_ROUTER_PEPPER=', 'export SVC_ROUTER_SEALING_KEY='],
  },
  {
    name: 'production with simulated providers',
    text: 'app_url: https://app.example.com\nsimulated: true',
    env: { ...production, NODE_ENV: 'production' },
    places: ['2:12'],
    fixes: ['remove this line'],
  },
  {
    name: 'a credential without an account in production',
    text: 'app_url: https://app.example.com\nbackends:\n  a: {provider: openai, model: m, credential_env: OPENAI_API_KEY}',
    env: { ...production, SVC_ROUTER_MODE: 'production', OPENAI_API_KEY: 'made-up' },
    places: ['3:3'],
    fixes: ['add "account: NAME"'],
  },
  {
    name: 'a webhook of budgets without a secret',
    text: 'budget_alerts:\n  webhook_url: https://hooks.example.com/x?y=1',
    places: ['1:1'],
    fixes: ['export SVC_ROUTER_WEBHOOK_SECRET='],
  },
  {
    name: 'a secret that is too short to sign alerts of budgets with',
    text: 'budget_alerts:\n  webhook_url: https://hooks.example.com\n  webhook_secret_env: HOOK',
    env: { HOOK: 'short' },
    places: ['3:23'],
    fixes: ['at least 16 characters'],
  },
  {
    name: 'a pepper that is too short',
    text: 'secrets:\n  pepper_env: PEPPER',
    env: { PEPPER: 'short' },
    places: ['2:15'],
    fixes: ['at least 16 characters'],
  },
  {
    name: 'a sealing key of another length',
    text: '',
    env: { SVC_ROUTER_SEALING_KEY: 'c2hvcnQ=' },
    places: ['-'],
    fixes: ['openssl rand -base64 32'],
  },
  {
    name: 'a previous pepper that is not set',
    text: 'secrets:\n  previous_pepper_env: OLD',
    places: ['2:24'],
    fixes: ['export OLD='],
  },
  {
    name: 'a database whose variable is not set',
    text: 'database:\n  url_env: DATABASE_URL',
    places: ['2:12'],
    fixes: ['export DATABASE_URL='],
  },
  {
    name: 'several workers with simulated payments',
    text: 'workers: 4\nbilling:\n  simulated: true',
    places: ['1:10'],
    fixes: ['remove workers, or billing.simulated'],
  },
  {
    name: 'a number of workers that is neither a number nor auto',
    text: 'workers: all',
    places: ['1:10'],
    fixes: ['expected auto or a whole number from 1 to 64'],
  },
  {
    name: 'a database that is not PostgreSQL',
    text: 'database:\n  url_env: DATABASE_URL',
    env: { DATABASE_URL: 'mysql://localhost/made-up' },
    places: ['2:12'],
    fixes: ['use postgres://user:password@host:5432/name'],
  },
  {
    name: 'a mode variable that is neither',
    text: '',
    env: { SVC_ROUTER_MODE: 'staging' },
    places: ['-'],
    fixes: ['SVC_ROUTER_MODE'],
  },
  {
    name: 'a quality that is no whole number from 0 to 100',
    text: 'backends:\n  a: {provider: ollama, model: m, quality: 101}\nmodels:\n  m: {quality: good}',
    places: ['2:44', '4:16'],
    fixes: ['expected a whole number from 0 to 100', 'expected a whole number from 0 to 100'],
  },
  {
    name: 'a price without its output, and one below nothing',
    text: 'backends:\n  a: {provider: ollama, model: m, usd_per_million: {input: 1}}\nmodels:\n  m: {usd_per_million: {input: -1, output: 2}}',
    places: ['2:35', '4:32'],
    fixes: ['add "output:"', 'expected an amount of money'],
  },
  {
    name: 'how to deliberate in a profile that does not',
    text: 'profiles:\n  team/one:\n    fusion: {preset: fast}',
    places: ['3:5'],
    fixes: ['move it to svc-router/fusion'],
  },
  {
    name: 'an unknown fusion preset, a panel that is too large, and an unknown judge',
    text:
      'backends:\n  big: {provider: ollama, model: llama}\nprofiles:\n  svc-router/fusion:\n    fusion:\n' +
      '      preset: slow\n      panel_size: 9\n      judge: bigg',
    places: ['6:15', '7:19', '8:14'],
    fixes: ['expected fast, balanced, or quality', 'expected a whole number from 1 to 8', 'did you mean "big"?'],
  },
  {
    name: 'a panel with both names and a size, and an unknown member',
    text:
      'backends:\n  big: {provider: ollama, model: llama}\nmodels:\n  own: {quality: 90}\nprofiles:\n' +
      '  svc-router/fusion:\n    fusion:\n      models: [big, llama, own, lama]\n      panel_size: 2',
    places: ['8:33', '9:19'],
    fixes: ['did you mean "llama"?, or add it to models', 'remove one of the two'],
  },
  {
    name: 'a plan that allows no fusion at once',
    text: 'plans:\n  pro: {name: Pro, requests_per_minute: 1, requests_per_month: 1, premium: true, fusions_at_once: 0}',
    places: ['2:99'],
    fixes: ['expected a whole number from 1 to 1000'],
  },
]

test.each(rows)('$name', ({ text, env = {}, places, fixes }) => {
  const { problems, message } = errorOf(text, { env })
  expect(
    problems.map(({ location }) => (location === undefined ? '-' : `${location.line}:${location.column}`)),
  ).toEqual(places)
  expect(problems).toHaveLength(fixes.length)
  for (const [index, fix] of fixes.entries()) expect(problems[index]?.fix).toContain(fix)
  for (const place of places.filter((shown) => shown !== '-')) expect(message).toContain(`svc-router.yaml:${place}\n`)
})

test('all problems are reported at once, in the order of the file: wrong shapes and unknown references together', () => {
  const { problems } = errorOf(
    'listen:\n  prot: 1\nmode: prod\nbackends:\n  a: {provider: opnai, model: m}\nprofiles:\n  my/one:\n    backends: [b]\nkeep_alive: 1',
  )
  expect(problems.map(({ location }) => location?.line)).toEqual([2, 3, 5, 8, 9])
})

test('an invalid entry does not make references to it unknown', () => {
  const { problems } = errorOf('backends:\n  a: {provider: ollama}\nprofiles:\n  my/one: {backends: [a]}')
  expect(problems.map(({ what }) => what)).toEqual(['"model" is missing in backends.a'])
})

test('the invalid text is displayed with a caret below it', () => {
  expect(errorOf('listen:\n  prot: 8787').message).toMatch(
    /error: unknown setting "prot" in listen\n {2}--> .*svc-router\.yaml:2:3\n2 \| {3}prot: 8787\n {2}\| {3}\^\^\^\^\n {2}= fix: did you mean "port"\?/,
  )
})

const secrets = [
  'sk-madeup1234567890',
  'gsk_madeupmadeup1234567',
  'c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I=',
  '0123456789abcdef0123456789abcdef',
  'https://user:hunter2@example.com/v1',
  'sk-proj-Ab1'.padEnd(40, 'x'),
]

test.each(secrets)('a secret in the file is reported without repeating it: %s', (secret) => {
  for (const setting of ['credential_env', 'api_key', 'model']) {
    const { problems, message } = errorOf(
      `backends:\n  a:\n    provider: openai\n    ${setting}: ${secret} # ${secret}`,
    )
    expect(problems.map(({ what }) => what)).toContain('the file contains a secret')
    expect(message).not.toContain(secret)
    expect(message).not.toContain('hunter2')
  }
})

test('an invalid variable name is reported without repeating it', () => {
  expect(errorOf('secrets:\n  pepper_env: hunter2').message).not.toContain('hunter2')
})

test.each([
  'meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8',
  'anthropic/claude-sonnet-4.5',
  'gpt-oss:20b',
  'accounts/fireworks/models/qwen3-235b-a22b-instruct-2507',
])('a model name is not mistaken for a secret: %s', (model) => {
  expect(() => errorOf(`backends:\n  a: {provider: ollama, model: "${model}"}`)).toThrow(
    'the configuration was accepted',
  )
})
