import type { Clock } from '../domain/clock.ts'
import type { RandomBytes } from '../domain/random.ts'
import type { Secret } from '../domain/secret.ts'
import type { AccountStore, IdentityStore } from './ports.ts'

/** What signing in needs: addresses and sessions, clock, randomness, and the pepper. */
export interface IdentityPlane {
  readonly store: IdentityStore & Pick<AccountStore, 'findAccount'>
  readonly clock: Pick<Clock, 'nowMs'>
  readonly random: RandomBytes
  readonly pepper: Secret
}
