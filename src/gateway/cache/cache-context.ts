import type { CacheLifetime } from '../../domain/conversation.ts'
import type { SealingKey } from '../../runtime/sealer.ts'

/** What the gateway knows about one request, as far as providers' prompt caches depend on it. */
export interface CacheContext {
  readonly accountId: string
  /** Whether the profile adds marks. */
  readonly addsMarks: boolean
  /** Signs keys, so that none of them tells a provider, or another account, anything. */
  readonly keys: SealingKey | undefined
  /** The session's identity, as a digest; undefined if it is not known. */
  readonly session?: string | undefined
  /** Whether this session or the beginning of its prompt was seen within the lifetime of a mark. */
  readonly isReread?: boolean | undefined
  /** How long added marks should last. */
  readonly lifetime?: CacheLifetime | undefined
}
