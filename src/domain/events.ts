import type { ErrorCode } from './errors.ts'
import type { RequestOutcome } from './requests.ts'
import type { Seam } from './upstream.ts'

/**
 * Everything that can be logged. A line consists of these fields only, so no prompt, key, or upstream text can reach a
 * log (contract 28.1, 28.2).
 */
export type ServiceEvent =
  | { readonly event: 'started'; readonly baseUrl: string; readonly version: string }
  | { readonly event: 'draining'; readonly openRequests: number }
  /**
   * The `drain` limit was reached: how many answers were still running, and how many complete ones their clients had
   * not read.
   */
  | { readonly event: 'drain_limit'; readonly limitMs: number; readonly running: number; readonly unread: number }
  | { readonly event: 'stopped'; readonly cutRequests: number }
  /** A worker process died and is replaced. `reason` is its exit code or signal. */
  | { readonly event: 'worker_died'; readonly worker: number; readonly reason: string }
  | {
      readonly event: 'request'
      readonly requestId: string
      readonly accountId: string
      readonly profile: string
      readonly format: string
      readonly outcome: ErrorCode | 'answered' | 'client_closed'
      readonly upstream: string | undefined
      readonly attempts: number
      /** The backends that failed during the request, if any. */
      readonly failed: readonly string[] | undefined
      /** Whether the answer is a refusal for safety, or a provider refused with an error (contract 7.29). */
      readonly refused?: true
      /** How another backend continued the answer after it broke off (contract 40.8). */
      readonly rescued?: Seam
      readonly charged: number
      readonly ms: number
    }
  /** A provider rejected an account's credential, which its owner must replace (contract 7.17). */
  | { readonly event: 'upstream_credentials_rejected'; readonly requestId: string; readonly backend: string }
  /**
   * A backend's circuit breaker opened for the first time since the backend last answered. `contentKind` is the content
   * that fails; `plain` for all requests.
   */
  | { readonly event: 'backend_down'; readonly backend: string; readonly contentKind: string; readonly reason: string }
  /** The backend gave a complete answer again. */
  | { readonly event: 'backend_back'; readonly backend: string; readonly contentKind: string; readonly downMs: number }
  /** This process ran out of file descriptors or ports. `code` is the system's. Logged at most once a minute. */
  | { readonly event: 'out_of_descriptors'; readonly code: string }
  /** The limit of open files (`ulimit -n`) is lower than the configured connections need. */
  | { readonly event: 'descriptor_limit_low'; readonly limit: number; readonly wanted: number }
  /** A provider does not know the configured model or path of a backend. */
  | { readonly event: 'upstream_not_found'; readonly requestId: string; readonly backend: string }
  /** An email could not be sent. `reason` is the mail server's status or the system's error code. */
  | { readonly event: 'mail_failing'; readonly reason: string }
  /** An alert of a budget could not be sent to the webhook. `reason` is what went wrong with the call. */
  | { readonly event: 'budget_webhook_failing'; readonly reason: string }
  /** The secret scanner reported this many tokens, and this many keys were revoked. */
  | { readonly event: 'leak_report'; readonly reported: number; readonly revoked: number }
  /**
   * The public keys of the secret scanner could not be fetched. Its reports are answered with a request to send them
   * again.
   */
  | { readonly event: 'scanning_keys_failing'; readonly reason: string }
  /** A provider counted more than the request can have used: its usage is estimated instead (contract 10.13). */
  | { readonly event: 'usage_absurd'; readonly requestId: string }
  | { readonly event: 'ledger_failing'; readonly reason: string }
  /** The database refused a row of one request, which was left out or settled with what is known: a bug. `reason` is a code. */
  | { readonly event: 'ledger_row_refused'; readonly reason: string }
  /**
   * The audit log was signed up to this entry. A copy of this line that is stored elsewhere reveals any later change.
   */
  | { readonly event: 'audit_checkpoint'; readonly sequence: number; readonly hash: string }
  /** Traces could not be exported. `reason` is the collector's status or the system's error code. Logged once per outage. */
  | { readonly event: 'tracing_failing'; readonly reason: string }
  /** The audit log could not be signed. If it is broken, the reason says why and at which entry. */
  | { readonly event: 'audit_failing'; readonly reason: string }
  /**
   * The checks of contract 23.3 turned managed access on (`opened`) or off (`shut`), or that change could not be
   * stored.
   */
  | { readonly event: 'managed_access'; readonly what: 'opened' | 'shut' | 'unrecorded'; readonly reason: string }
  /** Declared settings do not fit this node: the last ones stay in force. `reason` is the setting that does not fit. */
  | { readonly event: 'settings_failing'; readonly reason: string }
  | { readonly event: 'store_failing'; readonly reason: string }
  /** A stored response or conversation cannot be decrypted. With `unknown_key`, its sealing key is not configured. */
  | { readonly event: 'stored_text_unreadable'; readonly reason: 'malformed' | 'unknown_key' | 'not_authentic' }
  /**
   * The web app could not be loaded for a page. `reason` is `upgraded` if the service was upgraded and not restarted,
   * otherwise the system's error code. Logged at most once a second.
   */
  | { readonly event: 'web_app_failing'; readonly reason: string }
  /**
   * This many rejected requests are missing from the counts that accounts see: too many were waiting to be stored, or
   * the store did not respond at shutdown.
   */
  | { readonly event: 'refused_requests_dropped'; readonly count: number }
  /** A subscription granted another plan, or none. */
  | { readonly event: 'subscription_changed_plan'; readonly accountId: string; readonly planId: string }
  /** The payment provider cannot be reached. Plans stay as they are. */
  | { readonly event: 'billing_failing'; readonly reason: string }
  /** A problem with an account's subscriptions that its operator should look at. */
  | { readonly event: 'billing_odd'; readonly accountId: string; readonly reason: string }
  /** Payments are simulated: no money moves. */
  | { readonly event: 'billing_simulated'; readonly origin: string }
  /** What this process rejects first under overload has changed; `sheds` is empty when the overload is over. */
  | {
      readonly event: 'load_shedding'
      readonly sheds: readonly ShedLoad[]
      /** How late the last timer was. */
      readonly eventLoopDelayMs: number
      /** The open requests as a share of their limit. */
      readonly openShare: number
    }
  /** The edge gate rejected a request, the `inMinute`-th for this reason in this minute. */
  | {
      readonly event: 'edge_blocked'
      readonly requestId: string
      readonly reason: EdgeReason
      readonly inMinute: number
    }
  /** `stack` has the locations in our code, without the error's message. */
  | { readonly event: 'internal_error'; readonly requestId: string; readonly name: string; readonly stack: string }

/** What is rejected under overload, in this order (contract 41.1). */
export const shedLoads = ['retries', 'fusion', 'free_plan'] as const
export type ShedLoad = (typeof shedLoads)[number]

/** Why the edge gate rejects a User-Agent. */
export type EdgeReason = 'missing' | 'bare_browser' | 'placeholder' | 'scanner'

export type EventLog = (event: ServiceEvent) => void

/** The outcome of a request as its log line names it. */
export function outcomeName(outcome: RequestOutcome): ErrorCode | 'answered' | 'client_closed' {
  return outcome.errorCode ?? 'answered'
}
