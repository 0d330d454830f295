import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { withPorts } from '../../src/config/config.ts'
import { describeConfig, plainConfig } from '../../src/config/describe.ts'
import { writeJsonSchema } from '../../src/config/json-schema.ts'
import { loadConfig, type ConfigSource } from '../../src/config/load.ts'
import { readDurationMs, readSizeBytes, writeDuration, writeSize } from '../../src/config/measures.ts'
import { ConfigError } from '../../src/config/problems.ts'
import { sealingKeys } from '../../src/config/sealing-keys.ts'
import { defaultPlans } from '../../src/domain/plans.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { inFolder, loadText, madeUpPepper, madeUpSealingKey } from './config-load.ts'

const source = (folder: string, more: Partial<ConfigSource> = {}): ConfigSource => ({
  path: join(folder, 'svc-router.yaml'),
  explicit: false,
  overrides: { data: join(folder, 'data') },
  env: {},
  random: systemRandom(),
  localSecrets: 'make',
  ...more,
})
const example = (): string => readFileSync(new URL('../../svc-router.example.yaml', import.meta.url), 'utf8')

describe('defaults', () => {
  test('without a file, all settings have defaults: this machine only, SQLite, and simulated backends', () => {
    const config = inFolder((folder) => loadConfig(source(folder, { localSecrets: 'pretend' })))
    expect(config).toMatchObject({
      file: undefined,
      mode: 'local',
      listen: { host: '127.0.0.1', port: 8787 },
      baseUrl: 'http://127.0.0.1:8787/v1',
      appListen: { host: '127.0.0.1', port: 8788 },
      appUrl: 'http://127.0.0.1:8788',
      plans: defaultPlans,
      defaultPlan: 'free',
      keepAliveMs: 10_000,
      edgeGate: { enabled: true },
    })
    expect(config.backends.map(({ id, simulated }) => [id, simulated])).toEqual([
      ['simulated-alpha', true],
      ['simulated-beta', true],
      ['simulated-gamma', true],
    ])
    expect(new Set(config.backends.map(({ failureDomain }) => failureDomain)).size).toBe(3)
    expect(config.profiles).toMatchObject([
      {
        id: 'svc-router/frontier',
        backends: ['simulated-alpha', 'simulated-beta', 'simulated-gamma'],
        premium: false,
        quotaUnits: 1,
      },
      {
        id: 'svc-router/fusion',
        backends: ['simulated-alpha', 'simulated-beta', 'simulated-gamma'],
        isLikeFrontier: true,
        premium: true,
        quotaUnits: 1,
      },
    ])
    expect(config.backends[0]?.timeouts).toEqual({
      connectMs: 2000,
      headersMs: 10_000,
      firstContentMs: 30_000,
      wholeAnswerMs: 300_000,
      idleMs: 30_000,
      totalMs: 600_000,
    })
  })

  test('an empty file, and settings without values, equal no file', () => {
    for (const text of ['', '# nothing\n', 'listen:\n  port:\nbackends:\n'])
      expect(loadText(text).listen).toEqual({ host: '127.0.0.1', port: 8787, trustedProxies: 0 })
  })

  test('a named file that does not exist is an error', () => {
    inFolder((folder) => expect(() => loadConfig(source(folder, { explicit: true }))).toThrow(/there is no file/))
  })
})

describe('the configuration file', () => {
  test('extra headers of a provider are stored by lower-case name, and a credential among them is rejected', () => {
    const text = (value: string): string =>
      `providers:\n  mine: {preset: ollama, headers: {X-Team: "${value}"}}\nbackends:\n  a: {provider: mine, model: n}`
    expect(loadText(text('a b')).backends[0]!.provider.headers).toEqual({ 'x-team': 'a b' })
    expect(() => loadText(text(`sk-proj-${'a1B2'.repeat(12)}`))).toThrow()
  })

  test('configured backends replace the simulated ones, and frontier tries them in the order of the file', () => {
    const config = loadText(
      'backends:\n  b: {provider: ollama, model: m, reasoning: true, timeouts: {idle: 5s}}\n  a: {provider: mine, model: n, credential_env: KEY}\nproviders:\n  mine: {preset: custom, base_url: "https://models.example.com/v1/", auth_header: X-Key}',
      { env: { KEY: ' made-up ' } },
    )
    expect(config.profiles[0]?.backends).toEqual(['b', 'a'])
    expect(config.backends[0]).toMatchObject({
      id: 'b',
      failureDomain: 'ollama',
      facts: { capabilities: { reasoning: true } },
      timeouts: { headersMs: 300_000, firstContentMs: 300_000, wholeAnswerMs: 600_000, idleMs: 5000 },
      credential: undefined,
    })
    expect(config.backends[1]).toMatchObject({
      account: undefined,
      credentialEnv: 'KEY',
      provider: { preset: 'custom', baseUrl: 'https://models.example.com/v1', authHeader: 'x-key' },
    })
    expect(config.backends[1]?.credential?.reveal()).toBe('made-up')
  })

  test('with simulated: true, simulated backends follow the real ones; with false, there are none', () => {
    expect(loadText('simulated: true\nbackends:\n  b: {provider: ollama, model: m}').profiles[0]?.backends).toEqual([
      'b',
      'simulated-alpha',
      'simulated-beta',
      'simulated-gamma',
    ])
    expect(loadText('simulated: false').backends).toEqual([])
  })

  test('frontier is first and fusion second, whatever else is defined', () => {
    const config = loadText('profiles:\n  my/one: {backends: [simulated-beta], premium: true, quota_units: 3}')
    expect(config.profiles.map(({ id, premium, quotaUnits }) => [id, premium, quotaUnits])).toEqual([
      ['svc-router/frontier', false, 1],
      ['svc-router/fusion', true, 1],
      ['my/one', true, 3],
    ])
  })

  test('fusion is premium by default, and has exactly the backends that it lists', () => {
    const config = loadText('profiles:\n  svc-router/fusion: {backends: [simulated-beta], quota_units: 4}')
    expect(config.profiles[1]).toEqual({
      id: 'svc-router/fusion',
      description: '',
      backends: ['simulated-beta'],
      premium: true,
      quotaUnits: 4,
    })
  })

  test.each([
    ['', 'max'],
    ['default_plan: pro', 'pro'],
    ['plans: {gold: PLAN, tiny: PLAN}', 'tiny'],
    ['plans: {gold: PLAN, max: PLAN, tiny: PLAN}', 'max'],
    ['plans: {free: PLAN, pro: PLAN, tiny: PLAN}\ndefault_plan: pro', 'pro'],
  ])('the first account of %j is on %s', (text, plan) => {
    const values = '{name: X, requests_per_minute: 5, requests_per_month: 9}'
    expect(loadText(text.replaceAll('PLAN', values)).localPlan).toBe(plan)
  })

  test('configured plans replace the default ones, and new accounts get the first plan if none is named free', () => {
    const config = loadText('plans:\n  gold: {name: Gold, requests_per_minute: 5, requests_per_month: 9}')
    expect(config.plans).toEqual([
      { id: 'gold', name: 'Gold', requestsPerMinute: 5, requestsPerMonth: 9, premium: false },
    ])
    expect(config.defaultPlan).toBe('gold')
  })

  test('the command line overrides the file', () => {
    const config = loadText('listen: {port: 1000, host: 0.0.0.0}\ndata: ./one', {
      overrides: { port: 2000, data: './two' },
    })
    expect([config.listen, config.dataDir, config.baseUrl]).toEqual([
      { host: '0.0.0.0', port: 2000, trustedProxies: 0 },
      './two',
      'http://127.0.0.1:2000/v1',
    ])
  })

  test('a port that the system chose changes only the URLs that depend on it', () => {
    const ports = { api: 4242, app: 4343 }
    expect(withPorts(loadText('listen: {port: 0}'), ports)).toMatchObject({
      listen: { port: 4242 },
      appListen: { port: 4343 },
      baseUrl: 'http://127.0.0.1:4242/v1',
      appUrl: 'http://127.0.0.1:4343',
    })
    const urls = 'base_url: https://api.example.com/v1/\napp_url: https://app.example.com/'
    expect(withPorts(loadText(urls), ports)).toMatchObject({
      baseUrl: 'https://api.example.com/v1',
      appUrl: 'https://app.example.com',
    })
  })

  test.each([
    ['listen: {port: 9000}', { host: '127.0.0.1', port: 9001, trustedProxies: 0 }],
    ['listen: {port: 65535}', { host: '127.0.0.1', port: 65_534, trustedProxies: 0 }],
    ['listen: {port: 0}', { host: '127.0.0.1', port: 0, trustedProxies: 0 }],
    ['listen: {host: 0.0.0.0}\napp_listen: {host: 127.0.0.1}', { host: '127.0.0.1', port: 8788, trustedProxies: 0 }],
    ['app_listen: {port: 80}', { host: '127.0.0.1', port: 80, trustedProxies: 0 }],
  ])("the web app has its own port, by default next to the API's: %s", (text, appListen) => {
    expect(loadText(text).appListen).toEqual(appListen)
  })

  test.each([{ NODE_ENV: 'production' }, { SVC_ROUTER_MODE: 'production' }])(
    'the environment turns production on: %o',
    (mode) => {
      const env = { ...mode, SVC_ROUTER_PEPPER: madeUpPepper, SVC_ROUTER_SEALING_KEY: madeUpSealingKey }
      const config = loadText('app_url: https://app.example.com', { env })
      expect(config).toMatchObject({ mode: 'production', backends: [], secrets: { keptInFile: false } })
    },
  )
})

describe('secrets', () => {
  test('local mode generates secrets once, readable by this user only, and reads them afterwards', () => {
    inFolder((folder) => {
      const first = loadConfig(source(folder))
      const second = loadConfig(source(folder))
      expect(first.secrets.pepper.reveal()).toBe(second.secrets.pepper.reveal())
      expect(first.secrets.sealingKey.reveal()).toEqual(second.secrets.sealingKey.reveal())
      expect(first.secrets.sealingKey.reveal()).toHaveLength(32)
      expect(statSync(join(folder, 'data', 'secrets.json')).mode & 0o777).toBe(0o600)
      expect(statSync(join(folder, 'data')).mode & 0o777).toBe(0o700)
    })
  })

  test('a check writes nothing', () => {
    inFolder((folder) => {
      loadConfig(source(folder, { localSecrets: 'pretend' }))
      expect(() => statSync(join(folder, 'data'))).toThrow('ENOENT')
    })
  })

  test('a broken file writes nothing', () => {
    inFolder((folder) => {
      writeFileSync(join(folder, 'svc-router.yaml'), 'mode: nonsense')
      expect(() => loadConfig(source(folder))).toThrow(ConfigError)
      expect(() => statSync(join(folder, 'data'))).toThrow('ENOENT')
    })
  })

  test('the environment overrides the stored secrets', () => {
    const config = loadText('', { env: { SVC_ROUTER_PEPPER: madeUpPepper, SVC_ROUTER_SEALING_KEY: '07'.repeat(32) } })
    expect(config.secrets.pepper.reveal()).toBe(madeUpPepper)
    expect(Buffer.from(config.secrets.sealingKey.reveal()).toString('base64')).toBe(madeUpSealingKey)
  })

  test('no new secrets are generated for an existing database', () => {
    inFolder((folder) => {
      mkdirSync(join(folder, 'data'))
      writeFileSync(join(folder, 'data', 'svc-router.db'), '')
      expect(() => loadConfig(source(folder))).toThrow(/secrets\.json is missing/)
    })
  })

  test('a damaged secrets file is reported without repeating it', () => {
    inFolder((folder) => {
      mkdirSync(join(folder, 'data'))
      writeFileSync(join(folder, 'data', 'secrets.json'), '{"pepper":"hunter2"}')
      expect(() => loadConfig(source(folder))).toThrow(
        expect.objectContaining({ message: expect.not.stringContaining('hunter2') }) as Error,
      )
      expect(() => loadConfig(source(folder))).toThrow(/is damaged/)
    })
  })

  test('a data folder that cannot be created is one sentence with its fix', () => {
    inFolder((folder) => {
      writeFileSync(join(folder, 'data'), 'a file, not a folder')
      expect(() => loadConfig(source(folder))).toThrow(/cannot be written \(E[A-Z]+\)\n {2}= fix: .*--data FOLDER/)
    })
  })

  test('no way of printing a configuration reveals a secret', () => {
    inFolder((folder) => {
      writeFileSync(
        join(folder, 'svc-router.yaml'),
        'backends:\n  a: {provider: openai, model: m, credential_env: KEY}',
      )
      chmodSync(join(folder, 'svc-router.yaml'), 0o600)
      const config = loadConfig(source(folder, { env: { KEY: 'made-up-credential' } }))
      const { pepper, sealingKey } = config.secrets
      const texts = [
        describeConfig(config),
        JSON.stringify(plainConfig(config)),
        JSON.stringify(config),
        inspect(config, { depth: 20 }),
      ]
      for (const text of texts) {
        for (const secret of [
          'made-up-credential',
          pepper.reveal(),
          Buffer.from(sealingKey.reveal()).toString('base64'),
        ])
          expect(text).not.toContain(secret)
      }
      expect(describeConfig(config)).toContain('credential: "******** (from KEY)"')
    })
  })

  test('a sealing key has an id derived from it, and the current key is not also a previous one', () => {
    const env = {
      SVC_ROUTER_PEPPER: madeUpPepper,
      SVC_ROUTER_SEALING_KEY: madeUpSealingKey,
      SAME: madeUpSealingKey,
      OTHER: Buffer.alloc(32, 9).toString('base64'),
    }
    const keys = (name: string) =>
      sealingKeys(loadText(`secrets: {previous_sealing_key_env: ${name}}`, { env }).secrets)
    expect(keys('OTHER').previous?.id).toMatch(/^[\w-]{12}$/)
    expect(keys('OTHER').previous?.id).not.toBe(keys('OTHER').current.id)
    expect(keys('SAME').previous).toBeUndefined()
  })
})

describe('published files', () => {
  test('the JSON Schema is up to date: node bin/run.mjs node scripts/schema.ts', () => {
    expect(readFileSync(new URL('../../svc-router.schema.json', import.meta.url), 'utf8')).toBe(writeJsonSchema())
  })

  test('every setting in the schema has a description for editors', () => {
    const bare: string[] = []
    const visit = (
      schema: { properties?: Record<string, object>; additionalProperties?: object },
      path: string,
    ): void => {
      for (const [name, inner] of Object.entries(schema.properties ?? {})) {
        if (!('description' in inner) && name !== 'host' && name !== 'description') bare.push(`${path}.${name}`)
        visit(inner, `${path}.${name}`)
      }
      if (typeof schema.additionalProperties === 'object') visit(schema.additionalProperties, `${path}.*`)
    }
    visit(JSON.parse(writeJsonSchema()) as object, '')
    expect(bare).toEqual([])
  })

  test('the example loads unchanged and states the defaults', () => {
    const { file: _, fileText: _____, secrets: __, settings, ...fromExample } = loadText(example())
    const { file: ___, fileText: ______, secrets: ____, settings: settingsByDefault, ...byDefault } = loadText('')
    expect(settings.configured).toEqual(settingsByDefault.configured)
    expect(fromExample).toEqual(byDefault)
  })

  test('the example loads with all settings enabled', () => {
    const text = example().replaceAll(/^#(?=[a-z]| {2,})/gm, '')
    const env = {
      SVC_ROUTER_OLD_PEPPER: madeUpPepper,
      SVC_ROUTER_OLD_SEALING_KEY: madeUpSealingKey,
      OPENAI_API_KEY: 'made-up',
      STRIPE_SECRET_KEY: 'made-up',
      STRIPE_WEBHOOK_SECRET: 'made-up',
      SVC_ROUTER_MAIL_PASSWORD: 'made-up-password-of-mail',
      SVC_ROUTER_WEBHOOK_SECRET: 'made-up-secret-of-the-webhook',
      SVC_ROUTER_DATABASE_URL: 'postgres://localhost/made-up',
    }
    const config = loadText(text, { env })
    expect(config.databaseUrl?.reveal()).toBe('postgres://localhost/made-up')
    expect(config.budgetWebhook?.secret.reveal()).toBe('made-up-secret-of-the-webhook')
    expect(JSON.stringify(describeConfig(config))).not.toContain('made-up-secret-of-the-webhook')
    expect(config.backends.map(({ id }) => id)).toEqual([
      'big',
      'house',
      'own-machine',
      'vectors',
      'simulated-alpha',
      'simulated-beta',
      'simulated-gamma',
    ])
    expect(config.profiles.map(({ id }) => id)).toEqual([
      'svc-router/frontier',
      'svc-router/fusion',
      'my-team/private',
      'svc-router/embeddings',
    ])
  })
})

test('facts about a model apply to backends without their own, and to upstreams by model name', () => {
  const config = loadText(
    `models:
  big-1: {quality: 90, context_window: 1000, reasoning: true, capabilities: {tools: true}, usd_per_million: {input: 1, output: 2, cached_input: 0.5}}
backends:
  a: {provider: ollama, model: big-1, quality: 70, capabilities: {image_input: true}}
  b: {provider: ollama, model: small-1}
plans:
  pro: {name: Pro, requests_per_minute: 1, requests_per_month: 1, premium: true}
  max: {name: Max, requests_per_minute: 1, requests_per_month: 1, premium: true, fusions_at_once: 7}
profiles:
  svc-router/fusion: {fusion: {preset: quality, models: [a, small-1], judge: b, names_models: true}}`,
  )
  const [a, b] = config.backends
  expect(a).toMatchObject({
    facts: {
      quality: 70,
      contextWindow: 1000,
      capabilities: { tools: true, image_input: true, reasoning: true },
      usdPerMillion: { input: 1, output: 2, cachedInput: 0.5 },
    },
    timeouts: { firstContentMs: 300_000 },
  })
  expect(b!.facts).toEqual({ capabilities: {} })
  expect(config.modelFacts.get('big-1')).toMatchObject({ quality: 90 })
  expect(config.plans.map(({ fusionsAtOnce }) => fusionsAtOnce)).toEqual([8, 7])
  expect(config.profiles.find(({ id }) => id === 'svc-router/fusion')?.fusion).toEqual({
    preset: 'quality',
    panelModels: ['a', 'small-1'],
    judgeModel: 'b',
    namesModels: true,
  })
  const told = describeConfig(config)
  for (const line of ['quality: 70', 'cached_input: 0.5', 'judge: b', 'names_models: true', 'fusions_at_once: 7'])
    expect(told).toContain(line)
})

test.each([
  ['500ms', 500],
  ['2s', 2000],
  ['5m', 300_000],
  ['24h', 86_400_000],
  ['90d', 7_776_000_000],
] as const)('the duration %s is %d ms, both ways', (text, ms) => {
  expect(readDurationMs(text)).toBe(ms)
  expect(readDurationMs(writeDuration(ms))).toBe(ms)
})

test.each([
  ['1B', 1],
  ['64KiB', 65_536],
  ['16MiB', 16_777_216],
] as const)('the size %s is %d bytes, both ways', (text, bytes) => {
  expect(readSizeBytes(text)).toBe(bytes)
  expect(writeSize(bytes)).toBe(text)
})
