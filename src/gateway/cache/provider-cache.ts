import type { Json } from '../../domain/json.ts'
import type { Profile } from '../../domain/profiles.ts'
import type { CacheRequest, Dialect } from '../../formats/format.ts'
import { isMarkedGpt } from '../../formats/openai/cache-marks.ts'
import { signText } from '../../runtime/mac.ts'
import type { SealingKey } from '../../runtime/sealer.ts'
import type { Backend } from '../ports.ts'
import type { CacheContext } from './cache-context.ts'
import type { SessionTurn } from './session-turn.ts'

/** OpenAI rejects a longer `prompt_cache_key`. */
const maxKeyCharacters = 64

/** What caching depends on for a request of this account to this profile. */
export function cacheContext(
  keys: SealingKey | undefined,
  accountId: string,
  { leavesMarks }: Pick<Profile, 'leavesMarks'>,
  turn: Pick<SessionTurn, 'session' | 'continuation'> | undefined,
): CacheContext {
  const addsMarks = leavesMarks !== true
  return { accountId, addsMarks, keys, session: turn?.session, continuation: turn?.continuation }
}

/**
 * How a request to one backend asks for caching (contract 44.1, 44.7, 44.8). `callerKey` is the caller's own
 * `prompt_cache_key`.
 */
export function cacheRequestFor(
  backend: Backend,
  dialect: Dialect,
  callerKey: string | undefined,
  context: CacheContext | undefined,
): CacheRequest {
  const addsMarks = dialect.leavesMarks !== true && context?.addsMarks !== false
  if (context === undefined) return { addsMarks }
  return { addsMarks, continuation: context.continuation, key: keyFor(backend, dialect, callerKey, context) }
}

/**
 * The key that leads requests to one cache. The caller's own key stays as it is, unless the credential serves several
 * accounts: then nobody may find out what another account has cached by guessing its key.
 */
function keyFor(
  { model, isManaged }: Backend,
  { cacheKey, needsCacheKey, refusedFields }: Dialect,
  callerKey: string | undefined,
  { accountId, session, keys }: CacheContext,
): string | undefined {
  if (keys === undefined || cacheKey !== 'prompt_cache_key' || refusedFields.includes('prompt_cache_key'))
    return undefined
  if (callerKey !== undefined && callerKey !== '') {
    if (isManaged === true) return signed(keys, [accountId, callerKey])
    return callerKey.length <= maxKeyCharacters ? callerKey : signed(keys, [callerKey])
  }
  // These models keep what one key stored from another: all sessions of an account share its beginning.
  if (isMarkedGpt(model)) return signed(keys, [accountId])
  // Elsewhere a key keeps a new session from the beginning that earlier ones stored, so only a session that goes on for
  // sure gets one.
  return session !== undefined && (session.isNamed || needsCacheKey === true)
    ? signed(keys, [accountId, session.digest])
    : undefined
}

/** The header that leads requests of one conversation to one server; undefined if the endpoint has none. */
export function cacheHeader(
  { dialect }: Pick<Backend, 'dialect'>,
  callerKey: Json | undefined,
  context: CacheContext | undefined,
): readonly [name: string, value: string] | undefined {
  const { cacheKey } = dialect
  if (context?.keys === undefined || cacheKey !== 'x-grok-conv-id') return undefined
  const own = typeof callerKey === 'string' && callerKey !== '' ? callerKey : context.session?.digest
  // A header takes fewer characters than a key may have, so it is always signed.
  return own === undefined ? undefined : [cacheKey, signed(context.keys, [context.accountId, own])]
}

function signed(keys: SealingKey, parts: readonly string[]): string {
  return signText(keys, JSON.stringify(parts)).mac
}
