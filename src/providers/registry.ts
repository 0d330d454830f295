import type { CloudKind } from '../domain/cloud-credentials.ts'
import type { FormatId } from '../domain/format-id.ts'
import type { Dialect } from '../formats/format.ts'
import { hourMs } from '../runtime/durations.ts'
import { hostedTools } from './hosted-tools.ts'
import { type Surcharges, surcharges } from './prices/surcharges.ts'

/** A vendor or server whose models can be used: everything specific to it, as data (contract 1.1, 21.6, 35.4). */
export interface Vendor {
  /** Display name. */
  readonly name: string
  /**
   * The base URL of its API, without a trailing slash; null if the user must supply it. `{region}` and `{project}` are
   * filled in from user input or the credential.
   */
  readonly baseUrl: string | null
  /** The base URL for a given region, if there is also one without. */
  readonly regionalUrl?: string
  /** Supported formats, the preferred one first. */
  readonly formats: readonly [FormatId, ...FormatId[]]
  /**
   * Formats that are always available side by side: a request uses the one that can express it, unless a format is
   * configured.
   */
  readonly endpoints?: readonly [FormatId, ...FormatId[]]
  /** The header that carries the credential; `authorization` sends `Bearer`. Null if none is sent. */
  readonly authHeader: string | null
  readonly credential: 'required' | 'optional' | 'none'
  /** Headers sent with every request: lowercase name, and value. */
  readonly fixedHeaders?: Readonly<Record<string, string>>
  /**
   * The kind of credential that signs each request instead of being sent; any other credential is sent in `authHeader`,
   * if there is one.
   */
  readonly signing?: CloudKind
  readonly dialect: Dialect
  /** Overrides for formats other than the first. */
  readonly byFormat?: Partial<Record<FormatId, Partial<VendorEndpoint>>>
  /** An example model for help and error messages. */
  readonly exampleModel: string
  /** The environment variable that usually holds its key; null if there is none. */
  readonly keyVariable: string | null
  /** The lists of published prices that name its models, the best one first. @see prices/published-prices.ts */
  readonly priceLists?: readonly string[]
  readonly surcharges?: Surcharges
}

/** How to use one format with a vendor. */
export interface VendorEndpoint {
  readonly baseUrl: string | null
  readonly authHeader: string | null
  readonly dialect: Dialect
}

const current = {
  maxTokensField: 'max_completion_tokens',
  developerRole: true,
  streamUsage: true,
  refusedFields: [],
} as const
/**
 * Servers that render chat templates: most templates support neither `developer` nor the newer limit, and of tools only
 * functions.
 */
const classic = {
  maxTokensField: 'max_tokens',
  developerRole: false,
  streamUsage: true,
  hostedTools: [],
  refusedFields: [],
} as const
/** A server of one's own forgets prompts when its memory is needed for others. */
const localServer = { ...classic, cacheMs: hourMs / 2 } as const
/** Endpoints where a key leads requests with the same beginning to the same cache. */
const keyed = { cacheKey: 'prompt_cache_key' } as const
/** The same where, without a key, requests with the same beginning do not find each other's cache. */
const keyedOnly = { needsCacheKey: true } as const
const openRouter = { ...current, ...keyed, hostedTools: hostedTools.openrouter } as const
const xai = { ...current, ...keyedOnly, developerRole: false, hostedTools: hostedTools.xai } as const
const chat = ['openai-chat'] as const
const chatFirst = ['openai-chat', 'openai-responses'] as const
const everyFormat = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const
/** Local servers also continue bare prompts. */
const localEndpoints = ['openai-chat', 'openai-completions'] as const
const responsesFirst = ['openai-responses', 'openai-chat'] as const
const hosted = { authHeader: 'authorization', credential: 'required' } as const
const local = { authHeader: 'authorization', credential: 'optional', keyVariable: null } as const

/** Google's OpenAI-compatible endpoint. */
const geminiCompatible = {
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
  authHeader: 'authorization',
  // Answers 400 `Unknown name` to these.
  dialect: {
    ...classic,
    refusedFields: [
      'store',
      'metadata',
      'seed',
      'frequency_penalty',
      'logit_bias',
      'service_tier',
      'safety_identifier',
      'prompt_cache_key',
      'verbosity',
    ],
  },
} as const

/** Every vendor: one entry each. Configuration, `upstream add`, and the help are derived from it. */
export const vendors = {
  openai: {
    ...hosted,
    name: 'OpenAI',
    baseUrl: 'https://api.openai.com/v1',
    formats: responsesFirst,
    endpoints: responsesFirst,
    dialect: { ...current, ...keyed, cacheMarks: 'prompt_cache_breakpoint' },
    exampleModel: 'gpt-5.1',
    keyVariable: 'OPENAI_API_KEY',
    priceLists: ['openai'],
    surcharges: surcharges.openai,
  },
  anthropic: {
    name: 'Anthropic',
    baseUrl: 'https://api.anthropic.com/v1',
    formats: ['anthropic-messages'],
    authHeader: 'x-api-key',
    credential: 'required',
    fixedHeaders: { 'anthropic-version': '2023-06-01' },
    // The format handles the differences between its models.
    dialect: classic,
    exampleModel: 'claude-opus-5',
    keyVariable: 'ANTHROPIC_API_KEY',
    priceLists: ['anthropic'],
    surcharges: surcharges.anthropic,
  },
  'azure-openai': {
    name: 'Azure OpenAI',
    // https://RESOURCE.openai.azure.com/openai/v1, which needs no api-version; the model is the deployment's name.
    baseUrl: null,
    formats: responsesFirst,
    endpoints: responsesFirst,
    authHeader: 'api-key',
    credential: 'required',
    dialect: { ...current, ...keyed },
    exampleModel: 'my-gpt-5-deployment',
    keyVariable: 'AZURE_OPENAI_API_KEY',
    priceLists: ['azure', 'openai'],
  },
  openrouter: {
    ...hosted,
    name: 'OpenRouter',
    baseUrl: 'https://openrouter.ai/api/v1',
    formats: chatFirst,
    dialect: { ...openRouter, cacheMarks: 'cache_control' },
    // It documents marks for chat only.
    byFormat: { 'openai-responses': { dialect: openRouter } },
    exampleModel: 'anthropic/claude-sonnet-4.5',
    keyVariable: 'OPENROUTER_API_KEY',
    priceLists: ['openrouter'],
  },
  groq: {
    ...hosted,
    name: 'Groq',
    baseUrl: 'https://api.groq.com/openai/v1',
    formats: chatFirst,
    dialect: {
      ...current,
      developerRole: false,
      hostedTools: hostedTools.groq,
      cacheMs: 2 * hourMs,
      refusedFields: ['logprobs', 'top_logprobs', 'logit_bias'],
    },
    exampleModel: 'openai/gpt-oss-120b',
    keyVariable: 'GROQ_API_KEY',
    priceLists: ['groq'],
    surcharges: surcharges.groq,
  },
  together: {
    ...hosted,
    name: 'Together AI',
    baseUrl: 'https://api.together.ai/v1',
    formats: chat,
    dialect: classic,
    exampleModel: 'openai/gpt-oss-20b',
    keyVariable: 'TOGETHER_API_KEY',
    priceLists: ['together'],
  },
  mistral: {
    ...hosted,
    name: 'Mistral',
    baseUrl: 'https://api.mistral.ai/v1',
    formats: chat,
    // Answers 422 to any unknown field; it reports usage in streams without being asked.
    dialect: {
      ...classic,
      ...keyed,
      ...keyedOnly,
      streamUsage: false,
      refusedFields: [
        'stream_options',
        'store',
        'user',
        'seed',
        'logprobs',
        'top_logprobs',
        'logit_bias',
        'service_tier',
        'safety_identifier',
        'verbosity',
        'modalities',
        'audio',
      ],
    },
    exampleModel: 'mistral-large-latest',
    keyVariable: 'MISTRAL_API_KEY',
    priceLists: ['mistral'],
  },
  deepseek: {
    ...hosted,
    name: 'DeepSeek',
    baseUrl: 'https://api.deepseek.com/v1',
    formats: chat,
    // Reasons by default, and answers 400 if a turn with tool calls comes back without its reasoning.
    // It caches for hours to days.
    dialect: { ...classic, replaysReasoning: true, cacheMs: 2 * hourMs },
    exampleModel: 'deepseek-chat',
    keyVariable: 'DEEPSEEK_API_KEY',
    priceLists: ['deepseek'],
  },
  xai: {
    ...hosted,
    name: 'xAI',
    baseUrl: 'https://api.x.ai/v1',
    formats: chatFirst,
    endpoints: chatFirst,
    dialect: { ...xai, cacheKey: 'x-grok-conv-id' },
    byFormat: { 'openai-responses': { dialect: { ...xai, ...keyed } } },
    exampleModel: 'grok-4',
    keyVariable: 'XAI_API_KEY',
    priceLists: ['x-ai'],
  },
  gemini: {
    name: 'Google Gemini',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    formats: ['gemini', 'openai-chat'],
    authHeader: 'x-goog-api-key',
    credential: 'required',
    // Most models answer 400 to these.
    dialect: { ...classic, refusedFields: ['presencePenalty', 'frequencyPenalty'] },
    byFormat: { 'openai-chat': geminiCompatible, 'openai-embeddings': geminiCompatible },
    exampleModel: 'gemini-2.5-pro',
    keyVariable: 'GEMINI_API_KEY',
    priceLists: ['google'],
  },
  vertex: {
    name: 'Google Vertex AI',
    baseUrl: 'https://aiplatform.googleapis.com/v1/projects/{project}/locations/global/publishers/google',
    regionalUrl:
      'https://{region}-aiplatform.googleapis.com/v1/projects/{project}/locations/{region}/publishers/google',
    formats: ['gemini'],
    authHeader: null,
    credential: 'required',
    signing: 'google',
    dialect: classic,
    exampleModel: 'gemini-2.5-pro',
    keyVariable: 'GOOGLE_SERVICE_ACCOUNT',
    priceLists: ['google', 'anthropic'],
    surcharges: surcharges.vertex,
  },
  bedrock: {
    ...hosted,
    name: 'Amazon Bedrock',
    // A Bedrock API key is sent as it is; an AWS key signs requests.
    baseUrl: 'https://bedrock-mantle.{region}.api.aws/v1',
    formats: chatFirst,
    signing: 'aws',
    dialect: classic,
    exampleModel: 'openai.gpt-oss-120b',
    keyVariable: 'AWS_BEARER_TOKEN_BEDROCK',
    priceLists: ['aws'],
  },
  ollama: {
    ...local,
    name: 'Ollama',
    baseUrl: 'http://127.0.0.1:11434/v1',
    formats: chatFirst,
    endpoints: localEndpoints,
    dialect: localServer,
    exampleModel: 'gpt-oss:20b',
  },
  vllm: {
    ...local,
    name: 'vLLM',
    baseUrl: 'http://127.0.0.1:8000/v1',
    formats: chatFirst,
    endpoints: localEndpoints,
    dialect: { ...localServer, hostedTools: hostedTools.vllm },
    exampleModel: 'Qwen/Qwen3-8B',
  },
  'llama-cpp': {
    ...local,
    name: 'llama.cpp',
    baseUrl: 'http://127.0.0.1:8080/v1',
    // Its Responses streams lack `output_index`.
    formats: chat,
    endpoints: localEndpoints,
    dialect: localServer,
    exampleModel: 'default',
  },
  'lm-studio': {
    ...local,
    name: 'LM Studio',
    baseUrl: 'http://127.0.0.1:1234/v1',
    formats: chatFirst,
    endpoints: localEndpoints,
    dialect: { ...localServer, hostedTools: hostedTools.lmStudio },
    exampleModel: 'openai/gpt-oss-20b',
  },
  custom: {
    ...local,
    name: 'Custom endpoint',
    baseUrl: null,
    formats: everyFormat,
    dialect: classic,
    exampleModel: 'my-model',
  },
  simulated: {
    name: 'Simulated',
    // Set when the simulated provider is started.
    baseUrl: null,
    formats: everyFormat,
    authHeader: null,
    credential: 'none',
    dialect: current,
    exampleModel: 'simulated-model',
    keyVariable: null,
  },
} as const satisfies Record<string, Vendor>

export type VendorId = keyof typeof vendors

/** The vendor with that id; undefined if there is none. */
export function findVendor(id: string): Vendor | undefined {
  return Object.hasOwn(vendors, id) ? vendors[id as VendorId] : undefined
}

/** The formats used for a backend of that vendor, the preferred one first. `named` is the configured one. */
export function endpointFormats(vendor: Vendor, named: FormatId | undefined): readonly [FormatId, ...FormatId[]] {
  return named === undefined ? (vendor.endpoints ?? [vendor.formats[0]]) : [named]
}

/** How to use a format with that vendor, by default its first one. */
export function vendorEndpoint(vendor: Vendor, format: FormatId = vendor.formats[0]): VendorEndpoint {
  const { baseUrl, authHeader, dialect } = vendor
  return { baseUrl, authHeader, dialect, ...vendor.byFormat?.[format] }
}
