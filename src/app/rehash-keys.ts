import { pepperId } from '../domain/keys.ts'
import { errorName } from '../runtime/describe-bug.ts'
import type { Store } from '../storage/store.ts'
import type { Runtime } from './runtime.ts'

/** Keys that wait to be hashed again. Beyond it, a key waits for its first use after the next start. */
const maxWaiting = 10_000

/**
 * Hashes keys with the current pepper when they are used, one after another, so that the previous pepper can be removed
 * later (contract 31.13). Undefined unless a previous pepper is configured.
 */
export function rehashKeys(
  { peppers: [current, ...previous], log }: Runtime,
  store: Pick<Store, 'rehashKey'>,
): ((keyId: string, found: string, current: string) => void) | undefined {
  if (current === undefined || previous.length === 0) return undefined
  const id = pepperId(current)
  let waiting = 0
  let last = Promise.resolve()
  return (keyId, found, digest) => {
    if (waiting >= maxWaiting) return
    waiting += 1
    last = last
      .then(() => store.rehashKey(keyId, found, digest, id))
      .catch((error: unknown) => log({ event: 'store_failing', reason: errorName(error) }))
      .finally(() => {
        waiting -= 1
      })
  }
}
