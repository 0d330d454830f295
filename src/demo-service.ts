import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAccount } from './accounts/accounts.ts'
import { createKey } from './accounts/keys.ts'
import { startApp } from './app/app.ts'
import { openStore } from './app/storage.ts'
import type {
  DemoCache,
  DemoFailure,
  DemoInput,
  DemoService,
  DemoServiceOptions,
} from './cli/commands/demo/demo-ports.ts'
import { ask } from './cli/commands/doctor/ask.ts'
import type { Config } from './config/config.ts'
import { loadConfig } from './config/load.ts'
import { costOf } from './domain/token-price.ts'
import { publishedPriceOf } from './providers/prices/published-prices.ts'
import type { RandomBytes } from './runtime/random.ts'
import { AnthropicCache } from './simulation/caches/anthropic-cache.ts'
import { MarkedOpenAiCache } from './simulation/caches/openai-cache.ts'
import { agentTurns, codexSession } from './simulation/caches/recorded-session.ts'
import type { ScriptStep } from './simulation/providers/script.ts'
import {
  startSimulatedProvider,
  type SimulatedOptions,
  type SimulatedProvider,
} from './simulation/providers/simulated-provider.ts'
import { SkippingClock } from './simulation/skipping-clock.ts'

const plan = 'demo'
/** So that reasoning and fusion are visible in the times. */
const tokenDelayMs = 10
const drainMs = 500
/** How long the record of a request may take to be written. */
const recordMs = 2_000
const pollMs = 5
/** How long the service may take until it trusts its keys again after a jump of its clock. */
const readyMs = 2_000
const credentialVariable = 'SIMULATED_KEY'
const picodollarsPerUsd = 1e12

const steps: Readonly<Record<Exclude<DemoFailure, 'refuses connections'>, ScriptStep>> = {
  'answers 503': { do: 'status', status: 503, repeat: true },
  // The first event only opens the message.
  'ends its stream before any content': { do: 'cut', afterEvents: 1, by: 'end', repeat: true },
}

/** Starts the service of a demo: the real one, with its data in a temporary folder that `close` deletes. */
export async function openDemoService(options: DemoServiceOptions, random: RandomBytes): Promise<DemoService> {
  await using opened = new AsyncDisposableStack()
  const clock = new SkippingClock()
  const folder = opened.use(new TemporaryFolder())
  const providers = new Map<string, DemoProvider>()
  for (const name of options.providers) providers.set(name, opened.use(await DemoProvider.start(name, options)))
  const given = loadConfig({
    path: 'demo',
    explicit: false,
    given: { text: JSON.stringify(writeConfig(options, folder.path, providers)) },
    overrides: {},
    env: { [credentialVariable]: 'simulated' },
    random,
    localSecrets: 'make',
  })
  // Backends name the account, so it must exist when the service starts.
  const store = await openStore(given)
  opened.defer(() => store.close())
  const deps = { store, clock, random, pepper: given.secrets.pepper, actor: { kind: 'cli' } } as const
  const account = await createAccount(deps, plan, plan, given.plans)
  const { key } = await createKey(deps, account.id, plan)
  const app = await startApp({ ...given, drainDelayMs: 0, drainMs }, { clock, random, log: () => {} })
  opened.defer(() => app.stop())
  const { config } = app
  const readyUrl = new URL('/ready', config.baseUrl).href
  const isReady = async (): Promise<boolean> => {
    const answer = await ask(readyUrl, { headers: {}, withinMs: readyMs })
    return answer.kind === 'answer' && answer.status === 200
  }
  const owned = opened.move()
  return {
    baseUrl: config.baseUrl,
    key,
    fail: async (name, failure) => providers.get(name)!.fail(failure),
    async skip(ms) {
      await clock.skip(ms)
      // The jump fails a question to the database that is under way, and the service asks again after 250 ms.
      await readUntil(isReady, Boolean, readyMs)
    },
    urlOf: (name) => providers.get(name)!.baseUrl,
    recordedSession: (turns) => codexSession(agentTurns(turns), () => undefined),
    inputUsd: (name, input) => inputUsd(options.caching![name]!, input),
    recordOf: (id) =>
      readUntil(
        () => store.findRequest(id),
        (record) => record?.state === 'done',
        recordMs,
      ),
    close: () => owned.disposeAsync(),
  }
}

/** Reads until the value is final, at most this long, and returns the last one. */
async function readUntil<Value>(
  read: () => Promise<Value>,
  isFinal: (value: Value) => boolean,
  limitMs: number,
): Promise<Value> {
  const untilMs = performance.now() + limitMs
  for (;;) {
    const value = await read()
    if (isFinal(value) || performance.now() > untilMs) return value
    await sleep(pollMs)
  }
}

function writeConfig(
  { requestsPerMinute, requestsPerMonth, caching = {} }: DemoServiceOptions,
  folder: string,
  providers: ReadonlyMap<string, DemoProvider>,
): object {
  const limits = { requests_per_minute: requestsPerMinute, requests_per_month: requestsPerMonth }
  const entries = [...providers]
  return {
    mode: 'local' satisfies Config['mode'],
    listen: { host: '127.0.0.1', port: 0 },
    app_listen: { port: 0 },
    data: join(folder, 'data'),
    plans: { [plan]: { name: 'Demo', ...limits, premium: true, fusions_at_once: 8 } },
    default_plan: plan,
    providers: Object.fromEntries(entries.map(([name, { baseUrl }]) => [name, writeProvider(caching[name], baseUrl)])),
    backends: Object.fromEntries(entries.map(([name]) => [name, writeBackend(caching[name], name)])),
    // One profile for each of them, so that a demo can compare them.
    profiles: Object.fromEntries(Object.keys(caching).map((name) => [`${plan}/${name}`, { backends: [name] }])),
  }
}

function writeProvider(caching: DemoCache | undefined, baseUrl: string): object {
  if (caching === undefined) return { preset: 'custom', base_url: baseUrl, format: 'openai-chat' }
  return { preset: caching.like, base_url: baseUrl }
}

function writeBackend(caching: DemoCache | undefined, name: string): object {
  if (caching === undefined) return { provider: name, model: `${name}-model` }
  const { model, addsMarks } = caching
  return {
    provider: name,
    model,
    credential_env: credentialVariable,
    account: plan,
    cache: { marks: addsMarks ? 'auto' : 'off' },
  }
}

const caches: Readonly<Record<DemoCache['like'], () => NonNullable<SimulatedOptions['caches']>>> = {
  openai: () => ({ '/v1/responses': new MarkedOpenAiCache() }),
  anthropic: () => ({ '/v1/messages': new AnthropicCache({ minimum: 512 }) }),
}

/** The caches of a provider by path: those of its vendor's current models. */
function cachesOf(caching: DemoCache | undefined): SimulatedOptions['caches'] {
  return caching === undefined ? undefined : caches[caching.like]()
}

function inputUsd({ like, model }: DemoCache, { input, read, written }: DemoInput): number {
  const price = publishedPriceOf({ vendor: like, model })?.(Date.now())
  const counted = {
    inputTokens: input,
    cachedTokens: read,
    cacheWriteTokens: written,
    outputTokens: 0,
    reasoningTokens: 0,
  }
  const cost = costOf(counted, price)
  if (cost === undefined) throw new Error(`the model ${model} has no published price`)
  return Number(cost) / picodollarsPerUsd
}

/** A folder that is deleted at the latest when the process ends, also if a reader closes the pipe or a second Ctrl-C comes. */
class TemporaryFolder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'svc-router-demo-'))
  readonly #delete = (): void => rmSync(this.path, { recursive: true, force: true })

  constructor() {
    process.once('exit', this.#delete)
  }

  [Symbol.dispose](): void {
    process.off('exit', this.#delete)
    this.#delete()
  }
}

/** A simulated provider that can also close its port. */
class DemoProvider implements AsyncDisposable {
  readonly baseUrl: string
  readonly #options: SimulatedOptions
  #running: SimulatedProvider | undefined

  private constructor(running: SimulatedProvider, options: SimulatedOptions) {
    this.baseUrl = running.baseUrl
    this.#options = { ...options, port: running.port }
    this.#running = running
  }

  static async start(name: string, { say, caching }: DemoServiceOptions): Promise<DemoProvider> {
    const options = {
      name,
      tokenDelayMs,
      caches: cachesOf(caching?.[name]),
      say: (request: string) => say?.(name, request),
    }
    return new DemoProvider(await startSimulatedProvider(options), options)
  }

  async fail(failure: DemoFailure | undefined): Promise<void> {
    if (failure === 'refuses connections') return this[Symbol.asyncDispose]()
    this.#running ??= await startSimulatedProvider(this.#options)
    this.#running.script(failure === undefined ? [] : [steps[failure]])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const running = this.#running
    this.#running = undefined
    await running?.close()
  }
}
