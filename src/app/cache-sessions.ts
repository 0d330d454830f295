import { CacheSessions } from '../gateway/cache/cache-sessions.ts'
import { KeyedDigest } from '../runtime/keyed-digest.ts'
import type { Runtime } from './runtime.ts'
import type { Storage } from './storage.ts'

/** Remembers which backends hold the prompts of sessions in a cache, for all workers and nodes (contract 45.8). */
export function openCacheSessions(
  { keys, clock, log }: Pick<Runtime, 'keys' | 'clock' | 'log'>,
  { store }: Pick<Storage, 'store'>,
): CacheSessions {
  return new CacheSessions({ digest: new KeyedDigest(keys.current.key.reveal()), clock, log, store })
}
