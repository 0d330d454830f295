import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nodeFlags } from '../bin/boot.mjs'
import { plainProfile, unrecordedProfile } from './bodies.ts'
import { programFile } from './programs.ts'

const repository = join(import.meta.dirname, '..')
const currentProgram = join(repository, 'src', 'main.ts')
const withoutSessions = join(import.meta.dirname, 'without-sessions.ts')
const withoutObservers = join(import.meta.dirname, 'without-observers.ts')
/**
 * The maximum of the configuration. A run that exceeds it in any minute gets 429s and is reported as failed.
 */
const requestsPerMinute = 10_000_000
const requestsPerMonth = 1_000_000_000

export interface SvcRouterStart {
  readonly port: number
  readonly appPort: number
  readonly upstreamPort: number
  /** What is turned on besides the defaults, except for the profile `plainProfile`. */
  readonly observed?: 'metrics' | 'metrics and traces' | undefined
  /** Whether Claude is the backend, with sessions and cache marks, and with less of them in the profiles of `without-sessions.ts`. */
  readonly claude?: boolean | undefined
  /** How many processes share the port. */
  readonly workers?: number | undefined
  /** Whether the URL in `DATABASE_URL` stores everything, instead of SQLite. */
  readonly usesPostgres?: boolean | undefined
  /** The folder of another copy of the program. */
  readonly program?: string | undefined
}

/** Returns the arguments for `node` that start the real program on a port, with a provider at `upstreamPort`. */
export function svcRouterCommand(
  folder: string,
  { port, appPort, upstreamPort, observed, claude = false, workers, usesPostgres = false, program }: SvcRouterStart,
): readonly string[] {
  const config = join(folder, 'svc-router.yaml')
  const scale = workers === undefined ? '' : `workers: ${workers}\n`
  const store = usesPostgres ? 'database:\n  url_env: DATABASE_URL\n' : ''
  writeFileSync(
    config,
    configuration(upstreamPort, claude, observed !== undefined) + observation(observed, upstreamPort) + scale + store,
  )
  return [
    ...(claude ? ['--import', withoutSessions] : []),
    ...(observed === undefined ? [] : ['--import', withoutObservers]),
    ...(program === undefined ? [...nodeFlags, currentProgram] : [programFile(program)]),
    'start',
    '--port',
    String(port),
    '--app-port',
    String(appPort),
    '--data',
    join(folder, 'data'),
    '--config',
    config,
  ]
}

/** One backend without a credential, and a plan with practically no limits. Everything else has its default. */
function configuration(upstreamPort: number, claude: boolean, isObserved: boolean): string {
  const [format, model] = claude ? ['anthropic-messages', 'claude-opus-5'] : ['openai-chat', 'bench-model']
  const plain = `  ${plainProfile}:\n    backends: [bench-chat]\n    cache: { marks: off }\n`
  const unrecorded = `  ${unrecordedProfile}:\n    backends: [bench-chat]\n`
  const others = claude ? plain + unrecorded : isObserved ? plain : ''
  return `plans:
  max:
    name: Max
    requests_per_minute: ${requestsPerMinute}
    requests_per_month: ${requestsPerMonth}
    premium: true
default_plan: max
providers:
  bench:
    preset: custom
    base_url: http://127.0.0.1:${upstreamPort}/v1
    format: ${format}
backends:
  bench-chat:
    provider: bench
    model: ${model}
profiles:
  svc-router/frontier:
    backends: [bench-chat]
${others}`
}

/** Spans are sent to the fake upstream, which accepts everything. */
function observation(observed: SvcRouterStart['observed'], upstreamPort: number): string {
  if (observed === undefined) return ''
  const traces = `tracing:\n  endpoint: http://127.0.0.1:${upstreamPort}/v1/chat/completions\n`
  return `metrics_listen:\n  port: 0\n${observed === 'metrics' ? '' : traces}`
}

/** The key that the first start stored in the data folder, or undefined if it does not exist yet. */
export function readFirstKey(folder: string): string | undefined {
  const file = join(folder, 'data', 'first-key')
  return existsSync(file) ? /sk_svc_[0-9A-Za-z]+/.exec(readFileSync(file, 'utf8'))?.[0] : undefined
}

/** Why the program cannot be measured on this machine; undefined if it can. */
export function whyNoSvcRouter(): string | undefined {
  return existsSync(currentProgram) ? undefined : 'src/main.ts is not there'
}
