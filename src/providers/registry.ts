import type { CloudKind } from '../domain/cloud-credentials.ts'
import type { FormatId } from '../domain/format-id.ts'
import type { Dialect } from '../formats/format.ts'
import { hostedTools } from './hosted-tools.ts'

/** A vendor or server whose models can be used: everything that is particular to it, as data (contract 35.4). */
export interface Vendor {
  /** The name for people. */
  readonly name: string
  /**
   * Where its API is, without a slash at the end; null where the user must say. `{region}` and `{project}` are filled in
   * from what the user says or from the credential.
   */
  readonly baseUrl: string | null
  /** The base URL once a region was named, where there is one without. */
  readonly regionalUrl?: string
  /** The formats that it speaks, the preferred one first. */
  readonly formats: readonly [FormatId, ...FormatId[]]
  /** Formats that are always served side by side: a request uses the one that can say it, unless a format is configured. */
  readonly endpoints?: readonly [FormatId, ...FormatId[]]
  /** The header that carries the credential; `authorization` sends `Bearer`. Null where none is sent. */
  readonly authHeader: string | null
  readonly credential: 'required' | 'optional' | 'none'
  /** Headers that every request carries: name, in lower case, and value. */
  readonly fixedHeaders?: Readonly<Record<string, string>>
  /** The credential that signs each request instead of being sent; any other text is sent in `authHeader`, if there is one. */
  readonly signing?: CloudKind
  readonly dialect: Dialect
  /** What is different where another of its formats than the first is spoken. */
  readonly byFormat?: Partial<Record<FormatId, Partial<Spoken>>>
  /** A model to show in help and error sentences. */
  readonly exampleModel: string
  /** Where people usually keep its key; null where there is none. */
  readonly keyVariable: string | null
}

/** How one format is spoken to a vendor. */
export interface Spoken {
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
/** Servers that render chat templates: most templates know neither `developer` nor the newer limit, and of tools only functions. */
const classic = {
  maxTokensField: 'max_tokens',
  developerRole: false,
  streamUsage: true,
  hostedTools: [],
  refusedFields: [],
} as const
const chat = ['openai-chat'] as const
const chatFirst = ['openai-chat', 'openai-responses'] as const
const everyFormat = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const
/** Local servers continue bare prompts, too. */
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

/** Every vendor: one row each. Configuration, `upstream add` and the help derive from it. */
export const vendors = {
  openai: {
    ...hosted,
    name: 'OpenAI',
    baseUrl: 'https://api.openai.com/v1',
    formats: responsesFirst,
    endpoints: responsesFirst,
    dialect: current,
    exampleModel: 'gpt-5.1',
    keyVariable: 'OPENAI_API_KEY',
  },
  anthropic: {
    name: 'Anthropic',
    baseUrl: 'https://api.anthropic.com/v1',
    formats: ['anthropic-messages'],
    authHeader: 'x-api-key',
    credential: 'required',
    fixedHeaders: { 'anthropic-version': '2023-06-01' },
    // What differs between its models is in the format.
    dialect: classic,
    exampleModel: 'claude-opus-5',
    keyVariable: 'ANTHROPIC_API_KEY',
  },
  'azure-openai': {
    name: 'Azure OpenAI',
    // https://RESOURCE.openai.azure.com/openai/v1, which needs no api-version; the model is the deployment's name.
    baseUrl: null,
    formats: responsesFirst,
    endpoints: responsesFirst,
    authHeader: 'api-key',
    credential: 'required',
    dialect: current,
    exampleModel: 'my-gpt-5-deployment',
    keyVariable: 'AZURE_OPENAI_API_KEY',
  },
  openrouter: {
    ...hosted,
    name: 'OpenRouter',
    baseUrl: 'https://openrouter.ai/api/v1',
    formats: chatFirst,
    dialect: { ...current, hostedTools: hostedTools.openrouter },
    exampleModel: 'anthropic/claude-sonnet-4.5',
    keyVariable: 'OPENROUTER_API_KEY',
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
      refusedFields: ['logprobs', 'top_logprobs', 'logit_bias'],
    },
    exampleModel: 'openai/gpt-oss-120b',
    keyVariable: 'GROQ_API_KEY',
  },
  together: {
    ...hosted,
    name: 'Together AI',
    baseUrl: 'https://api.together.ai/v1',
    formats: chat,
    dialect: classic,
    exampleModel: 'openai/gpt-oss-20b',
    keyVariable: 'TOGETHER_API_KEY',
  },
  mistral: {
    ...hosted,
    name: 'Mistral',
    baseUrl: 'https://api.mistral.ai/v1',
    formats: chat,
    // Answers 422 to any field that it does not know; it counts streams without being asked.
    dialect: {
      ...classic,
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
        'prompt_cache_key',
        'verbosity',
        'modalities',
        'audio',
      ],
    },
    exampleModel: 'mistral-large-latest',
    keyVariable: 'MISTRAL_API_KEY',
  },
  deepseek: {
    ...hosted,
    name: 'DeepSeek',
    baseUrl: 'https://api.deepseek.com/v1',
    formats: chat,
    // Thinks unless told otherwise, and answers 400 where a turn with tool calls comes back without its thoughts.
    dialect: { ...classic, replaysReasoning: true },
    exampleModel: 'deepseek-chat',
    keyVariable: 'DEEPSEEK_API_KEY',
  },
  xai: {
    ...hosted,
    name: 'xAI',
    baseUrl: 'https://api.x.ai/v1',
    formats: chatFirst,
    endpoints: chatFirst,
    dialect: { ...current, developerRole: false, hostedTools: hostedTools.xai },
    exampleModel: 'grok-4',
    keyVariable: 'XAI_API_KEY',
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
  },
  bedrock: {
    ...hosted,
    name: 'Amazon Bedrock',
    // A Bedrock API key is sent as it is; an AWS key signs.
    baseUrl: 'https://bedrock-mantle.{region}.api.aws/v1',
    formats: chatFirst,
    signing: 'aws',
    dialect: classic,
    exampleModel: 'openai.gpt-oss-120b',
    keyVariable: 'AWS_BEARER_TOKEN_BEDROCK',
  },
  ollama: {
    ...local,
    name: 'Ollama',
    baseUrl: 'http://127.0.0.1:11434/v1',
    formats: chatFirst,
    endpoints: localEndpoints,
    dialect: classic,
    exampleModel: 'gpt-oss:20b',
  },
  vllm: {
    ...local,
    name: 'vLLM',
    baseUrl: 'http://127.0.0.1:8000/v1',
    formats: chatFirst,
    endpoints: localEndpoints,
    dialect: { ...classic, hostedTools: hostedTools.vllm },
    exampleModel: 'Qwen/Qwen3-8B',
  },
  'llama-cpp': {
    ...local,
    name: 'llama.cpp',
    baseUrl: 'http://127.0.0.1:8080/v1',
    // Its streams of responses lack `output_index`.
    formats: chat,
    endpoints: localEndpoints,
    dialect: classic,
    exampleModel: 'default',
  },
  'lm-studio': {
    ...local,
    name: 'LM Studio',
    baseUrl: 'http://127.0.0.1:1234/v1',
    formats: chatFirst,
    endpoints: localEndpoints,
    dialect: { ...classic, hostedTools: hostedTools.lmStudio },
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
    // Given when the simulated provider is started.
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

/** The vendor of that id; undefined where there is none. */
export function findVendor(id: string): Vendor | undefined {
  return Object.hasOwn(vendors, id) ? vendors[id as VendorId] : undefined
}

/** The formats in which a backend of that vendor is asked, the preferred one first. `named` is the configured one. */
export function endpointFormats(vendor: Vendor, named: FormatId | undefined): readonly [FormatId, ...FormatId[]] {
  return named === undefined ? (vendor.endpoints ?? [vendor.formats[0]]) : [named]
}

/** How that format is spoken to that vendor: its first one unless another is named. */
export function spokenBy(vendor: Vendor, format: FormatId = vendor.formats[0]): Spoken {
  const { baseUrl, authHeader, dialect } = vendor
  return { baseUrl, authHeader, dialect, ...vendor.byFormat?.[format] }
}
