import { type Sealer, SealError } from '../../runtime/sealer.ts'
import type { CacheSessionStore, StoredCacheSession } from './session-store.ts'

/**
 * Stores sessions encrypted, so that nobody can test a guess of a text against their checksums (contract 45.11). A session
 * that was encrypted with another key counts as absent; it expires within a day.
 */
export function sealedSessions(store: CacheSessionStore, sealer: Sealer): CacheSessionStore {
  const bindingOf = ({ accountId, session }: Pick<StoredCacheSession, 'accountId' | 'session'>): readonly string[] => [
    accountId,
    session,
    'cache session',
  ]
  return {
    async findCacheSession(accountId, session) {
      const stored = await store.findCacheSession(accountId, session)
      if (stored === undefined) return undefined
      try {
        return { ...stored, state: sealer.open(bindingOf(stored), stored.state) }
      } catch (error) {
        if (error instanceof SealError) return undefined
        throw error
      }
    },

    async saveCacheSessions(sessions) {
      await store.saveCacheSessions(sessions.map((one) => ({ ...one, state: sealer.seal(bindingOf(one), one.state) })))
    },
  }
}
