import type { ModelFacts } from '../domain/model-facts.ts'
import type { Plan } from '../domain/plans.ts'
import type { Profile } from '../domain/profiles.ts'
import type { Secret } from '../runtime/secret.ts'
import type { FormatId } from '../formats/format.ts'
import type { BackendTimeouts } from '../gateway/ports.ts'

/** `local` makes its own secrets and simulated providers; `production` refuses both. */
export type Mode = 'local' | 'production'

/** Everything that can be set, complete and checked: what `loadConfig` gives and every part is built from. */
/** Where something is served. */
export interface ListenConfig {
  readonly host: string
  readonly port: number
  /** So many proxies of the operator's own stand before it; what they say of a caller's address is believed. */
  readonly trustedProxies: number
}

export interface Config {
  /** The file that was read, as it was named; undefined when there is none and everything is a default. */
  readonly file: string | undefined
  readonly mode: Mode
  /** `port` 0 lets the system choose: call `withPorts` once it is known. */
  readonly listen: ListenConfig
  /** Where the web app is served: a port of its own, so that neither holds the other up. `port` 0 as above. */
  readonly appListen: ListenConfig
  /** Ends in `/v1` or whatever path was configured, without a slash behind it. */
  readonly baseUrl: string
  /** Without a slash at its end. */
  readonly appUrl: string
  /** Which of the two URLs follow from `listen` and `appListen` and were not set. */
  readonly derivedUrls: { readonly base: boolean; readonly app: boolean }
  /** The data folder as it was named, so that printed commands can be pasted. */
  readonly dataDir: string
  readonly secrets: ConfigSecrets
  readonly plans: readonly Plan[]
  /** The id of the plan of new accounts. */
  readonly defaultPlan: string
  /** How plans are sold; undefined where an operator decides requests for them. */
  readonly billing: BillingConfig | undefined
  readonly providers: readonly ProviderConfig[]
  /** In the order of the file; simulated backends last. */
  readonly backends: readonly BackendConfig[]
  /** What is known of models by name: of accounts' own upstreams. Backends have it in their own facts already. */
  readonly modelFacts: ReadonlyMap<string, ModelFacts>
  /** `svc-router/frontier` first, then `svc-router/fusion`. */
  readonly profiles: readonly Profile[]
  readonly limits: Limits
  readonly requestRetentionMs: number
  /** How long answers are stored for callers who want them to be; 0 stores none (contract 12.2). */
  readonly responseRetentionMs: number
  /** How long a stream may be silent before the service writes to keep it open (contract 10.10). */
  readonly keepAliveMs: number
  /** How long running answers may take after SIGTERM. */
  readonly drainMs: number
  /** Origins whose pages may call the API from a browser; `*` for every one. */
  readonly corsOrigins: readonly string[]
  readonly edgeGate: { readonly enabled: boolean }
  /** Undefined where no mail is sent: then nobody signs in by email, but for the outbox page of local mode. */
  readonly mail: MailConfig | undefined
  /** Where the public keys of GitHub's secret scanning are read. */
  readonly scanningKeysUrl: string
}

/** The mail server (SMTP) and whom letters are from. */
export interface MailConfig {
  readonly host: string
  readonly port: number
  readonly security: 'tls' | 'starttls' | 'none'
  readonly user: string | undefined
  readonly password: Secret | undefined
  readonly from: string
  /** Whom messages to support are sent to, besides being kept. */
  readonly support: string | undefined
}

/** What keys are hashed with and credentials sealed with. The previous ones are still accepted while a change is under way. */
export interface ConfigSecrets {
  readonly pepper: Secret
  readonly previousPepper: Secret | undefined
  /** 32 bytes. */
  readonly sealingKey: Secret<Uint8Array>
  readonly previousSealingKey: Secret<Uint8Array> | undefined
  /** Whether any of the two was made by us and is kept in `secrets.json` in the data folder. */
  readonly keptInFile: boolean
}

/** Stripe, or a simulation of it. */
export interface BillingConfig {
  /** Undefined: simulated. */
  readonly stripe: StripeConfig | undefined
  /** How long an unpaid invoice is waited for. */
  readonly graceMs: number
}

export interface StripeConfig {
  readonly secretKey: Secret
  readonly webhookSecret: Secret
  /** By the id of a plan: the price that is sold, and behind it those that are honoured. */
  readonly prices: ReadonlyMap<string, readonly string[]>
}

/** A vendor as the file declares it, or a preset used by its own name. */
export interface ProviderConfig {
  readonly name: string
  readonly preset: string
  readonly baseUrl: string | undefined
  /** Where the preset has regions. */
  readonly region: string | undefined
  readonly format: FormatId | undefined
  readonly authHeader: string | undefined
  /** Further headers of every request to it, by lower-case name. None of them is a credential. */
  readonly headers: Readonly<Record<string, string>> | undefined
  /** Whether a credential may be sent unencrypted, in production too. */
  readonly plainHttp: boolean
}

/** One provider, one model, one credential (contract 1.2). */
export interface BackendConfig {
  readonly id: string
  readonly provider: ProviderConfig
  readonly model: string
  readonly credential: Secret | undefined
  /** The name of the environment variable that the credential came from. */
  readonly credentialEnv: string | undefined
  /**
   * For a backend with a credential: id or name of the one account that it serves (contract 7.2); undefined is the
   * local account. It must exist when the service starts. A backend without a credential serves every account.
   */
  readonly account: string | undefined
  /** Whether the credential is the operator's, for accounts with managed access while that is on (contract 23.2). */
  readonly managed: boolean
  readonly failureDomain: string
  readonly facts: ModelFacts
  /** The name of the vectors that it gives; undefined where it holds conversations. */
  readonly embeddings: string | undefined
  readonly timeouts: BackendTimeouts
  readonly simulated: boolean
}

/** Bounds on what one caller and all callers together can hold. */
export interface Limits {
  readonly bodyBytes: number
  readonly headerBytes: number
  /** From the first byte of a request until its headers are complete. */
  readonly headerMs: number
  /** From the headers until the body is complete. */
  readonly bodyMs: number
  readonly connections: number
  /** Answers that may be under way at once. */
  readonly streams: number
  /** Sealed text of stored answers that one account may have. */
  readonly storedBytes: number
}

/** The same configuration once the system has chosen the ports: the URLs that follow from them are derived again. */
export function withPorts(config: Config, ports: { readonly api: number; readonly app: number }): Config {
  const listen = { ...config.listen, port: ports.api }
  const appListen = { ...config.appListen, port: ports.app }
  const baseUrl = config.derivedUrls.base ? baseUrlFor(listen.host, ports.api) : config.baseUrl
  const appUrl = config.derivedUrls.app ? originFor(appListen.host, ports.app) : config.appUrl
  return { ...config, listen, appListen, baseUrl, appUrl }
}

/**
 * The backends that everybody may see. In local mode all; else none that serves one account alone: what that has is nobody
 * else's business.
 */
export function publicBackends({ backends, mode }: Pick<Config, 'backends' | 'mode'>): readonly BackendConfig[] {
  return backends.filter(({ credential, managed }) => mode === 'local' || managed || credential === undefined)
}

/** The base URL of a service on this host and port, as a client on the same machine reaches it. */
export function baseUrlFor(host: string, port: number): string {
  return `${originFor(host, port)}/v1`
}

/** The origin of what listens on this host and port, as somebody on the same machine reaches it. */
export function originFor(host: string, port: number): string {
  const everywhere = host === '0.0.0.0' || host === '::'
  const name = everywhere ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host
  return `http://${name}:${port}`
}
