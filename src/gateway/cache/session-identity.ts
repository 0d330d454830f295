import type { Conversation } from '../../domain/conversation.ts'
import { isObject, type JsonObject } from '../../domain/json.ts'
import { checksum } from '../../runtime/checksum.ts'

/** Longer values are ignored: no client sends one. */
const longest = 256
/** How much of each text of an opening is read, UTF-16 code units, and of how many texts. */
const maxText = 32_768
const maxTexts = 64
/** Longer texts are read as their beginning, length, and checksum: a cryptographic digest of all would take ten times as long. */
const shortText = 256
/** Headers in which clients name their session, in the order in which they are read (contract 45.1). */
const sessionHeaders = [
  'x-session-id',
  'x-claude-code-session-id',
  'session-id',
  'thread-id',
  'x-session-affinity',
] as const
/** Claude Code before 2.1 ends its user ID with the session. */
const userWithSession = /_session_([\w-]{8,64})$/

/** The session that a client names in its headers; undefined if it names none. */
export function statedSession(headers: Readonly<Record<string, string | string[] | undefined>>): string | undefined {
  for (const name of sessionHeaders) {
    const value = headers[name]
    if (isName(value)) return value
  }
  return undefined
}

/** What identifies the session of a request: what the client says, else how the conversation begins (contract 45.1). */
export type SessionIdentity =
  /** `key`: a `prompt_cache_key`, which unrelated requests with the same beginning may share. */
  | { readonly kind: 'named' | 'key'; readonly name: string }
  | { readonly kind: 'opening'; readonly texts: readonly string[] }

/** The first identity that a request has. `stated` is that of its headers. */
export function sessionIdentity(
  stated: string | undefined,
  body: JsonObject,
  { turns, hints }: Conversation,
): SessionIdentity {
  if (stated !== undefined) return { kind: 'named', name: stated }
  const { session_id: session, prompt_cache_key: key, metadata } = body
  if (isName(session)) return { kind: 'named', name: session }
  if (isName(key)) return { kind: 'key', name: key }
  const user = isObject(metadata) ? metadata['user_id'] : undefined
  const name = (typeof user === 'string' ? sessionOfUser(user) : undefined) ?? hints.conversationId
  if (name !== undefined) return { kind: 'named', name }
  // A request that continues a stored response contains all of it by now, so its opening is that of the chain's root.
  return { kind: 'opening', texts: openingOf({ turns, hints }) }
}

/** Claude Code's user ID: JSON with a `session_id`, or a text that ends with it. */
function sessionOfUser(user: string): string | undefined {
  if (user.length > 4 * longest) return undefined
  if (!user.startsWith('{')) return userWithSession.exec(user)?.[1]
  try {
    const parsed: unknown = JSON.parse(user)
    const session = isObject(parsed) ? parsed['session_id'] : undefined
    return isName(session) ? session : undefined
  } catch {
    // Any text is a valid user ID.
    return undefined
  }
}

/** The system prompt and the first thing that the user said; checksums of long texts. */
function openingOf({ turns, hints }: Pick<Conversation, 'turns' | 'hints'>): readonly string[] {
  const texts = [shortOf(hints.instructions ?? '')]
  for (const { role, parts } of turns) {
    for (const part of parts.slice(0, maxTexts))
      texts.push(`${role} ${'text' in part ? shortOf(part.text) : part.type}`)
    if (role === 'user' || texts.length > maxTexts) break
  }
  return texts
}

function shortOf(text: string): string {
  if (text.length <= shortText) return text
  const read = text.slice(0, maxText)
  return `${read.slice(0, shortText)} ${read.length} ${checksum(read)}`
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= longest
}
