import { routingField } from '../domain/routing-policy.ts'
import type { JsonMember } from './json-scan.ts'
import { optionalFields } from './rejections/optional-fields.ts'

/**
 * Top-level members of requests that the service reads, replaces, or removes before forwarding, besides the optional fields, which it
 * removes if a backend rejects them. A test derives them from the code that reads requests.
 */
const read = [
  'background',
  'best_of',
  'compaction',
  'container',
  'conversation',
  'data_sources',
  'dimensions',
  'echo',
  'encoding_format',
  'extra_body',
  'function_call',
  'functions',
  'generate',
  'google',
  'input',
  'instructions',
  'items',
  'max_completion_tokens',
  'max_output_tokens',
  'max_tokens',
  'mcp_servers',
  'messages',
  'modalities',
  'model',
  'models',
  'n',
  'output_config',
  'output_format',
  'plugins',
  'preset',
  'previous_response_id',
  'prompt',
  'response_format',
  routingField,
  'search_parameters',
  'session_id',
  // Providers bill a faster answer at another price.
  'speed',
  'stop',
  'stop_sequences',
  'stream',
  'stream_id',
  'suffix',
  'system',
  'text',
  'thread',
  'tool_choice',
  'tools',
  'type',
  'web_search_options',
]

const rewritten = new Set([...read, ...Object.keys(optionalFields)])

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
