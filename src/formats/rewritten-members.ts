import type { JsonMember } from './json-scan.ts'

/**
 * Top-level request members that the service reads, replaces, or removes before forwarding. A test checks this list
 * against the changes of the relay rules.
 */
const rewritten = new Set([
  'model',
  'stream',
  'stream_options',
  'store',
  'include',
  'input',
  'instructions',
  'messages',
  'system',
  'prompt',
  'conversation',
  'previous_response_id',
  'background',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'functions',
  'function_call',
  'max_tokens',
  'max_completion_tokens',
  'max_output_tokens',
  'n',
  'stop',
  'stop_sequences',
  'temperature',
  'top_p',
  'top_logprobs',
  'logprobs',
  'reasoning',
  'reasoning_effort',
  'thinking',
  'response_format',
  'text',
  'metadata',
  'user',
  'safety_identifier',
  'service_tier',
])

/**
 * The first member that matches one of those except for its case. Some JSON parsers, such as Go's, read `Model` as
 * `model`: such a provider would use a value that was never checked (contract 2.26).
 */
export function findMiscasedMember(members: readonly JsonMember[]): string | undefined {
  for (const { key } of members) {
    if (isPlain(key)) continue
    if (rewritten.has(foldCase(key)) && !rewritten.has(key)) return key
  }
  return undefined
}

/** The case-folded form of a name. */
export function foldCase(key: string): string {
  // Upper case first: parsers that fold by Unicode treat the long s and the Kelvin sign as ASCII letters.
  return key.toUpperCase().toLowerCase()
}

/** Whether a name has only characters that case folding does not affect. */
function isPlain(key: string): boolean {
  for (let at = 0; at < key.length; at += 1) {
    const code = key.charCodeAt(at)
    if ((code >= 0x41 && code <= 0x5a) || code >= 0x80) return false
  }
  return true
}
