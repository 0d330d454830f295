import { keyPrefix } from './keys.ts'

/** How keys of other services begin, for saying that one was sent here by mistake. */
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

/** What is wrong with a text that is no well-formed key, as a sentence that repeats nothing of it (contract 3.3). */
export function describeMalformedKey(key: string): string {
  if (/^["'`<]/.test(key)) return 'The key was sent with quotes or brackets around it.'
  if (key.startsWith('$')) return 'The name of a variable was sent in place of a key.'
  if (key.startsWith(keyPrefix)) return 'The key is incomplete or mistyped: its checksum does not hold.'
  const foreign = foreignPrefixes.find(([prefix]) => key.startsWith(prefix))
  return foreign === undefined ? 'This is not a svc-router key.' : `This looks like a key of ${foreign[1]}.`
}
