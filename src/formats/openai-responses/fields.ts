/** Fields of a Responses request that have another name in a conversation, for reading and writing. */
export const samplingNames = [
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['max_output_tokens', 'maxOutputTokens'],
  ['top_logprobs', 'topLogprobs'],
] as const

/** Number fields that only Open Responses has: written only if they differ from the default. */
export const penaltyNames = [
  ['presence_penalty', 'presencePenalty'],
  ['frequency_penalty', 'frequencyPenalty'],
] as const

export const hintNames = [
  ['user', 'user'],
  ['service_tier', 'serviceTier'],
  ['safety_identifier', 'safetyIdentifier'],
  ['prompt_cache_key', 'promptCacheKey'],
  ['instructions', 'instructions'],
  ['truncation', 'truncation'],
] as const

/** Requests the log probabilities of an answer's tokens. */
export const includeLogprobs = 'message.output_text.logprobs'
/** Requests encrypted reasoning, so that it can be sent back. */
export const includeSealed = 'reasoning.encrypted_content'
