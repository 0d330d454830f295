/** Fields of a chat request that have another name in a conversation, for reading and writing. */
export const samplingNames = [
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['seed', 'seed'],
  ['presence_penalty', 'presencePenalty'],
  ['frequency_penalty', 'frequencyPenalty'],
  ['n', 'choices'],
] as const

/** String fields that every endpoint accepts. */
export const hintNames = [
  ['user', 'user'],
  ['service_tier', 'serviceTier'],
] as const

/** String fields that only OpenAI's own endpoint and close relatives accept. */
export const openaiHintNames = [
  ['safety_identifier', 'safetyIdentifier'],
  ['prompt_cache_key', 'promptCacheKey'],
  ['verbosity', 'verbosity'],
] as const
