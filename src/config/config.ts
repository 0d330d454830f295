import type { Settings } from '../domain/declared.ts'
import type { BackendFacts, ModelFacts } from '../domain/model-facts.ts'
import type { Plan } from '../domain/plans.ts'
import type { Profile } from '../domain/profiles.ts'
import type { FormatId } from '../formats/format.ts'
import type { BackendTimeouts } from '../gateway/ports.ts'
import type { Secret } from '../runtime/secret.ts'
import type { SettingsSource } from './settings-source.ts'

/** `local` generates secrets and has simulated providers; `production` allows neither (contract 1.10). */
export type Mode = 'local' | 'production'

/** Where a server listens. */
export interface ListenConfig {
  readonly host: string
  readonly port: number
  /** Whether other workers listen on the same port. */
  readonly sharesPort?: boolean | undefined
  /** The number of trusted proxies in front of it, whose `X-Forwarded-For` entries are believed. */
  readonly trustedProxies: number
}

/** The complete, validated configuration from `loadConfig`. */
export interface Config {
  /** The configuration file as it was named; undefined if there is none. */
  readonly file: string | undefined
  /** The content of the file when it was read. All workers of a node use this text. */
  readonly fileText: string | undefined
  readonly mode: Mode
  /** Port 0 lets the system choose: call `withPorts` once the port is known. */
  readonly listen: ListenConfig
  /** Where the web app listens: its own port, so that neither server can block the other. Port 0 as above. */
  readonly appListen: ListenConfig
  /** Whether the web app serves the admin API. */
  readonly adminApi: boolean
  /** Where metrics are served; undefined if they are off. Port 0 as above. */
  readonly metricsListen: { readonly host: string; readonly port: number } | undefined
  /** Where traces are sent; undefined if they are off. */
  readonly tracing: TracingConfig | undefined
  /** Processes that serve these ports together. */
  readonly workers: number
  /** Ends with `/v1`, or the configured path, without a trailing slash. */
  readonly baseUrl: string
  /** Without a trailing slash. */
  readonly appUrl: string
  /** Which of the two URLs were not set and are derived from `listen` and `appListen`. */
  readonly derivedUrls: { readonly base: boolean; readonly app: boolean }
  /** The data folder as it was named, so that printed commands can be pasted. */
  readonly dataDir: string
  /** The URL of the PostgreSQL database that stores everything; undefined for SQLite in the data folder. */
  readonly databaseUrl: Secret | undefined
  readonly secrets: ConfigSecrets
  /** Where the plans, backends, and profiles come from, and how declared ones are added to them. */
  readonly settings: SettingsSource
  readonly plans: readonly Plan[]
  /** The id of the plan of new accounts. */
  readonly defaultPlan: string
  /** The ID of the plan of the account that the first start creates in local mode. */
  readonly localPlan: string
  /** How plans are sold; undefined if an operator decides upgrade requests. */
  readonly billing: BillingConfig | undefined
  readonly providers: readonly ProviderConfig[]
  /** In the order of the file; simulated backends last. */
  readonly backends: readonly BackendConfig[]
  /** Facts about models by name, for accounts' own upstreams. The facts of backends already include them. */
  readonly modelFacts: ReadonlyMap<string, ModelFacts>
  /** `svc-router/frontier` first, then `svc-router/fusion`. */
  readonly profiles: readonly Profile[]
  readonly limits: Limits
  readonly requestRetentionMs: number
  /** How long responses are stored; 0 stores none (contract 12.2). */
  readonly responseRetentionMs: number
  /** How long answers are stored for retries with the same `Idempotency-Key`; 0 stores none. */
  readonly retryRetentionMs: number
  /** How long a stream may be silent before a keep-alive is sent (contract 10.10). */
  readonly keepAliveMs: number
  /** How long running answers may take after SIGTERM. */
  readonly drainMs: number
  /** How long requests are still accepted after SIGTERM, so that load balancers notice (contract 32.6). */
  readonly drainDelayMs: number
  /** Origins whose pages may call the API from a browser; `*` for all. */
  readonly corsOrigins: readonly string[]
  readonly edgeGate: { readonly enabled: boolean }
  /** Undefined if no email is sent. Sign-in by email then works only in local mode, through the outbox page. */
  readonly mail: MailConfig | undefined
  /** Where alerts of budgets are sent, in addition to email. */
  readonly budgetWebhook: WebhookConfig | undefined
  /** The URL of the public keys of GitHub's secret scanning. */
  readonly scanningKeysUrl: string
}

interface TracingConfig {
  /** The collector's URL. */
  readonly endpoint: string
  /** The share of requests that are traced although nothing failed, 0 to 1. */
  readonly sampleRate: number
  /** Whether a caller's sampled flag decides instead. */
  readonly trustCallers: boolean
}

/** A program of the operator that gets messages, and the secret that signs them. */
interface WebhookConfig {
  readonly url: string
  readonly secret: Secret
}

/** The mail server (SMTP) and the sender of email. */
export interface MailConfig {
  readonly host: string
  readonly port: number
  readonly security: 'tls' | 'starttls' | 'none'
  readonly user: string | undefined
  readonly password: Secret | undefined
  readonly from: string
  /** Receives support messages, which are also stored. */
  readonly support: string | undefined
}

/**
 * The secrets that hash API keys and encrypt stored values. During a rotation, the previous ones are still accepted
 * (contract 31.6).
 */
export interface ConfigSecrets {
  readonly pepper: Secret
  readonly previousPepper: Secret | undefined
  /** 32 bytes. */
  readonly sealingKey: Secret<Uint8Array>
  readonly previousSealingKey: Secret<Uint8Array> | undefined
  /** Whether we generated any of them and stored it in `secrets.json` in the data folder. */
  readonly keptInFile: boolean
  /** Where the pepper and the sealing key come from: names of environment variables, or `secrets.json`. */
  readonly sources: readonly string[]
}

/** Stripe, or a simulation of it. */
export interface BillingConfig {
  /** Undefined for the simulation. */
  readonly stripe: StripeConfig | undefined
  /** How long an invoice may stay unpaid before the account loses its plan. */
  readonly graceMs: number
}

export interface StripeConfig {
  readonly secretKey: Secret
  readonly webhookSecret: Secret
  /** The price ids of each plan: the one that is sold, then older ones that stay valid. */
  readonly prices: ReadonlyMap<string, readonly string[]>
}

/** A provider that the file declares, or a preset that is used by its own name. */
export interface ProviderConfig {
  readonly name: string
  readonly preset: string
  readonly baseUrl: string | undefined
  /** For presets with regions. */
  readonly region: string | undefined
  readonly format: FormatId | undefined
  readonly authHeader: string | undefined
  /** Extra headers of every request, by lower-case name. None is a credential. */
  readonly headers: Readonly<Record<string, string>> | undefined
  /** Whether a credential may be sent unencrypted, even in production. */
  readonly plainHttp: boolean
}

/** One provider, one model, one credential (contract 1.2). */
export interface BackendConfig {
  readonly id: string
  readonly provider: ProviderConfig
  readonly model: string
  readonly credential: Secret | undefined
  /** The environment variable that contained the credential. */
  readonly credentialEnv: string | undefined
  /**
   * For a backend with a credential: the id or name of the account that it serves (contract 7.2); undefined for the
   * local account. The account must exist when the service starts. A backend without a credential serves every account.
   */
  readonly account: string | undefined
  /** Whether the credential is the operator's, for accounts with managed access (contract 23.2). */
  readonly managed: boolean
  readonly failureDomain: string
  readonly facts: BackendFacts
  /** The name of its embedding vectors; undefined for a backend of conversations. */
  readonly embeddings: string | undefined
  /** Whether cache marks are added to requests. */
  readonly addsMarks: boolean
  readonly timeouts: BackendTimeouts
  readonly simulated: boolean
}

/** Limits on the resources that clients can use. */
export interface Limits {
  readonly bodyBytes: number
  readonly headerBytes: number
  /** From the first byte of a request until its headers are complete. */
  readonly headerMs: number
  /** From the headers until the body is complete. */
  readonly bodyMs: number
  readonly connections: number
  /** Maximum number of concurrent answers. */
  readonly streams: number
  /** Size of one account's stored responses, encrypted. */
  readonly storedBytes: number
  /** How long the answer to a request with an `Idempotency-Key` is generated without any client. */
  readonly detachedMs: number
}

/** The same configuration with the ports that the system chose, and with the URLs that depend on them. */
export function withPorts(
  config: Config,
  ports: { readonly api: number; readonly app: number; readonly metrics?: number | undefined },
): Config {
  const { metrics = config.metricsListen?.port ?? 0 } = ports
  const metricsListen = config.metricsListen && { ...config.metricsListen, port: metrics }
  const listen = { ...config.listen, port: ports.api }
  const appListen = { ...config.appListen, port: ports.app }
  const baseUrl = config.derivedUrls.base ? baseUrlFor(listen.host, ports.api) : config.baseUrl
  const appUrl = config.derivedUrls.app ? originFor(appListen.host, ports.app) : config.appUrl
  return { ...config, listen, appListen, metricsListen, baseUrl, appUrl }
}

/**
 * The same configuration with declared settings instead of the file's alone. @throws ConfigError if they do not fit the
 * file or the environment
 */
export function withDeclared(config: Config, declared: Settings): Config {
  return { ...config, ...config.settings.serve(declared) }
}

/** The backends that the public may see: all in local mode, otherwise those that serve more than one account. */
export function publicBackends({ backends, mode }: Pick<Config, 'backends' | 'mode'>): readonly BackendConfig[] {
  return backends.filter(({ credential, managed }) => mode === 'local' || managed || credential === undefined)
}

/** The base URL of a server on this host and port, for clients on the same machine. */
export function baseUrlFor(host: string, port: number): string {
  return `${originFor(host, port)}/v1`
}

/** The origin of a server on this host and port, for users on the same machine. */
export function originFor(host: string, port: number): string {
  const everywhere = host === '0.0.0.0' || host === '::'
  const name = everywhere ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  return `http://${name}:${port}`
}
