import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAccount } from './accounts/accounts.ts'
import { createKey } from './accounts/keys.ts'
import { startApp } from './app/app.ts'
import { openStore } from './app/storage.ts'
import type { DemoFailure, DemoService, DemoServiceOptions } from './cli/commands/demo/demo-ports.ts'
import type { Config } from './config/config.ts'
import { loadConfig } from './config/load.ts'
import type { RandomBytes } from './runtime/random.ts'
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
  for (const name of options.providers) providers.set(name, opened.use(await DemoProvider.start(name, options.say)))
  const given = loadConfig({
    path: 'demo',
    explicit: false,
    given: { text: JSON.stringify(writeConfig(options, folder.path, providers)) },
    overrides: {},
    env: {},
    random,
    localSecrets: 'make',
  })
  const app = await startApp({ ...given, drainDelayMs: 0, drainMs }, { clock, random, log: () => {} })
  opened.defer(() => app.stop())
  const { config } = app
  const store = await openStore(config)
  opened.defer(() => store.close())
  const deps = { store, clock, random, pepper: config.secrets.pepper, actor: { kind: 'cli' } } as const
  const account = await createAccount(deps, plan, plan, config.plans)
  const { key } = await createKey(deps, account.id, plan)
  const owned = opened.move()
  return {
    baseUrl: config.baseUrl,
    key,
    fail: async (name, failure) => providers.get(name)!.fail(failure),
    skip: (ms) => clock.skip(ms),
    async recordOf(id) {
      const untilMs = performance.now() + recordMs
      for (;;) {
        const record = await store.findRequest(id)
        if (record?.state === 'done' || performance.now() > untilMs) return record
        await new Promise((resolve) => setTimeout(resolve, pollMs))
      }
    },
    close: () => owned.disposeAsync(),
  }
}

function writeConfig(
  { requestsPerMinute, requestsPerMonth }: DemoServiceOptions,
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
    providers: Object.fromEntries(
      entries.map(([name, { baseUrl }]) => [name, { preset: 'custom', base_url: baseUrl, format: 'openai-chat' }]),
    ),
    backends: Object.fromEntries(entries.map(([name]) => [name, { provider: name, model: `${name}-model` }])),
  }
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

  static async start(name: string, say: DemoServiceOptions['say']): Promise<DemoProvider> {
    const options = { name, tokenDelayMs, say: (request: string) => say?.(name, request) }
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
