/** Fields of a Responses request that are ours by another name, for reading and for writing. */
export const samplingNames = [
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['max_output_tokens', 'maxOutputTokens'],
  ['top_logprobs', 'topLogprobs'],
] as const

/** Numbers that only Open Responses has: written where they say more than the default. */
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

/** Asks for the probabilities of an answer's tokens. */
export const includeLogprobs = 'message.output_text.logprobs'
/** Asks for reasoning in its sealed form, for sending it back. */
export const includeSealed = 'reasoning.encrypted_content'
