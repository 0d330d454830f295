import { setTimeout as sleep } from 'node:timers/promises'
import { pepperId } from '../domain/keys.ts'
import { createSealer, type Resealed } from '../runtime/sealer.ts'
import type { Store } from '../storage/store.ts'
import type { Runtime } from './runtime.ts'

/** The database belongs to the service for this part of the time, and longer than one of its commits takes. */
const pauseMs = 20

/** What the command line can do with all encrypted values of a store. */
export function sealedValues(
  { keys, random, clock, peppers }: Pick<Runtime, 'keys' | 'random' | 'clock' | 'peppers'>,
  store: Store,
): {
  countOthers(): Promise<number>
  countUnreadable(): Promise<number>
  countKeys(): Promise<number>
  reseal(): Promise<Resealed>
} {
  const sealer = createSealer({ ...keys, random })
  const { id } = keys.current
  return {
    countOthers: () => store.countSealedWithOthers([id]),
    countUnreadable: () => store.countSealedWithOthers(keys.previous === undefined ? [id] : [id, keys.previous.id]),
    countKeys: () => store.countKeysWithOtherPeppers(pepperId(peppers[0]!), clock.nowMs()),
    reseal: () => store.resealValues(sealer, id, () => sleep(pauseMs)),
  }
}
