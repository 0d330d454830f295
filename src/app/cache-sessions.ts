import { CacheSessions } from '../gateway/cache/cache-sessions.ts'
import { sealedSessions } from '../gateway/cache/sealed-sessions.ts'
import { KeyedDigest } from '../runtime/keyed-digest.ts'
import { createSealer } from '../runtime/sealer.ts'
import type { Runtime } from './runtime.ts'
import type { Storage } from './storage.ts'

/** Remembers which backends hold the prompts of sessions in a cache, for all workers and nodes (contract 45.8). */
export function openCacheSessions(
  { keys, random, clock, log }: Pick<Runtime, 'keys' | 'random' | 'clock' | 'log'>,
  { store }: Pick<Storage, 'store'>,
): CacheSessions {
  // Sessions of a previous key are not found, because their names are digests with that key.
  const sealer = createSealer({ current: keys.current, random })
  const digest = new KeyedDigest(keys.current.key.reveal())
  return new CacheSessions({ digest, clock, log, store: sealedSessions(store, sealer) })
}
