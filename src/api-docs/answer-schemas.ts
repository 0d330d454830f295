import type { Schema } from './operation.ts'

const text: Schema = { type: 'string' }
const optionalText: Schema = { type: ['string', 'null'] }
const whole: Schema = { type: 'integer', minimum: 0 }
const yes: Schema = { type: 'boolean' }
const map: Schema = { type: 'object' }

function list(items: Schema): Schema {
  return { type: 'array', items }
}

/** An object of which these members are always there; it may have others. */
function object(properties: Readonly<Record<string, Schema>>, optional: Readonly<Record<string, Schema>> = {}): Schema {
  return { type: 'object', required: Object.keys(properties), properties: { ...properties, ...optional } }
}

/** The members of an object that are always there. */
function required({ required: names, properties }: Schema): Readonly<Record<string, Schema>> {
  const all = properties as Readonly<Record<string, Schema>>
  return Object.fromEntries((names as readonly string[]).map((name) => [name, all[name]!]))
}

const profile = object(
  {
    id: text,
    description: text,
    kind: { enum: ['conversation', 'embeddings'] },
    endpoints: list(text),
    capabilities: map,
    premium: yes,
    plans: list(text),
    quota_units: whole,
  },
  {
    vectors: text,
    context_window: whole,
    max_output_tokens: whole,
    price: object(
      { currency: text, input_per_million: { type: 'number' } },
      { output_per_million: { type: 'number' } },
    ),
  },
)
const model = object(
  {
    ...required(profile),
    object: { const: 'model' },
    type: { const: 'model' },
    created: whole,
    created_at: text,
    display_name: text,
    owned_by: text,
    entitled: yes,
  },
  profile['properties'] as Readonly<Record<string, Schema>>,
)
const item = object({ type: text })
const response = object(
  {
    id: text,
    object: { const: 'response' },
    created_at: whole,
    status: { enum: ['completed', 'incomplete', 'failed', 'in_progress'] },
    model: text,
    output: list(item),
  },
  {
    usage: { type: ['object', 'null'] },
    store: { type: ['boolean', 'null'] },
    previous_response_id: optionalText,
    conversation: { type: ['object', 'null'] },
  },
)

const itemList = object({
  object: { const: 'list' },
  data: list(object({ type: text, id: text })),
  first_id: optionalText,
  last_id: optionalText,
  has_more: yes,
})
const conversation = object({ id: text, object: { const: 'conversation' }, created_at: whole, metadata: map })

/** What a 200 of each operation holds, by its id. Members that providers add are not named. */
const optionalTime: Schema = { type: ['string', 'null'] }
const optionalWhole: Schema = { type: ['integer', 'null'], minimum: 0 }
const dollars: Schema = { type: ['string', 'null'], description: 'Exact US dollars.' }
const usage = object(
  {
    input_tokens: whole,
    cached_tokens: whole,
    cache_write_tokens: whole,
    output_tokens: whole,
    reasoning_tokens: whole,
    estimated: yes,
  },
  {
    cache_write_1h_tokens: whole,
    audio_input_tokens: whole,
    audio_output_tokens: whole,
    image_input_tokens: whole,
    image_output_tokens: whole,
    web_searches: whole,
    service_tier: text,
    region: text,
  },
)
const attempt = object(
  { backend: text, model: optionalText, outcome: text, ms: { type: 'number', minimum: 0 } },
  { status: whole, refused: yes, rescued: text, usage, cost_usd: dollars },
)

export const apiAnswers: Readonly<Record<string, Schema>> = {
  createChatCompletion: object(
    {
      id: text,
      object: { const: 'chat.completion' },
      created: whole,
      model: text,
      choices: list(object({ index: whole, message: object({ role: text }), finish_reason: optionalText })),
    },
    { usage: object({ prompt_tokens: whole, completion_tokens: whole, total_tokens: whole }) },
  ),
  createResponse: response,
  getResponse: response,
  createMessage: object({
    id: text,
    type: { const: 'message' },
    role: { const: 'assistant' },
    model: text,
    content: list(item),
    stop_reason: optionalText,
    usage: object({ input_tokens: whole, output_tokens: whole }),
  }),
  countMessageTokens: object({ input_tokens: whole }),
  createEmbeddings: object({
    object: { const: 'list' },
    model: text,
    data: list(
      object({
        object: { const: 'embedding' },
        index: whole,
        embedding: {
          anyOf: [list({ type: 'number' }), { type: 'string', description: 'With `encoding_format` base64.' }],
        },
      }),
    ),
    usage: object({ prompt_tokens: whole, total_tokens: whole }),
  }),
  listModels: object({
    object: { const: 'list' },
    data: list(model),
    has_more: yes,
    first_id: optionalText,
    last_id: optionalText,
    models: list(map),
  }),
  getModel: model,
  deleteResponse: object({ id: text, object: { const: 'response' }, deleted: { const: true } }),
  listInputItems: itemList,
  createConversation: conversation,
  getConversation: conversation,
  updateConversation: conversation,
  deleteConversation: object({ id: text, object: { const: 'conversation.deleted' }, deleted: { const: true } }),
  createConversationItems: itemList,
  listConversationItems: itemList,
  getConversationItem: object({ type: text, id: text }),
  deleteConversationItem: conversation,
  countInputTokens: object({ object: { const: 'response.input_tokens' }, input_tokens: whole }),
  getKey: object({
    object: { const: 'key' },
    id: text,
    name: text,
    account: text,
    expires_at: optionalTime,
    limits: object({
      profiles: { anyOf: [list(text), { type: 'null' }] },
      requests_per_minute: optionalWhole,
      addresses: { anyOf: [list(text), { type: 'null' }] },
    }),
    budgets: list(map),
    plan: object({ id: text, name: text, premium: yes }),
    requests_per_minute: object({ limit: whole, remaining: whole, resets_at: text }),
    quota: object({ period: { const: 'month' }, limit: whole, used: whole, remaining: whole, resets_at: text }),
  }),
  getRequest: object(
    {
      object: { const: 'request' },
      id: text,
      created_at: text,
      key: text,
      profile: text,
      format: text,
      stream: yes,
      status: { enum: ['open', 'delivered', 'done', 'lost'] },
      error: optionalText,
      backend: optionalText,
      model: optionalText,
      attempts: list(attempt),
      skipped: list(object({ backend: text, reason: text })),
      usage: { anyOf: [usage, { type: 'null' }] },
      cost: {
        anyOf: [
          object({ usd: text, cache_saved_usd: dollars, estimated: yes, prices: optionalText }),
          { type: 'null' },
        ],
      },
      session: {
        anyOf: [
          object({
            id: text,
            requests: whole,
            requests_with_unknown_cost: whole,
            cost_usd: optionalText,
            cache_saved_usd: optionalText,
          }),
          { type: 'null' },
        ],
      },
      quota_units: whole,
      first_content_ms: { type: ['number', 'null'] },
      total_ms: { type: 'number' },
    },
    { cache: map },
  ),
  explainRoute: object({
    object: { const: 'route' },
    profile: text,
    format: text,
    sort: optionalText,
    fusion: yes,
    refusal: { anyOf: [object({ code: text, param: optionalText, message: text }), { type: 'null' }] },
    backends: list(
      object(
        {
          backend: text,
          model: text,
          format: text,
          lane: { enum: ['relay', 'translation'] },
          simulated: yes,
          doubts: list(text),
        },
        {
          score: { type: 'number', description: 'Lower is better. Absent if the configured order decides.' },
          share: { type: 'number', minimum: 0, maximum: 1, description: 'The probability that it is tried first.' },
        },
      ),
    ),
    left_out: list(
      object({ backend: text, reason: text, until: { type: ['integer', 'null'], description: 'Unix seconds.' } }),
    ),
    filters: { ...map, description: 'How many backends each reason leaves out.' },
  }),
  compactResponse: object({
    id: text,
    object: { const: 'response.compaction' },
    created_at: whole,
    output: list(item),
  }),
  getModelCatalog: object({
    object: { const: 'model_catalog' },
    note: text,
    base_url: text,
    accountSetupUrl: text,
    profiles: list(profile),
  }),
  getPricing: object({
    object: { const: 'pricing' },
    base_url: text,
    plans: list(
      object(
        { id: text, name: text, requests_per_minute: whole, requests_per_month: whole, premium: yes },
        {
          price: object({
            currency: text,
            minor_units: whole,
            interval: { enum: ['day', 'week', 'month', 'year'] },
            interval_count: whole,
          }),
        },
      ),
    ),
    profiles: list(object({ id: text, premium: yes, quota_units: whole })),
    upgradeUrl: text,
    billingUrl: text,
    supportUrl: text,
  }),
  getHealth: object({ status: { const: 'ok' } }),
  getReadiness: object({ ready: yes, reasons: list(text) }),
}
