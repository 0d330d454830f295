import type { Clock } from '../domain/clock.ts'
import type { RandomBytes } from '../domain/random.ts'
import type { Secret } from '../domain/secret.ts'
import type { AccountStore } from './ports.ts'

/** What the control plane works with: the store, time, randomness, and the pepper that keys are hashed with. */
export interface ControlPlane {
  readonly store: AccountStore
  readonly clock: Pick<Clock, 'nowMs'>
  readonly random: RandomBytes
  readonly pepper: Secret
}
