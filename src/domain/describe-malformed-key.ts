import { keyPrefix } from './keys.ts'

/** Prefixes of other services' keys, to recognize one that was sent by mistake. */
const foreignPrefixes = [
  ['sk-ant-', 'Anthropic'],
  ['sk-or-', 'OpenRouter'],
  ['sk-proj-', 'OpenAI'],
  ['sk-', 'another provider'],
  ['gsk_', 'Groq'],
  ['xai-', 'xAI'],
  ['AIza', 'Google'],
  ['ghp_', 'GitHub'],
] as const

/** What is wrong with a malformed key, in a sentence that repeats no part of it (contract 3.3). */
export function describeMalformedKey(key: string): string {
  if (/^["'`<]/.test(key)) return 'The key was sent with quotes or brackets around it.'
  if (key.startsWith('$')) return 'The name of a variable was sent instead of a key.'
  if (key.startsWith(keyPrefix)) return 'The key is incomplete or mistyped: its checksum is wrong.'
  const foreign = foreignPrefixes.find(([prefix]) => key.startsWith(prefix))
  return foreign === undefined ? 'This is not a svc-router key.' : `This looks like a key for ${foreign[1]}.`
}
