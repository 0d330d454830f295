import type { Continuation } from '../../formats/cache/plan-marks.ts'
import type { SealingKey } from '../../runtime/sealer.ts'
import type { SessionKey } from './session-turn.ts'

/** What the gateway knows about one request, as far as providers' prompt caches depend on it. */
export interface CacheContext {
  readonly accountId: string
  /** Whether the profile adds marks. */
  readonly addsMarks: boolean
  /** Signs keys, so that none of them tells a provider, or another account, anything. */
  readonly keys: SealingKey | undefined
  /** Undefined if no provider caches the prompt, because it is too short. */
  readonly session?: SessionKey | undefined
  readonly continuation?: Continuation | undefined
}
