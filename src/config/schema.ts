import { z } from 'zod'
import { regionShape } from '../domain/cloud-credentials.ts'
import { formatIds } from '../domain/format-id.ts'
import { fusionPresetNames, maxPanelSize } from '../domain/fusion-presets.ts'
import type { CapabilityId } from '../domain/model-facts.ts'
import { billingSchema } from './billing-schema.ts'
import { cache } from './cache-schema.ts'
import { presetNames } from './presets.ts'
import { amount, usdPerMillion } from './price-schema.ts'
import { place, routing } from './routing-schema.ts'
import { duration, env, flag, group, isProviderUrl, map, shaped, size, text, url, whole } from './settings.ts'
import {
  adminApi,
  appListen,
  budgetAlerts,
  cors,
  leakedKeys,
  mail,
  metricsListen,
  tracing,
  trustedProxies,
} from './web-settings.ts'

/** Bounds on the file itself (contract 30.15). */
const maxPlans = 20
const maxBackendsPerProfile = 32
const maxNameCharacters = 100
const maxQuotaUnits = 1000
export const maxPerMinute = 10_000_000
const maxPerMonth = 1_000_000_000
const maxContextTokens = 100_000_000
const maxOpen = 1_000_000
const maxWorkers = 64
const maxFusionsAtOnce = 1000
const maxHeaderCharacters = 1_000

/** Valid names of map entries. They appear in headers and on command lines. */
export const nameShape = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const profileShape = /^[a-z0-9][a-z0-9._-]{0,63}(\/[a-z0-9][a-z0-9._-]{0,63})?$/
const modelShape = /^[^\s\p{C}]{1,200}$/u
const headerShape = /^[A-Za-z0-9-]{1,64}$/

const timeouts = group({
  connect: duration(1).optional().describe('Time limit for opening the connection. Default 2s.'),
  headers: duration(1)
    .optional()
    .describe(
      'Time limit for the response headers of a stream, if another backend is available. Default 10s, 30s for reasoning backends, 300s for local servers.',
    ),
  first_content: duration(1)
    .optional()
    .describe(
      'Time limit for the first content of a stream. Default 30s, 120s for reasoning backends, 300s for local servers.',
    ),
  whole_answer: duration(1)
    .optional()
    .describe('Time limit for a whole response that is not streamed. Default 300s, 600s for local servers.'),
  idle: duration(1).optional().describe('Time limit between two events of a stream. Default 30s.'),
  total: duration(1)
    .optional()
    .describe(
      'Time limit for the whole request, including all attempts. The longest value among the backends that may serve it applies, unless the client sends its own timeout. Default 600s.',
    ),
})

const capabilities = group({
  tools: flag.optional().describe('Supports tool calls.'),
  image_input: flag.optional().describe('Accepts images.'),
  file_input: flag.optional().describe('Accepts files, such as PDF.'),
  structured_outputs: flag.optional().describe('Follows a JSON schema.'),
} satisfies Record<Exclude<CapabilityId, 'reasoning'>, z.ZodType>)

const price = group({
  currency: shaped(/^[A-Z]{3}$/, 'three capital letters, such as USD').describe('The ISO 4217 currency code.'),
  input_per_million: amount.describe('Price per million input tokens.'),
  output_per_million: amount.optional().describe('Price per million output tokens.'),
})

/** Capabilities and prices of a model, set for one backend or for every backend with that model. */
const facts = {
  context_window: whole(1, maxContextTokens).optional().describe('The context window, in tokens.'),
  max_output_tokens: whole(1, maxContextTokens).optional().describe('The maximum output, in tokens.'),
  reasoning: flag
    .optional()
    .describe('Whether it reasons before it answers. Its first content may then take up to 120s by default.'),
  capabilities: capabilities
    .optional()
    .describe('Known capabilities. GET /v1/models reports them and omits those that are not set.'),
  quality: whole(0, 100)
    .optional()
    .describe(
      'Your rating of its answers, 0 to 100. svc-router/fusion uses the best models, and none rated more than 8 points below the best. Default: all equal.',
    ),
  usd_per_million: usdPerMillion
    .optional()
    .describe(
      "The provider's prices for you, in US dollars. Default: its published prices. max_cost_usd and routing by price use only prices that are set here.",
    ),
}

const fusion = group({
  preset: z
    .enum(fusionPresetNames, { error: 'expected fast, balanced, or quality' })
    .optional()
    .describe('How much to spend on one answer. Default balanced.'),
  panel_size: whole(1, maxPanelSize)
    .optional()
    .describe("How many models answer. Default: the preset's value, 2, 3, or 5."),
  models: z
    .array(text('the ID of a backend, or the name of a model', 200), { error: 'expected a list of backends or models' })
    .min(1, { error: 'expected at least one entry' })
    .max(maxPanelSize, { error: `expected at most ${maxPanelSize} entries` })
    .optional()
    .describe('The models to ask, instead of the best available. Models that an account does not have are skipped.'),
  judge: text('the ID of a backend, or the name of a model', 200)
    .optional()
    .describe(
      'The model that compares the answers. Default: the best model of a different family than most of the panel.',
    ),
  names_models: flag.optional().describe('Whether the usage that clients receive names the models. Default false.'),
})

const plan = group({
  name: text('a name', maxNameCharacters).describe('The display name.'),
  requests_per_minute: whole(1, maxPerMinute).describe('Requests allowed in any 60 seconds.'),
  requests_per_month: whole(1, maxPerMonth).describe('Units per UTC calendar month.'),
  premium: flag.optional().describe('Whether premium profiles and tools may be used. Default false.'),
  fusions_at_once: whole(1, maxFusionsAtOnce).optional().describe('Concurrent fusion requests per account. Default 8.'),
})

export const backendSchema = group({
  provider: text('the name of a provider or preset', 64).meta({
    description: 'A name from providers, or a preset.',
    examples: presetNames,
  }),
  model: text('the name of a model', 200).describe("The provider's name for the model."),
  credential_env: env('The variable with the credential. Omit it if none is needed.').optional(),
  account: text('the ID or name of an account', maxNameCharacters)
    .optional()
    .describe(
      'The account that owns the credential, the only one that this backend serves. Required in production. Default: the account named "local". It must exist when the service starts.',
    ),
  managed: flag.optional().describe("The operator's own credential, for accounts with managed access."),
  failure_domain: text('a name', 64)
    .optional()
    .describe('Backends with the same failure domain are assumed to fail together. Default: the provider.'),
  ...facts,
  region: place
    .optional()
    .describe(
      "Where the provider processes requests, for profiles and requests that require a region. Default: the provider's region.",
    ),
  zero_retention: flag
    .optional()
    .describe(
      'Whether the provider stores nothing of requests and answers. Default false: requests that require it go elsewhere.',
    ),
  cache_lifetime: duration(0)
    .optional()
    .describe(
      'How long the provider caches a prompt after its last use. Sessions stay at the backend for that long. Default: the known lifetime of the provider, usually 5m.',
    ),
  cache_domain: text('a name', 64)
    .optional()
    .describe(
      'A name for a shared prompt cache. Backends with the same name and model share it, such as two credentials of one organization. Default: backends with the same endpoint, credential, and model share one.',
    ),
  embeddings: text('the name of the embedding space, usually the model, such as text-embedding-3-small', 200)
    .optional()
    .describe(
      'Declares that this backend only creates embeddings, and names its embedding space. Vectors of different models cannot be compared, so failover happens only between backends with the same name.',
    ),
  cache: cache.optional().describe("The provider's prompt cache."),
  timeouts: timeouts.optional().describe('Time limits for requests to this backend.'),
})

const profile = group({
  description: text('a description').optional(),
  backends: z
    .array(text('the ID of a backend', 64), { error: 'expected a list of backend IDs' })
    .max(maxBackendsPerProfile, { error: `expected at most ${maxBackendsPerProfile} backends` })
    .optional()
    .describe(
      'The backends, in the order in which they are tried. If omitted or empty: only the providers that accounts connect themselves.',
    ),
  premium: flag.optional().describe('Whether a premium plan is required. Default false.'),
  quota_units: whole(1, maxQuotaUnits)
    .optional()
    .describe('Units of the monthly quota that one response costs. Default 1.'),
  reports_model: flag
    .optional()
    .describe(
      'Whether responses report the model of the backend that answered, instead of the profile. Default false.',
    ),
  reports_cost: flag
    .optional()
    .describe(
      'Whether answers report their cost in X-Svc-Router-Cost: as a header, or as a comment at the end of a stream. Default false.',
    ),
  price: price.optional().describe('The price shown in GET /v1/models. Informational only; it is never charged.'),
  cache: cache.optional().describe("Providers' prompt caches, for requests to this profile."),
  routing: routing.optional().describe('How the profile chooses among its backends.'),
  fusion: fusion.optional().describe('Fusion settings. Only for the profile svc-router/fusion.'),
})

/** The maps whose entries can also be declared with `svc-router apply` (contract 38.2). */
export const settingSchemas = {
  plans: map(nameShape, 'a plan ID: up to 64 letters, digits, ".", "_", and "-"', plan, maxPlans),
  backends: map(nameShape, 'a backend ID: up to 64 letters, digits, ".", "_", and "-"', backendSchema),
  profiles: map(profileShape, 'a profile ID in lowercase, such as svc-router/frontier or my-team/fast', profile),
} as const

/** The schema of svc-router.yaml. `loadConfig` then resolves defaults, references, and secrets (contract 31.1). */
export const configSchema = group({
  mode: z
    .enum(['local', 'production'], { error: 'expected local or production' })
    .optional()
    .describe(
      'production rejects simulated providers and generated secrets. NODE_ENV=production or SVC_ROUTER_MODE=production also enables it. Default local.',
    ),
  listen: group({
    host: text('a host name or address', 255)
      .optional()
      .describe('Default 127.0.0.1, reachable from this machine only. Use 0.0.0.0 for all interfaces.'),
    port: whole(0, 65_535).optional().describe('Default 8787. 0 lets the system choose.'),
    trusted_proxies: trustedProxies('the API'),
  })
    .optional()
    .describe('Where the API listens.'),
  workers: z
    .union([z.literal('auto'), whole(1, maxWorkers)], {
      error: `expected auto or a whole number from 1 to ${maxWorkers}`,
    })
    .optional()
    .describe('The number of processes that serve the port together. auto: one per processor core. Default 1.'),
  app_listen: appListen,
  admin_api: adminApi,
  metrics_listen: metricsListen,
  tracing,
  base_url: url('the URL at which clients reach the API')
    .optional()
    .describe('The public URL of the API, ending in /v1. Default http://host:port/v1.'),
  app_url: url('the URL of the account pages')
    .optional()
    .describe(
      'The public URL of the web app, which links in errors point to. Required in production. Default: http://host:port of app_listen.',
    ),
  data: text('a folder', 1000).optional().describe('The data folder. Default ./data.'),
  database: group({
    url_env: env('The variable with the URL of a PostgreSQL database: postgres://user:password@host:5432/name.'),
  })
    .optional()
    .describe(
      'Stores everything in PostgreSQL, which any number of nodes may share. Default: SQLite in the data folder.',
    ),
  secrets: group({
    pepper_env: env('The variable with the pepper for hashing API keys. Default SVC_ROUTER_PEPPER.').optional(),
    previous_pepper_env: env('The variable with the previous pepper, during a rotation.').optional(),
    sealing_key_env: env(
      'The variable with the key that encrypts stored credentials: 32 bytes in base64 or hex. Default SVC_ROUTER_SEALING_KEY.',
    ).optional(),
    previous_sealing_key_env: env('The variable with the previous sealing key, during a rotation.').optional(),
  })
    .optional()
    .describe(
      'Names of environment variables. In local mode, missing secrets are generated once and stored in secrets.json in the data folder.',
    ),
  plans: settingSchemas.plans.optional().describe('Replaces the plans free, pro, and max.'),
  default_plan: text('the ID of a plan', 64)
    .optional()
    .describe(
      'The plan of new accounts. Default free if it exists, otherwise the first plan. In local mode, the account that the first start creates gets max by default or, without it, the last plan.',
    ),
  billing: billingSchema
    .optional()
    .describe('How plans are sold. If omitted, accounts request a plan and an operator approves it.'),
  providers: map(
    nameShape,
    'a provider name: up to 64 letters, digits, ".", "_", and "-"',
    group({
      preset: text('the name of a preset', 64).meta({ description: 'The vendor.', examples: presetNames }),
      base_url: url("the provider's base URL", isProviderUrl)
        .optional()
        .describe("The base URL of the API. Default: the preset's."),
      region: shaped(regionShape, 'the name of a region, such as us-east-1')
        .optional()
        .describe('For presets with regions: bedrock, vertex.'),
      format: z
        .enum(formatIds, { error: `expected ${formatIds.join(' or ')}` })
        .optional()
        .describe('The API format of the provider.'),
      auth_header: shaped(headerShape, 'the name of a header')
        .optional()
        .describe('The header that carries the credential. With authorization, it is sent as a Bearer token.'),
      headers: map(headerShape, 'the name of a header', text('the value of a header', maxHeaderCharacters))
        .optional()
        .describe(
          'Additional headers for every request to the provider. They are displayed in full, so never put credentials here.',
        ),
      plain_http: flag
        .optional()
        .describe(
          'In production: allows sending a credential to an http base_url on another machine. Only for private networks that you trust.',
        ),
    }),
  )
    .optional()
    .describe('Providers under names that you choose. A preset can also be used directly by its name.'),
  backends: settingSchemas.backends
    .optional()
    .describe('The targets that requests are sent to, each with one provider, one model, and one credential.'),
  models: map(modelShape, "the provider's name for a model, at most 200 characters", group(facts))
    .optional()
    .describe(
      'Defaults by model name, for models that accounts connect themselves and for backends that do not override them.',
    ),
  profiles: settingSchemas.profiles
    .optional()
    .describe(
      'The public model names. svc-router/frontier always exists; unless defined here, it uses every backend in the order of this file. svc-router/fusion also always exists and by default uses the backends of svc-router/frontier.',
    ),
  simulated: flag
    .optional()
    .describe(
      'Adds three simulated backends, which identify themselves as simulated. By default on in local mode if no backends are configured.',
    ),
  limits: group({
    body: size(1024)
      .optional()
      .describe('The largest request body. Default 5MiB. Reading a larger body can delay all other requests.'),
    headers: size(1024).optional().describe('The largest request headers. Default 32KiB.'),
    header_time: duration(1000).optional().describe('Time limit for receiving the headers. Default 10s.'),
    body_time: duration(1000)
      .optional()
      .describe(
        'Time limit for receiving the body. A body that keeps arriving at 16 KiB/s or more may take longer. Default 60s.',
      ),
    connections: whole(1, maxOpen)
      .optional()
      .describe(
        'The maximum number of open connections, of which one address may use four fifths. Above the limit, only /health and /ready are answered. Default 20000.',
      ),
    streams: whole(1, maxOpen)
      .optional()
      .describe(
        'The maximum number of concurrent requests, and of bodies read concurrently. One account may use four fifths. Default 4000.',
      ),
    stored_responses: size(1024 * 1024)
      .optional()
      .describe(
        "The maximum encrypted size of one account's stored responses. Above it, the oldest are deleted. Default 1GiB.",
      ),
    detached: duration(0)
      .optional()
      .describe(
        'How long the service continues to generate the answer to a request with an Idempotency-Key after its client disconnects, so that a retry can receive it. Default 60s.',
      ),
  })
    .optional()
    .describe('Limits on the resources that clients can use.'),
  retention: group({
    requests: duration(3_600_000)
      .optional()
      .describe('How long request records are stored. They never contain text. Default 90d.'),
    responses: duration(0)
      .optional()
      .describe(
        'How long responses of /v1/responses are stored, encrypted, so that clients can continue from them. 0d stores none. Default 30d.',
      ),
    retries: duration(0)
      .optional()
      .describe(
        'How long answers to requests with an Idempotency-Key are stored, encrypted, so that a retry gets the same answer. With 0d, none are stored: the header is ignored, background responses are rejected, and streams cannot be continued. Default 1d.',
      ),
  })
    .optional()
    .describe('How long data is stored.'),
  keep_alive: duration(100)
    .optional()
    .describe('How long a stream may be silent before a keep-alive is sent. Default 10s.'),
  drain: duration(0)
    .optional()
    .describe('How long requests in progress may take to finish after SIGTERM. Default 30s.'),
  drain_delay: duration(0)
    .optional()
    .describe(
      'How long the service still accepts requests after SIGTERM while /ready returns 503, so that load balancers notice. Default 5s in production, 100ms in local mode.',
    ),
  mail,
  budget_alerts: budgetAlerts,
  leaked_keys: leakedKeys,
  cors,
  edge_gate: group({ enabled: flag.optional().describe('Default true.') })
    .optional()
    .describe('Rejects requests without a meaningful User-Agent, and requests from scanners, with code 1010.'),
})

/** A file that conforms to the schema; its references and secrets are not resolved yet. */
export type ConfigFile = z.output<typeof configSchema>
