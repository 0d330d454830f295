import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { createAccount, suspendAccount } from '../src/accounts/accounts.ts'
import { auditRecord, type AccountsDeps } from '../src/accounts/control-plane.ts'
import { addProvenEmail } from '../src/accounts/identity/sign-in.ts'
import { createKey, limitKey, revokeKey, rotateKey, type MintedKey } from '../src/accounts/keys.ts'
import { addUpstream } from '../src/accounts/upstreams.ts'
import { startApp, type App } from '../src/app/app.ts'
import type { Config } from '../src/config/config.ts'
import { loadConfig } from '../src/config/load.ts'
import { sealingKeys } from '../src/config/sealing-keys.ts'
import type { Account } from '../src/domain/accounts.ts'
import type { ServiceEvent } from '../src/domain/events.ts'
import type { FormatId } from '../src/domain/format-id.ts'
import { type KeyLimits, noLimits } from '../src/domain/key-limits.ts'
import { createVault } from '../src/providers/auth/vault.ts'
import { systemClock, type Clock } from '../src/runtime/clock.ts'
import { systemRandom, type RandomBytes } from '../src/runtime/random.ts'
import { Secret } from '../src/runtime/secret.ts'
import { startSimulatedProvider, type SimulatedProvider } from '../src/simulation/providers/simulated-provider.ts'
import { openSqlite } from '../src/storage/sqlite/open-sqlite.ts'
import { createStore, type Store } from '../src/storage/store.ts'
import { startAsWorker } from './as-worker.ts'
import { placeEmptyDatabase } from './empty-database.ts'
import { openStorageOnReusedThread } from './reused-threads.ts'

export interface ServiceOptions {
  /** Formats of the simulated providers behind `svc-router/frontier`, in order. Default: three of openai-chat. */
  readonly formats?: readonly FormatId[]
  /** Durations as in the configuration. */
  readonly timeouts?: Readonly<Record<string, string>>
  /** Additional settings of backends, by name. */
  readonly facts?: Readonly<Record<string, object>>
  /** Other settings of the configuration file. */
  readonly settings?: Readonly<Record<string, unknown>>
  /** The environment, for secrets that the configuration names. */
  readonly env?: Readonly<Record<string, string>>
  /** The random source of the service, so that tests can make it fail. */
  readonly random?: RandomBytes
  /** The clock of the service, so that tests can move it. */
  readonly clock?: Clock
  /** As a worker on SQLite. With SVC_ROUTER_TEST_AS_WORKER=1, every service of every test is one. */
  readonly asWorker?: boolean
  /** Whether its database thread is its own, as in production, and not one that served other services before. */
  readonly hasOwnThread?: boolean
}

const names = ['alpha', 'beta', 'gamma', 'delta']

/** The real service with real sockets and a real data folder, and with simulated providers that tests can script. */
export class Service {
  readonly app: App
  readonly config: Config
  readonly providers: readonly SimulatedProvider[]
  readonly store: Store
  readonly accountsDeps: AccountsDeps
  readonly events: ServiceEvent[]
  readonly folder: string
  /** An account on the plan `max`, and its key. */
  account!: Account
  key!: string
  /** Whether a test changed its database directly, so that no other test may use it. */
  isChanged = false
  /** How many accounts were created under each name. */
  readonly #named = new Map<string, number>()

  private constructor(
    parts: Pick<Service, 'app' | 'config' | 'providers' | 'store' | 'accountsDeps' | 'events' | 'folder'>,
  ) {
    this.app = parts.app
    this.config = parts.config
    this.providers = parts.providers
    this.store = parts.store
    this.accountsDeps = parts.accountsDeps
    this.events = parts.events
    this.folder = parts.folder
  }

  /** Starts it. `wrap` may replace each provider by one that does more. */
  static async start(
    options: ServiceOptions = {},
    wrap: (provider: SimulatedProvider) => SimulatedProvider = (provider) => provider,
  ): Promise<Service> {
    const {
      formats = ['openai-chat', 'openai-chat', 'openai-chat'],
      timeouts,
      facts,
      settings,
      env = {},
      random = systemRandom(),
      clock = systemClock(),
      asWorker = process.env['SVC_ROUTER_TEST_AS_WORKER'] === '1',
      hasOwnThread = false,
    } = options
    const folder = mkdtempSync(join(tmpdir(), 'svc-router-test-'))
    const providers = await Promise.all(
      formats.map(async (_, index) => wrap(await startSimulatedProvider({ name: names[index]!, capture: true }))),
    )
    const file = {
      listen: { port: 0 },
      data: join(folder, 'data'),
      providers: Object.fromEntries(
        providers.map(({ name, baseUrl }, index) => [
          name,
          { preset: 'custom', base_url: baseUrl, format: formats[index] },
        ]),
      ),
      backends: Object.fromEntries(
        providers.map(({ name }, index) => [
          name,
          {
            provider: name,
            model: formats[index] === 'gemini' ? `gemini-3-${name}` : `model-of-${name}`,
            ...(timeouts === undefined ? {} : { timeouts }),
            ...facts?.[name],
          },
        ]),
      ),
      ...settings,
    }
    const path = join(folder, 'svc-router.yaml')
    writeFileSync(path, stringify(file))
    const given = loadConfig({ path, explicit: true, overrides: {}, env, random, localSecrets: 'make' })
    await placeEmptyDatabase(given.dataDir)
    const events: ServiceEvent[] = []
    const start = asWorker ? startAsWorker : startApp
    const app = await start(
      { ...given, drainDelayMs: 0 },
      {
        log: (event) => void events.push(event),
        clock,
        random,
        ...(!hasOwnThread && { openStorage: openStorageOnReusedThread }),
      },
    )
    const store = createStore(await openSqlite(given.dataDir))
    const { pepper } = given.secrets
    const deps: AccountsDeps = { store, clock, random, pepper, actor: { kind: 'cli' } }
    const service = new Service({ app, config: app.config, providers, store, accountsDeps: deps, events, folder })
    const { account, key } = await service.addAccount('tester', 'max')
    service.account = account
    service.key = key
    return service
  }

  get baseUrl(): string {
    return this.config.baseUrl
  }

  get origin(): string {
    return new URL(this.baseUrl).origin
  }

  /** Creates an account with a key. A repeated name gets a number, because tests may share a service. */
  async addAccount(
    name: string,
    plan: string,
  ): Promise<{ account: Account; key: string; stored: MintedKey['stored'] }> {
    const count = (this.#named.get(name) ?? 0) + 1
    this.#named.set(name, count)
    const unique = count === 1 ? name : `${name} ${count}`
    const account = await createAccount(this.accountsDeps, unique, plan, this.config.plans)
    const { key, stored } = await createKey(this.accountsDeps, account.id, 'test')
    return { account, key: key.reveal(), stored }
  }

  /** Creates another key of an account. */
  async addKey(accountId: string): Promise<string> {
    return (await createKey(this.accountsDeps, accountId, 'another')).key.reveal()
  }

  /** Creates a key of the service's account with limits. */
  addLimitedKey(limits: Partial<KeyLimits>): Promise<MintedKey> {
    return createKey(this.accountsDeps, this.account.id, 'limited', { ...noLimits, ...limits })
  }

  /** Replaces the limits of a key. */
  limit(keyId: string, limits: Partial<KeyLimits>): Promise<unknown> {
    return limitKey(this.accountsDeps, keyId, { ...noLimits, ...limits })
  }

  /** Adds an address to the service's account. */
  addEmail(address: string): Promise<boolean> {
    return addProvenEmail({ ...this.accountsDeps, store: this.store }, this.account.id, address)
  }

  /** Creates another key of the service's account. */
  addNamedKey(name: string): Promise<MintedKey> {
    return createKey(this.accountsDeps, this.account.id, name)
  }

  /** Rotates a key, which continues to work for a day. */
  rotateLater(keyId: string): Promise<unknown> {
    return rotateKey(this.accountsDeps, keyId, '24h')
  }

  /** Connects the first provider also as an upstream of the account, with its own credential. */
  async connectOwn(credential: string, accountId = this.account.id): Promise<void> {
    const provider = this.providers[0]!
    const format = this.config.providers[0]?.format ?? 'openai-chat'
    const draft = {
      provider: 'custom',
      model: 'own',
      baseUrl: provider.baseUrl,
      format,
      authHeader: null,
      credential: new Secret(credential),
    }
    const vault = createVault({ ...sealingKeys(this.config.secrets), random: this.accountsDeps.random })
    await addUpstream(this.accountsDeps, accountId, draft, (owner, id, secret) => vault.seal(owner, id, secret))
  }

  /** Sets the plan of an account, which need not be configured. */
  async putOnPlan(accountId: string, planId: string): Promise<void> {
    const record = auditRecord(this.accountsDeps, { type: 'account.plan_changed', accountId, planId })
    await this.store.setPlan(accountId, planId, record)
  }

  suspend(accountId: string): Promise<void> {
    return suspendAccount(this.accountsDeps, accountId)
  }

  revoke(keyId: string): Promise<unknown> {
    return revokeKey(this.accountsDeps, keyId)
  }

  rotate(keyId: string): Promise<MintedKey> {
    return rotateKey(this.accountsDeps, keyId, 'now')
  }

  /** Sends a POST with JSON to a path below the base URL. */
  post(path: string, body: unknown, headers: Record<string, string> = {}, signal?: AbortSignal): Promise<Response> {
    return fetch(`${this.baseUrl}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.key}`,
        'content-type': 'application/json',
        'user-agent': 'svc-router-tests/1.0',
        ...headers,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal && { signal }),
    })
  }

  chat(extra: Record<string, unknown> = {}, headers: Record<string, string> = {}): Promise<Response> {
    const messages = [{ role: 'user', content: 'Say hello.' }]
    return this.post('/chat/completions', { model: 'svc-router/frontier', messages, ...extra }, headers)
  }

  responses(extra: Record<string, unknown> = {}, headers: Record<string, string> = {}): Promise<Response> {
    return this.post('/responses', { model: 'svc-router/frontier', input: 'Say hello.', ...extra }, headers)
  }

  async stop(): Promise<void> {
    await this.app.stop()
    await this.store.close()
    await Promise.all(this.providers.map((provider) => provider.close()))
    rmSync(this.folder, { recursive: true, force: true })
  }
}
