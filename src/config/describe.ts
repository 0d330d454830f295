import { stringify } from 'yaml'
import type { ModelFacts, UsdRates } from '../domain/model-facts.ts'
import type { FusionDefaults, Profile } from '../domain/profiles.ts'
import type { RoutingPolicy } from '../domain/routing-policy.ts'
import type { BackendConfig, BillingConfig, Config, ListenConfig } from './config.ts'
import { writeDuration, writeSize } from './measures.ts'

/** The effective configuration as YAML with every secret masked, for `svc-router check` (contract 31.7). */
export function describeConfig(config: Config): string {
  return stringify(plainConfig(config), { lineWidth: 0 })
}

/** The effective configuration as a plain object with every secret masked, for `--json`. */
export function plainConfig(config: Config): Record<string, unknown> {
  return {
    mode: config.mode,
    listen: plainListen(config.listen),
    app_listen: plainListen(config.appListen),
    admin_api: { enabled: config.adminApi },
    workers: config.workers,
    metrics_listen: config.metricsListen,
    tracing: config.tracing && {
      endpoint: config.tracing.endpoint,
      sample_rate: config.tracing.sampleRate,
      trust_callers: config.tracing.trustCallers,
    },
    base_url: config.baseUrl,
    app_url: config.appUrl,
    data: config.dataDir,
    database: config.databaseUrl === undefined ? undefined : { url: masked },
    secrets: {
      pepper: masked,
      previous_pepper: config.secrets.previousPepper === undefined ? undefined : masked,
      sealing_key: masked,
      previous_sealing_key: config.secrets.previousSealingKey === undefined ? undefined : masked,
      kept_in: config.secrets.keptInFile ? 'secrets.json in the data folder' : 'environment',
    },
    plans: byId(config.plans, (plan) => ({
      name: plan.name,
      requests_per_minute: plan.requestsPerMinute,
      requests_per_month: plan.requestsPerMonth,
      premium: plan.premium,
      fusions_at_once: plan.fusionsAtOnce,
    })),
    default_plan: config.defaultPlan,
    billing: config.billing === undefined ? undefined : plainBilling(config.billing),
    backends: byId(config.backends, plainBackend),
    models: Object.fromEntries(Array.from(config.modelFacts, ([model, facts]) => [model, plainFacts(facts)])),
    profiles: byId(config.profiles, plainProfile),
    limits: {
      body: writeSize(config.limits.bodyBytes),
      headers: writeSize(config.limits.headerBytes),
      header_time: writeDuration(config.limits.headerMs),
      body_time: writeDuration(config.limits.bodyMs),
      connections: config.limits.connections,
      streams: config.limits.streams,
      stored_responses: writeSize(config.limits.storedBytes),
      detached: writeDuration(config.limits.detachedMs),
    },
    retention: {
      requests: writeDuration(config.requestRetentionMs),
      responses: writeDuration(config.responseRetentionMs),
      retries: writeDuration(config.retryRetentionMs),
    },
    keep_alive: writeDuration(config.keepAliveMs),
    drain: writeDuration(config.drainMs),
    drain_delay: writeDuration(config.drainDelayMs),
    cors: { origins: config.corsOrigins },
    edge_gate: config.edgeGate,
    mail: config.mail === undefined ? undefined : { ...config.mail, password: config.mail.password && masked },
    budget_alerts: config.budgetWebhook && { webhook_url: config.budgetWebhook.url, webhook_secret: masked },
    leaked_keys: { github: { keys_url: config.scanningKeysUrl } },
  }
}

const masked = '********'

function plainProfile(profile: Profile): Record<string, unknown> {
  return {
    description: profile.description,
    backends: profile.backends,
    premium: profile.premium,
    quota_units: profile.quotaUnits,
    reports_model: profile.reportsModel ?? false,
    reports_cost: profile.reportsCost ?? false,
    cache: { marks: profile.leavesMarks === true ? 'off' : 'auto' },
    price: profile.price,
    routing: plainRouting(profile.routing),
    fusion: plainFusion(profile.fusion),
  }
}

function plainBilling({ stripe, graceMs }: BillingConfig): Record<string, unknown> {
  return {
    stripe:
      stripe === undefined
        ? undefined
        : { secret_key: masked, webhook_secret: masked, prices: Object.fromEntries(stripe.prices) },
    simulated: stripe === undefined ? true : undefined,
    grace: writeDuration(graceMs),
  }
}

function plainBackend(backend: BackendConfig): Record<string, unknown> {
  const { provider, timeouts, facts } = backend
  return {
    provider: provider.name,
    preset: provider.preset,
    base_url: provider.baseUrl,
    region: facts.region ?? provider.region,
    format: provider.format,
    auth_header: provider.authHeader,
    headers: provider.headers,
    plain_http: provider.plainHttp || undefined,
    model: backend.model,
    credential: backend.credentialEnv === undefined ? undefined : `${masked} (from ${backend.credentialEnv})`,
    account: backend.credential === undefined || backend.managed ? undefined : (backend.account ?? 'local'),
    managed: backend.managed || undefined,
    failure_domain: backend.failureDomain,
    ...plainFacts(facts),
    zero_retention: facts.zeroRetention,
    cache_lifetime: facts.cacheMs === undefined ? undefined : writeDuration(facts.cacheMs),
    cache_domain: facts.cacheDomain,
    embeddings: backend.embeddings,
    cache: { marks: backend.addsMarks ? 'auto' : 'off' },
    simulated: backend.simulated,
    timeouts: {
      connect: writeDuration(timeouts.connectMs),
      headers: writeDuration(timeouts.headersMs),
      first_content: writeDuration(timeouts.firstContentMs),
      whole_answer: writeDuration(timeouts.wholeAnswerMs),
      idle: writeDuration(timeouts.idleMs),
      total: writeDuration(timeouts.totalMs),
    },
  }
}

function plainFacts({ contextWindow, maxOutputTokens, capabilities, quality, usdPerMillion }: ModelFacts) {
  return {
    context_window: contextWindow,
    max_output_tokens: maxOutputTokens,
    reasoning: capabilities?.reasoning ?? false,
    capabilities,
    quality,
    usd_per_million: usdPerMillion && {
      ...plainRates(usdPerMillion),
      long_context: usdPerMillion.longContext && {
        above_tokens: usdPerMillion.longContext.above,
        ...plainRates(usdPerMillion.longContext),
      },
      service_tiers: usdPerMillion.serviceTiers,
    },
  }
}

function plainRates(rates: UsdRates) {
  return {
    input: rates.input,
    output: rates.output,
    cached_input: rates.cachedInput,
    cache_write: rates.cacheWrite,
    cache_write_1h: rates.cacheWrite1h,
    audio_input: rates.audioInput,
    audio_output: rates.audioOutput,
    image_input: rates.imageInput,
    image_output: rates.imageOutput,
  }
}

function plainRouting(policy: RoutingPolicy | undefined) {
  if (policy === undefined) return undefined
  const { sort, order, weights, maxPrice, regions, zeroRetention, hedge, sticky, rescue } = policy
  return { sort, order, weights, max_price: maxPrice, regions, zero_retention: zeroRetention, hedge, sticky, rescue }
}

function plainFusion(defaults: FusionDefaults | undefined) {
  if (defaults === undefined) return undefined
  const { preset, panelSize, panelModels, judgeModel, namesModels } = defaults
  return { preset, panel_size: panelSize, models: panelModels, judge: judgeModel, names_models: namesModels }
}

function byId<Item extends { readonly id: string }>(
  items: readonly Item[],
  plain: (item: Item) => unknown,
): Record<string, unknown> {
  return Object.fromEntries(items.map((item) => [item.id, plain(item)]))
}

function plainListen({ host, port, trustedProxies }: ListenConfig): object {
  return { host, port, trusted_proxies: trustedProxies }
}
