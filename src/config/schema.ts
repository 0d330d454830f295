import { z } from 'zod'
import { regionShape } from '../domain/cloud-credentials.ts'
import { formatIds } from '../domain/format-id.ts'
import { fusionPresetNames, maxPanelSize } from '../domain/fusion-presets.ts'
import type { CapabilityId } from '../domain/model-facts.ts'
import { billingSchema } from './billing-schema.ts'
import { presetNames } from './presets.ts'
import { duration, env, flag, group, isProviderUrl, map, shaped, size, text, url, whole } from './settings.ts'
import { appListen, leakedKeys, mail, trustedProxies } from './web-settings.ts'

/** Bounds on the file itself. */
const maxPlans = 20
const maxBackendsPerProfile = 32
const maxNameCharacters = 100
const maxQuotaUnits = 1000
const maxPerMinute = 10_000_000
const maxPerMonth = 1_000_000_000
const maxContextTokens = 100_000_000
const maxOpen = 1_000_000
const maxPrice = 1_000_000
const maxOrigins = 100
const maxFusionsAtOnce = 1000
const maxHeaderCharacters = 1_000

/** How a name in a map is written; it appears in headers and on command lines. */
const nameShape = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const profileShape = /^[a-z0-9][a-z0-9._-]{0,63}(\/[a-z0-9][a-z0-9._-]{0,63})?$/
const modelShape = /^[^\s\p{C}]{1,200}$/u
const originShape = /^(?:\*|https?:\/\/[a-z0-9.-]{1,253}(?::\d{1,5})?|https?:\/\/\[[0-9a-f:]{2,39}\](?::\d{1,5})?)$/
const headerShape = /^[A-Za-z0-9-]{1,64}$/

const timeouts = group({
  connect: duration(1).optional().describe('Until a connection stands. Default 2s.'),
  headers: duration(1)
    .optional()
    .describe(
      'Until a stream sends response headers, where another backend can be asked. Default 10s, 30s for reasoning backends, 300s for local servers.',
    ),
  first_content: duration(1)
    .optional()
    .describe(
      'Until a stream sends its first content. Default 30s, 120s for reasoning backends, 300s for local servers.',
    ),
  whole_answer: duration(1)
    .optional()
    .describe('Until the last byte of an answer that is not streamed. Default 300s, 600s for local servers.'),
  idle: duration(1).optional().describe('Between two events of a stream. Default 30s.'),
  total: duration(1)
    .optional()
    .describe(
      'The whole request, all attempts together: of the backends that may serve it the longest counts. Default 600s.',
    ),
})

const capabilities = group({
  tools: flag.optional().describe('Calls tools.'),
  image_input: flag.optional().describe('Takes images.'),
  file_input: flag.optional().describe('Takes files, such as PDF.'),
  structured_outputs: flag.optional().describe('Keeps to a JSON schema.'),
} satisfies Record<Exclude<CapabilityId, 'reasoning'>, z.ZodType>)

const amount = z
  .number({ error: 'expected an amount of money, such as 1.25' })
  .min(0, { error: 'expected an amount of money, such as 1.25' })
  .max(maxPrice, { error: `expected at most ${maxPrice}` })
const price = group({
  currency: shaped(/^[A-Z]{3}$/, 'three capital letters, such as USD').describe('What is paid with.'),
  input_per_million: amount.describe('For a million tokens of input.'),
  output_per_million: amount.optional().describe('For a million tokens of output.'),
})

const usdPerMillion = group({
  input: amount.describe('For a million tokens of input.'),
  output: amount.describe('For a million tokens of output.'),
  cached_input: amount.optional().describe('For input that was read from a cache. Default as input.'),
})

/** What a model can do and costs: of a backend, or of every backend that has the model. */
const facts = {
  context_window: whole(1, maxContextTokens).optional().describe('The largest conversation, in tokens.'),
  max_output_tokens: whole(1, maxContextTokens).optional().describe('The longest answer, in tokens.'),
  reasoning: flag.optional().describe('Whether it thinks before it answers: the first content may take 120s.'),
  capabilities: capabilities
    .optional()
    .describe('What it can do, as far as you know: GET /v1/models says it, and leaves out what nobody said.'),
  quality: whole(0, 100)
    .optional()
    .describe(
      'How good you hold its answers to be, 0 to 100. svc-router/fusion asks the best, and nobody more than 8 below them. Default: all alike.',
    ),
  usd_per_million: usdPerMillion
    .optional()
    .describe(
      'What its provider takes, in US dollars: request records tell costs by it, and max_cost_usd is kept by it.',
    ),
}

const fusion = group({
  preset: z
    .enum(fusionPresetNames, { error: 'expected fast, balanced or quality' })
    .optional()
    .describe('How much is spent on one answer. Default balanced.'),
  panel_size: whole(1, maxPanelSize)
    .optional()
    .describe("How many answers are asked for. Default the preset's: 2, 3 or 5."),
  models: z
    .array(text('the id of a backend, or the name of a model', 200), { error: 'expected a list of backends or models' })
    .min(1, { error: 'expected at least one entry' })
    .max(maxPanelSize, { error: `expected at most ${maxPanelSize} entries` })
    .optional()
    .describe('Who is asked, instead of the best of all. Those that an account has not are passed over.'),
  judge: text('the id of a backend, or the name of a model', 200)
    .optional()
    .describe('Who compares the answers. Default the best of another family than most of the panel.'),
  names_models: flag.optional().describe('Whether the usage that callers read names the models. Default false.'),
})

/** The shape of svc-router.yaml. Defaults, references and secrets are resolved afterwards, by `loadConfig` (contract 31.1). */
export const configSchema = group({
  mode: z
    .enum(['local', 'production'], { error: 'expected local or production' })
    .optional()
    .describe(
      'production refuses simulated providers and secrets made by us. NODE_ENV=production or SVC_ROUTER_MODE=production turn it on too. Default local.',
    ),
  listen: group({
    host: text('a host name or address', 255)
      .optional()
      .describe('Default 127.0.0.1: this machine only. 0.0.0.0 for every network.'),
    port: whole(0, 65_535).optional().describe('Default 8787. 0 lets the system choose.'),
    trusted_proxies: trustedProxies('the API'),
  })
    .optional()
    .describe('Where the API is served.'),
  app_listen: appListen,
  base_url: url('the address under which clients reach the API')
    .optional()
    .describe('Ends in /v1. Default http://host:port/v1.'),
  app_url: url('the address of the account pages')
    .optional()
    .describe(
      'Where people reach the web app, and where links in errors lead. Required in production; by default http://host:port of app_listen.',
    ),
  data: text('a folder', 1000).optional().describe('The data folder. Default ./data.'),
  secrets: group({
    pepper_env: env('The variable with the pepper that keys are hashed with. Default SVC_ROUTER_PEPPER.').optional(),
    previous_pepper_env: env('The variable with the pepper before a change.').optional(),
    sealing_key_env: env(
      'The variable with the 32 bytes (base64 or hex) that credentials are sealed with. Default SVC_ROUTER_SEALING_KEY.',
    ).optional(),
    previous_sealing_key_env: env('The variable with the sealing key before a change.').optional(),
  })
    .optional()
    .describe(
      'Names of environment variables. In local mode missing ones are made once and kept in secrets.json in the data folder.',
    ),
  plans: map(
    nameShape,
    'a plan id: letters, digits, ".", "_" and "-", at most 64',
    group({
      name: text('a name', maxNameCharacters).describe('What callers read.'),
      requests_per_minute: whole(1, maxPerMinute).describe('Admitted in any 60 seconds.'),
      requests_per_month: whole(1, maxPerMonth).describe('Units in a UTC calendar month.'),
      premium: flag.optional().describe('Whether premium profiles and tools may be used. Default false.'),
      fusions_at_once: whole(1, maxFusionsAtOnce)
        .optional()
        .describe('Deliberated answers that an account may have under way at once. Default 2.'),
    }),
    maxPlans,
  )
    .optional()
    .describe('Replaces the plans free, pro and max.'),
  default_plan: text('the id of a plan', 64)
    .optional()
    .describe('The plan of new accounts. Default free, or else the first plan.'),
  billing: billingSchema
    .optional()
    .describe('How plans are sold. Left out, accounts ask for another plan and an operator approves.'),
  providers: map(
    nameShape,
    'a provider name: letters, digits, ".", "_" and "-", at most 64',
    group({
      preset: text('the name of a preset', 64).meta({ description: 'The vendor.', examples: presetNames }),
      base_url: url("the provider's base URL", isProviderUrl).optional().describe("Replaces the preset's."),
      region: shaped(regionShape, 'the name of a region, such as us-east-1')
        .optional()
        .describe('Where the preset has regions: bedrock, vertex.'),
      format: z
        .enum(formatIds, { error: `expected ${formatIds.join(' or ')}` })
        .optional()
        .describe('What the provider speaks.'),
      auth_header: shaped(headerShape, 'the name of a header')
        .optional()
        .describe('The header that carries the credential; authorization sends it as Bearer.'),
      headers: map(headerShape, 'the name of a header', text('the value of a header', maxHeaderCharacters))
        .optional()
        .describe('Further headers of every request to it. They are shown as they are: no credentials.'),
      plain_http: flag
        .optional()
        .describe(
          'In production: sends a credential to a base_url that begins with http and is not of this machine. For private networks that you trust.',
        ),
    }),
  )
    .optional()
    .describe('Vendors under names of your own. A preset can also be used directly by its name.'),
  backends: map(
    nameShape,
    'a backend id: letters, digits, ".", "_" and "-", at most 64',
    group({
      provider: text('the name of a provider or preset', 64).meta({
        description: 'A name from providers, or a preset.',
        examples: presetNames,
      }),
      model: text('the name of a model', 200).describe('As the provider calls it.'),
      credential_env: env('The variable with the credential. Leave it out where none is needed.').optional(),
      account: text('the id or name of an account', maxNameCharacters)
        .optional()
        .describe(
          'The one account that the credential belongs to and that is served by it. Required in production; by default the local account. It must exist when the service starts.',
        ),
      managed: flag.optional().describe("The operator's own credential, for accounts with managed access."),
      failure_domain: text('a name', 64).optional().describe('What fails together. Default the provider.'),
      ...facts,
      embeddings: text('the name of the vectors, usually the model, such as text-embedding-3-small', 200)
        .optional()
        .describe(
          'Says that it gives embeddings and nothing else, and names its vectors. Vectors of different models cannot be compared: only backends with the same name stand in for each other.',
        ),
      timeouts: timeouts.optional().describe('How long this backend may take.'),
    }),
  )
    .optional()
    .describe('What is tried: one provider, one model, one credential each.'),
  models: map(modelShape, 'the name of a model as its provider calls it, at most 200 characters', group(facts))
    .optional()
    .describe(
      'What is known of models by name: of those that accounts connect themselves, and of backends that say no other.',
    ),
  profiles: map(
    profileShape,
    'a profile id such as svc-router/frontier or my-team/fast, in small letters',
    group({
      description: text('a description').optional(),
      backends: z
        .array(text('the id of a backend', 64), { error: 'expected a list of backend ids' })
        .max(maxBackendsPerProfile, { error: `expected at most ${maxBackendsPerProfile} backends` })
        .optional()
        .describe('In the order in which they are tried. Left out or empty: only what accounts connect themselves.'),
      premium: flag.optional().describe('Whether a premium plan is needed. Default false.'),
      quota_units: whole(1, maxQuotaUnits).optional().describe('Units of the month for one answer. Default 1.'),
      reports_model: flag
        .optional()
        .describe(
          "Whether an answer's model is that of the backend that gave it, instead of the profile. Default false.",
        ),
      price: price.optional().describe('What GET /v1/models tells callers; nothing is charged by it.'),
      fusion: fusion.optional().describe('How svc-router/fusion deliberates; for that profile alone.'),
    }),
  )
    .optional()
    .describe(
      'Public names. svc-router/frontier is always there, over every backend in the order of this file unless defined here; so is svc-router/fusion, over the backends of svc-router/frontier.',
    ),
  simulated: flag
    .optional()
    .describe(
      'Three simulated backends that say that they are. By default on in local mode while no backends are configured.',
    ),
  limits: group({
    body: size(1024)
      .optional()
      .describe(
        'The largest request body. Default 5MiB; a larger one can hold every other request up while it is read.',
      ),
    headers: size(1024).optional().describe('The largest request headers. Default 32KiB.'),
    header_time: duration(1000).optional().describe('Until the headers are complete. Default 10s.'),
    body_time: duration(1000)
      .optional()
      .describe('Until the body is complete, or goes on arriving at 16 KiB/s. Default 60s.'),
    connections: whole(1, maxOpen)
      .optional()
      .describe(
        'Open at once; one address may have four fifths of them. Beyond that only /health and /ready are answered. Default 20000.',
      ),
    streams: whole(1, maxOpen)
      .optional()
      .describe(
        'Requests answered at once, and bodies read at once; one account may have four fifths of them. Default 4000.',
      ),
    stored_responses: size(1024 * 1024)
      .optional()
      .describe('Stored answers of one account, sealed: beyond it the oldest go. Default 1GiB.'),
  })
    .optional()
    .describe('Bounds on what callers can hold.'),
  retention: group({
    requests: duration(3_600_000)
      .optional()
      .describe('How long request records are kept, which never hold text. Default 90d.'),
    responses: duration(0)
      .optional()
      .describe(
        'How long answers of /v1/responses are stored, sealed, for callers who go on from them. 0d stores none. Default 30d.',
      ),
  })
    .optional()
    .describe('How long things are kept.'),
  keep_alive: duration(100)
    .optional()
    .describe('How long a stream may be silent before it is kept open with a word. Default 10s.'),
  drain: duration(0).optional().describe('How long running answers may take after SIGTERM. Default 30s.'),
  mail,
  leaked_keys: leakedKeys,
  cors: group({
    origins: z
      .array(shaped(originShape, 'an origin such as https://app.example.com, or *'), {
        error: 'expected a list of origins',
      })
      .max(maxOrigins, { error: `expected at most ${maxOrigins} origins` })
      .optional()
      .describe('Origins whose pages may call the API, or * for every one. Default none.'),
  })
    .optional()
    .describe('Which web pages may call the API from a browser. A key in a page is known to everybody who opens it.'),
  edge_gate: group({ enabled: flag.optional().describe('Default true.') })
    .optional()
    .describe('Refuses requests without a User-Agent, with an empty phrase for one, and of scanners, with code 1010.'),
})

/** What a file says, checked in shape and nothing else. */
export type ConfigFile = z.output<typeof configSchema>
