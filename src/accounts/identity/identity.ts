import type { Clock } from '../../runtime/clock.ts'
import type { RandomBytes } from '../../runtime/random.ts'
import type { Secret } from '../../runtime/secret.ts'
import type { AccountStore, IdentityStore } from '../ports.ts'

/** What signing in needs: addresses and sessions, clock, randomness, and the pepper. */
export interface IdentityDeps {
  readonly store: IdentityStore & Pick<AccountStore, 'findAccount'>
  readonly clock: Pick<Clock, 'nowMs'>
  readonly random: RandomBytes
  readonly pepper: Secret
}
