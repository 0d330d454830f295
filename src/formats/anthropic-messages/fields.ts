/** Number fields of a messages request that have another name in a conversation, for reading and writing. */
export const samplingNames = [
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['top_k', 'topK'],
] as const
