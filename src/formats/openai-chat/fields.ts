/** Fields of a chat request that are ours by another name, for reading and for writing. */
export const samplingNames = [
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['seed', 'seed'],
  ['presence_penalty', 'presencePenalty'],
  ['frequency_penalty', 'frequencyPenalty'],
  ['n', 'choices'],
] as const

/** Strings that every endpoint takes. */
export const hintNames = [
  ['user', 'user'],
  ['service_tier', 'serviceTier'],
] as const

/** Strings that only OpenAI's own endpoint and its close relatives take. */
export const openaiHintNames = [
  ['safety_identifier', 'safetyIdentifier'],
  ['prompt_cache_key', 'promptCacheKey'],
  ['verbosity', 'verbosity'],
] as const
