import type { SkippedBackend } from './backend-state.ts'
import type { ErrorCode } from './errors.ts'
import type { FusionRecord } from './fusion-record.ts'
import type { Attempt } from './upstream.ts'
import type { Usage } from './conversation.ts'

/** What is known of a request when it is admitted. No text of it is ever kept (contract 28.3). */
export interface RequestOpening {
  /** `req_…`, sorts by time. */
  readonly id: string
  readonly accountId: string
  readonly keyId: string
  readonly profile: string
  /** The caller's format: `openai-chat`, `openai-responses`. */
  readonly format: string
  readonly stream: boolean
  /** Units of the month that an answer takes. */
  readonly units: number
}

/** How a request ended. */
export interface RequestOutcome {
  /** Units of the month that were charged: 0 or the opening's units (contract 6.4). */
  readonly charged: number
  readonly attempts: readonly Attempt[]
  /** Backends that came before the one that answered, or all where none did, and were kept out; absent where there were none. */
  readonly passedBy?: readonly SkippedBackend[]
  readonly usage?: Usage
  readonly errorCode?: ErrorCode | 'client_closed'
  readonly firstContentMs?: number
  readonly totalMs: number
  /** One for each deliberation; absent where there was none. */
  readonly fusions?: readonly FusionRecord[]
}

/** `open` until it is settled; `delivered` while a stream that has begun runs; `lost` when the process died under it. */
export type RequestState = 'open' | 'delivered' | 'done' | 'lost'

/** The row of one admitted request. Times are epoch milliseconds. */
export interface RequestRecord extends RequestOpening, RequestOutcome {
  readonly state: RequestState
  readonly admittedAtMs: number
  readonly periodId: string
}
