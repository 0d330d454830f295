import type { JsonMember } from './json-scan.ts'

/**
 * Outermost members of requests that the service reads, replaces, or takes out before a provider reads them. A test holds
 * this list against what the relay rules change.
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
 * The member that is one of those but for its case, if any. Some JSON readers, Go's among them, take `Model` for `model`:
 * such a provider would be asked for what was never checked (contract 2.26).
 */
export function miscasedMember(members: readonly JsonMember[]): string | undefined {
  for (const { key } of members) {
    if (isPlain(key)) continue
    if (rewritten.has(folded(key)) && !rewritten.has(key)) return key
  }
  return undefined
}

/** The spelling that a name would have had to have. */
export function folded(key: string): string {
  // Upper case first: the long s and the Kelvin sign are letters of names to readers that fold by Unicode.
  return key.toUpperCase().toLowerCase()
}

/** Whether a name has only characters that no folding changes. */
function isPlain(key: string): boolean {
  for (let at = 0; at < key.length; at += 1) {
    const code = key.charCodeAt(at)
    if ((code >= 0x41 && code <= 0x5a) || code >= 0x80) return false
  }
  return true
}
