import type { Dialect, FormatId } from '../format.ts'

/**
 * Request fields that express a preference and are not part of the question: if a backend rejects one, the request is
 * sent again without it. Never listed here: messages, tools, response formats, length limits, stop sequences, and
 * anything whose absence would change the kind of answer.
 *
 * The value lists fields that make no sense without it and are removed with it.
 */
export const optionalFields: Readonly<Record<string, readonly string[]>> = {
  // All OpenAI formats.
  frequency_penalty: [],
  include: [],
  logit_bias: [],
  logprobs: ['top_logprobs'],
  max_tool_calls: [],
  metadata: [],
  parallel_tool_calls: [],
  prediction: [],
  presence_penalty: [],
  prompt_cache_breakpoint: [],
  prompt_cache_key: [],
  prompt_cache_retention: [],
  reasoning: ['include'],
  reasoning_effort: [],
  safety_identifier: [],
  seed: [],
  service_tier: [],
  store: [],
  stream_options: [],
  temperature: [],
  top_logprobs: [],
  top_p: [],
  truncation: [],
  user: [],
  verbosity: [],
  // Anthropic.
  cache_control: [],
  context_management: [],
  thinking: [],
  top_k: [],
  // Google, inside `generationConfig`.
  frequencyPenalty: [],
  presencePenalty: [],
  responseLogprobs: ['logprobs'],
  thinkingConfig: [],
  topK: [],
  topP: [],
}

/** Optional fields that stand inside content and tools: marks for prompt caches (contract 44.5). */
export const markFields = ['cache_control', 'prompt_cache_breakpoint'] as const

/** The field of the request that a path such as `messages`, `0`, `content` names: the outermost, or a mark inside it. */
export function fieldOfPath(path: readonly string[]): string | undefined {
  return markFields.find((name) => path.includes(name)) ?? path[0]
}

/**
 * Chat's two names for the answer length limit. It is never left out: a rejected name is replaced by the other
 * (contract 7.12).
 */
export const limitNames = {
  max_tokens: 'max_completion_tokens',
  max_completion_tokens: 'max_tokens',
} as const

export function isLimitName(field: string): field is keyof typeof limitNames {
  return Object.hasOwn(limitNames, field)
}

/** The fields that a request in this format can do without: only chat has another name for the length limit. */
export function removableFields(fields: readonly string[], format: FormatId): readonly string[] {
  return format === 'openai-chat' ? fields : fields.filter((field) => !isLimitName(field))
}

/**
 * The dialect of an endpoint that also rejects these fields. One of the two names of the length limit always remains.
 */
export function withRejectedFields(dialect: Dialect, fields: readonly string[]): Dialect {
  const refused = new Set(dialect.refusedFields)
  let { maxTokensField } = dialect
  for (const field of fields) {
    if (isLimitName(field)) {
      if (refused.has(limitNames[field])) continue
      maxTokensField = limitNames[field]
    }
    refused.add(field)
  }
  return { ...dialect, maxTokensField, refusedFields: [...refused] }
}

/** Each format's field for requesting reasoning: servers name it by their own term. */
export const reasoningFields = ['reasoning', 'reasoning_effort', 'thinking', 'thinkingConfig'] as const

/** The optional fields among these, with their dependent fields, and the names of the length limit. */
export function withCompanions(fields: Iterable<string>): string[] {
  const all = new Set<string>()
  for (const field of fields) {
    if (isLimitName(field)) all.add(field)
    if (!Object.hasOwn(optionalFields, field)) continue
    all.add(field)
    for (const companion of optionalFields[field]!) all.add(companion)
  }
  return [...all]
}
