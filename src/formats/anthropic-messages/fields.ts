/** Numbers of a messages request that are ours by another name, for reading and for writing. */
export const samplingNames = [
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['top_k', 'topK'],
] as const
