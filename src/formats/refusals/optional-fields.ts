import type { Dialect } from '../format.ts'

/**
 * Request fields that a backend may be asked without, because what they say is a preference and not part of the question:
 * if a backend refuses one, the request is sent again without it. Never here: messages, tools, response formats, limits of
 * length, stop sequences, and everything whose absence would give the caller another kind of answer.
 *
 * The value names the fields that make no sense without it and go with it.
 */
export const optionalFields: Readonly<Record<string, readonly string[]>> = {
  // Every format of OpenAI's.
  frequency_penalty: [],
  include: [],
  logit_bias: [],
  logprobs: ['top_logprobs'],
  max_tool_calls: [],
  metadata: [],
  parallel_tool_calls: [],
  prediction: [],
  presence_penalty: [],
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
  // Anthropic's.
  context_management: [],
  thinking: [],
  top_k: [],
  // Google's, inside `generationConfig`.
  frequencyPenalty: [],
  presencePenalty: [],
  responseLogprobs: ['logprobs'],
  thinkingConfig: [],
  topK: [],
  topP: [],
}

/** The two names that chat has for the limit of an answer's length. It is never left out: a refused name is replaced by the other. */
export const limitNames = {
  max_tokens: 'max_completion_tokens',
  max_completion_tokens: 'max_tokens',
} as const

export function isLimitName(field: string): field is keyof typeof limitNames {
  return Object.hasOwn(limitNames, field)
}

/** The dialect of an endpoint that refuses these fields too. Of the two names of the length limit, one always remains. */
export function withRefused(dialect: Dialect, fields: readonly string[]): Dialect {
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

/** What each format calls the wish for reasoning: servers name it by their own word. */
export const reasoningFields = ['reasoning', 'reasoning_effort', 'thinking', 'thinkingConfig'] as const

/** The optional fields among these, with those that go with them, and the names of the length limit. */
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
