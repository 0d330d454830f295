import { availableParallelism } from 'node:os'
import { defaultPlans, type Plan, usualFusionsAtOnce } from '../domain/plans.ts'
import { dayMs } from '../runtime/durations.ts'
import { withoutEndSlashes } from '../runtime/end-slashes.ts'
import { Secret } from '../runtime/secret.ts'
import { checkPorts } from './check-ports.ts'
import { suggest } from './check-shape.ts'
import {
  baseUrlFor,
  originFor,
  type Config,
  type ConfigSecrets,
  type Limits,
  type MailConfig,
  type Mode,
} from './config.ts'
import type { Findings } from './findings.ts'
import { readDurationMs, readSizeBytes } from './measures.ts'
import { resolveBackends, resolveProviders } from './resolve-backends.ts'
import { resolveBilling } from './resolve-billing.ts'
import { resolveModelFacts } from './resolve-facts.ts'
import { resolveProfiles } from './resolve-profiles.ts'
import type { ConfigFile } from './schema.ts'
import { isPepper, readSealingKey, sealingKeyBytes, secretsFileName, type KeptSecrets } from './secrets.ts'

const defaultHost = '127.0.0.1'
const defaultPort = 8787
const defaultMetricsPort = 9464
const defaultSampleRate = 0.01
const defaultMailPort = 587
const defaultTlsMailPort = 465
const lastPort = 65_535
const defaultDataDir = './data'
const defaultWebhookSecretEnv = 'SVC_ROUTER_WEBHOOK_SECRET'
const defaultPepperEnv = 'SVC_ROUTER_PEPPER'
const defaultSealingKeyEnv = 'SVC_ROUTER_SEALING_KEY'
const modeEnv = 'SVC_ROUTER_MODE'
/** The limits that the file does not set (contract 30.1-30.7). */
const defaultLimits: Limits = {
  bodyBytes: 5 * 1024 ** 2,
  headerBytes: 32 * 1024,
  headerMs: 10_000,
  bodyMs: 60_000,
  connections: 20_000,
  streams: 4000,
  storedBytes: 1024 ** 3,
  detachedMs: 60_000,
}
/** How long records and stored text are kept (contract 30.9). */
const defaultRequestRetentionMs = 90 * dayMs
const defaultResponseRetentionMs = 30 * dayMs
const defaultRetryRetentionMs = dayMs
/** Silence before a keep-alive, and the time to finish after a stop signal (contract 30.10, 30.11, 30.20). */
const defaultKeepAliveMs = 10_000
const defaultDrainMs = 30_000
const defaultDrainDelayMs = { local: 100, production: 5_000 } as const
const defaultScanningKeysUrl = 'https://api.github.com/meta/public_keys/secret_scanning'

/** Settings from the command line, which override the file's. */
export interface Overrides {
  readonly host?: string | undefined
  readonly port?: number | undefined
  readonly appPort?: number | undefined
  readonly data?: string | undefined
}

/** The resolved file, except for secrets that still have to be generated. */
export type Resolved = Omit<Config, 'secrets' | 'settings' | 'fileText'> & { readonly given: GivenSecrets }

/** The secrets from the environment. */
export interface GivenSecrets {
  readonly pepper: Secret | undefined
  readonly previousPepper: Secret | undefined
  readonly sealingKey: Secret<Uint8Array> | undefined
  readonly previousSealingKey: Secret<Uint8Array> | undefined
  /** The environment variables that the first two are read from. */
  readonly names: { readonly pepper: string; readonly sealingKey: string }
}

/**
 * Applies defaults, environment variables, and overrides to a valid file (contract 1.12, 31.11). Problems go to
 * `findings`.
 */
export function resolve(
  file: ConfigFile,
  name: string | undefined,
  overrides: Overrides,
  findings: Findings,
): Resolved {
  const mode = resolveMode(file, findings)
  const host = overrides.host ?? file.listen?.host ?? defaultHost
  const port = overrides.port ?? file.listen?.port ?? defaultPort
  const listen = { host, port, trustedProxies: file.listen?.trusted_proxies ?? 0 }
  const appListen = resolveAppListen(file, overrides, listen)
  const metricsListen = resolveMetricsListen(file)
  checkPorts({ listen, appListen, metricsListen }, findings)
  const baseUrl = withoutEndSlashes(file.base_url ?? baseUrlFor(host, port))
  if (mode === 'production' && !findings.mentions(['app_url'])) {
    findings.add(
      ['app_url'],
      'production mode requires app_url, because errors link to its account pages',
      'add "app_url: https://…"',
    )
  }
  const { plans, providers, backends, profiles } = resolveServed(file, mode, findings)
  return {
    file: name,
    mode,
    listen,
    appListen,
    adminApi: file.admin_api?.enabled ?? false,
    workers: resolveWorkers(file, findings),
    metricsListen,
    tracing: resolveTracing(file),
    baseUrl,
    appUrl: withoutEndSlashes(file.app_url ?? originFor(appListen.host, appListen.port)),
    derivedUrls: { base: file.base_url === undefined, app: file.app_url === undefined },
    dataDir: overrides.data ?? file.data ?? defaultDataDir,
    databaseUrl: resolveDatabaseUrl(file, findings),
    given: resolveSecrets(file, mode, findings),
    plans,
    defaultPlan: resolveDefaultPlan(file, plans, findings),
    localPlan: resolveLocalPlan(file, plans),
    billing: resolveBilling(file, mode, plans, findings),
    providers,
    backends,
    modelFacts: resolveModelFacts(file),
    profiles,
    limits: resolveLimits(file.limits),
    requestRetentionMs: durationMs(file.retention?.requests, defaultRequestRetentionMs),
    responseRetentionMs: durationMs(file.retention?.responses, defaultResponseRetentionMs),
    retryRetentionMs: durationMs(file.retention?.retries, defaultRetryRetentionMs),
    keepAliveMs: durationMs(file.keep_alive, defaultKeepAliveMs),
    drainMs: durationMs(file.drain, defaultDrainMs),
    drainDelayMs: durationMs(file.drain_delay, defaultDrainDelayMs[mode]),
    ...resolveAccess(file),
    mail: resolveMail(file, findings),
    budgetWebhook: resolveBudgetWebhook(file, findings),
    scanningKeysUrl: resolveScanningKeysUrl(file, mode, findings),
  }
}

/** The plans, backends, and profiles of a file, which declared ones may replace. */
export function resolveServed(
  file: ConfigFile,
  mode: Mode,
  findings: Findings,
): Pick<Config, 'plans' | 'providers' | 'backends' | 'profiles'> {
  const providers = resolveProviders(file, findings)
  const backends = resolveBackends(file, mode, providers, findings)
  const profiles = resolveProfiles(file, backends, findings)
  return { plans: resolvePlans(file), providers: [...providers.values()], backends, profiles }
}

function resolveAccess({ cors, edge_gate: edgeGate }: ConfigFile): Pick<Config, 'corsOrigins' | 'edgeGate'> {
  return { corsOrigins: cors?.origins ?? [], edgeGate: { enabled: edgeGate?.enabled ?? true } }
}

function resolveWorkers({ workers = 1, billing }: ConfigFile, findings: Findings): number {
  const count = workers === 'auto' ? availableParallelism() : workers
  if (count > 1 && billing?.simulated === true)
    findings.add(
      ['workers'],
      'simulated payments require a single worker, because the simulation runs in its process',
      'remove workers, or billing.simulated',
    )
  return count
}

function resolveDatabaseUrl({ database }: ConfigFile, findings: Findings): Secret | undefined {
  if (database === undefined) return undefined
  const url = findings.secret(
    ['database', 'url_env'],
    database.url_env,
    'it must contain the URL of the PostgreSQL database',
  )
  if (url === undefined || /^postgres(?:ql)?:\/\/./.test(url.reveal())) return url
  findings.add(
    ['database', 'url_env'],
    `the environment variable ${database.url_env} is not the URL of a PostgreSQL database`,
    'use postgres://user:password@host:5432/name',
  )
  return undefined
}

/** Anyone who can change these keys in transit can revoke every leaked key, so https is required. */
function resolveScanningKeysUrl({ leaked_keys: said }: ConfigFile, mode: Mode, findings: Findings): string {
  const url = said?.github?.keys_url ?? defaultScanningKeysUrl
  if (mode === 'production' && !url.startsWith('https:'))
    findings.add(
      ['leaked_keys', 'github', 'keys_url'],
      "in production, GitHub's public keys must be fetched over https",
      'use https://…',
    )
  return url
}

function resolveAppListen(
  { app_listen: said }: ConfigFile,
  { appPort }: Overrides,
  { host, port }: Config['listen'],
): Config['appListen'] {
  return {
    host: said?.host ?? host,
    port: appPort ?? said?.port ?? portBeside(port),
    trustedProxies: said?.trusted_proxies ?? 0,
  }
}

function resolveMetricsListen({ metrics_listen: said }: ConfigFile): Config['metricsListen'] {
  return said && { host: said.host ?? defaultHost, port: said.port ?? defaultMetricsPort }
}

function resolveTracing({ tracing: said }: ConfigFile): Config['tracing'] {
  if (said === undefined) return undefined
  const { endpoint, sample_rate: sampleRate = defaultSampleRate, trust_callers: trustCallers = false } = said
  return { endpoint, sampleRate, trustCallers }
}

/** The default port of the web app: the API's port plus one, or chosen by the system if the API's is. */
function portBeside(port: number): number {
  if (port === 0) return 0
  return port === lastPort ? port - 1 : port + 1
}

/** Combines the secrets from the environment with those in the data folder. */
export function completeSecrets(given: GivenSecrets, kept: KeptSecrets | undefined): ConfigSecrets | undefined {
  const pepper = given.pepper ?? (kept === undefined ? undefined : new Secret(kept.pepper))
  const sealingKey = given.sealingKey ?? (kept === undefined ? undefined : new Secret(kept.sealingKey))
  if (pepper === undefined || sealingKey === undefined) return undefined
  const keptInFile = given.pepper === undefined || given.sealingKey === undefined
  const sources = [
    given.pepper === undefined ? secretsFileName : given.names.pepper,
    given.sealingKey === undefined ? secretsFileName : given.names.sealingKey,
  ]
  return {
    pepper,
    previousPepper: given.previousPepper,
    sealingKey,
    previousSealingKey: given.previousSealingKey,
    keptInFile,
    sources: [...new Set(sources)],
  }
}

/** The file or either variable turns production on; none turns it off (contract 31.10). */
function resolveMode(file: ConfigFile, findings: Findings): Mode {
  const wanted = findings.env[modeEnv]
  if (wanted !== undefined && wanted !== '' && wanted !== 'local' && wanted !== 'production') {
    findings.add(
      [],
      `the value of the environment variable ${modeEnv} is neither local nor production`,
      `set ${modeEnv} to one of the two, or unset it`,
    )
  }
  return wanted === 'production' || findings.env['NODE_ENV'] === 'production' || file.mode === 'production'
    ? 'production'
    : 'local'
}

/** Plans in the file replace all default plans (contract 31.8). */
function resolvePlans(file: ConfigFile): readonly Plan[] {
  const given = Object.entries(file.plans ?? {})
  if (given.length === 0) return defaultPlans
  return given.map(([id, plan]) => ({
    id,
    name: plan.name,
    requestsPerMinute: plan.requests_per_minute,
    requestsPerMonth: plan.requests_per_month,
    premium: plan.premium ?? false,
    ...(plan.premium === true ? { fusionsAtOnce: plan.fusions_at_once ?? usualFusionsAtOnce } : {}),
  }))
}

function resolveDefaultPlan(file: ConfigFile, plans: readonly Plan[], findings: Findings): string {
  const ids = plans.map((plan) => plan.id)
  const wanted = file.default_plan
  if (wanted !== undefined && !ids.includes(wanted) && !findings.names('plans').includes(wanted))
    findings.add(['default_plan'], `there is no plan "${wanted}"`, suggest(wanted, ids))
  return wanted ?? (ids.includes('free') ? 'free' : (ids[0] ?? 'free'))
}

/** Without a choice, the person who tries the service gets all of it (contract 31.8). */
function resolveLocalPlan(file: ConfigFile, plans: readonly Plan[]): string {
  const most = plans.find(({ id }) => id === 'max') ?? plans.at(-1)
  return file.default_plan ?? most?.id ?? 'max'
}

function resolveSecrets(file: ConfigFile, mode: Mode, findings: Findings): GivenSecrets {
  function read(
    setting: 'pepper_env' | 'previous_pepper_env' | 'sealing_key_env' | 'previous_sealing_key_env',
    byDefault: string | undefined,
    what: string,
  ): [Secret | undefined, string] {
    const name = file.secrets?.[setting] ?? byDefault
    if (name === undefined) return [undefined, '']
    const isNeeded = mode === 'production' || setting.startsWith('previous_')
    const isSet = (findings.env[name] ?? '').trim() !== ''
    return [isSet || isNeeded ? findings.secret(['secrets', setting], name, what) : undefined, name]
  }
  function pepper(setting: 'pepper_env' | 'previous_pepper_env', byDefault: string | undefined): Secret | undefined {
    const [secret, name] = read(setting, byDefault, 'it must contain the secret that API keys are hashed with')
    if (secret === undefined || isPepper(secret.reveal())) return secret
    findings.add(
      ['secrets', setting],
      `the value of the environment variable ${name} is too short to hash keys with`,
      'use at least 16 characters, for example from "openssl rand -base64 32"',
    )
    return undefined
  }
  function sealingKey(
    setting: 'sealing_key_env' | 'previous_sealing_key_env',
    byDefault: string | undefined,
  ): Secret<Uint8Array> | undefined {
    const [secret, name] = read(setting, byDefault, 'it must contain the key that encrypts provider credentials')
    if (secret === undefined) return undefined
    const bytes = readSealingKey(secret.reveal())
    if (bytes !== undefined) return new Secret(bytes)
    findings.add(
      ['secrets', setting],
      `the environment variable ${name} does not contain ${sealingKeyBytes} bytes in base64 or hex`,
      'create one with "openssl rand -base64 32"',
    )
    return undefined
  }
  return {
    pepper: pepper('pepper_env', defaultPepperEnv),
    previousPepper: pepper('previous_pepper_env', undefined),
    sealingKey: sealingKey('sealing_key_env', defaultSealingKeyEnv),
    previousSealingKey: sealingKey('previous_sealing_key_env', undefined),
    names: {
      pepper: file.secrets?.pepper_env ?? defaultPepperEnv,
      sealingKey: file.secrets?.sealing_key_env ?? defaultSealingKeyEnv,
    },
  }
}

function resolveMail({ mail }: ConfigFile, findings: Findings): MailConfig | undefined {
  if (mail === undefined) return undefined
  const { host, user, from, security = 'starttls', password_env: variable } = mail
  const password =
    variable === undefined
      ? undefined
      : findings.secret(['mail', 'password_env'], variable, 'it must contain the password of the mail server')
  const port = mail.port ?? (security === 'tls' ? defaultTlsMailPort : defaultMailPort)
  return { host, port, security, user, password, from, support: mail.support }
}

function resolveBudgetWebhook({ budget_alerts: given }: ConfigFile, findings: Findings): Config['budgetWebhook'] {
  if (given === undefined) return undefined
  const { webhook_url: url, webhook_secret_env: variable = defaultWebhookSecretEnv } = given
  const path = ['budget_alerts', 'webhook_secret_env']
  const secret = findings.secret(path, variable, 'it must contain the secret that signs alerts of budgets')
  if (secret === undefined) return undefined
  if (!isPepper(secret.reveal()))
    findings.add(
      path,
      `the value of the environment variable ${variable} is too short to sign with`,
      'use at least 16 characters, for example from "openssl rand -base64 32"',
    )
  return { url, secret }
}

function resolveLimits(given: ConfigFile['limits']): Limits {
  return {
    bodyBytes: sizeBytes(given?.body, defaultLimits.bodyBytes),
    headerBytes: sizeBytes(given?.headers, defaultLimits.headerBytes),
    headerMs: durationMs(given?.header_time, defaultLimits.headerMs),
    bodyMs: durationMs(given?.body_time, defaultLimits.bodyMs),
    connections: given?.connections ?? defaultLimits.connections,
    streams: given?.streams ?? defaultLimits.streams,
    storedBytes: sizeBytes(given?.stored_responses, defaultLimits.storedBytes),
    detachedMs: durationMs(given?.detached, defaultLimits.detachedMs),
  }
}

function durationMs(text: string | undefined, byDefault: number): number {
  return text === undefined ? byDefault : (readDurationMs(text) ?? byDefault)
}

function sizeBytes(text: string | undefined, byDefault: number): number {
  return text === undefined ? byDefault : (readSizeBytes(text) ?? byDefault)
}
