import type { ErrorCode } from './errors.ts'
import type { RequestOutcome } from './requests.ts'

/**
 * Everything that may be logged. A line is made of these fields and no others, so that no prompt, key or upstream text
 * can slip into a log (contract 28.2).
 */
export type ServiceEvent =
  | { readonly event: 'started'; readonly baseUrl: string; readonly version: string }
  | { readonly event: 'draining'; readonly openRequests: number }
  /** The `drain` limit passed: so many answers were still under way, so many complete ones not taken by their callers. */
  | { readonly event: 'drain_limit'; readonly limitMs: number; readonly running: number; readonly unread: number }
  | { readonly event: 'stopped'; readonly cutRequests: number }
  | {
      readonly event: 'request'
      readonly requestId: string
      readonly accountId: string
      readonly profile: string
      readonly format: string
      readonly outcome: ErrorCode | 'answered' | 'client_closed'
      readonly upstream: string | undefined
      readonly attempts: number
      /** Backends that failed under it, where any did. */
      readonly failed: readonly string[] | undefined
      readonly charged: number
      readonly ms: number
    }
  /** A provider did not take an account's credential: the account's owner must replace it (contract 7.17). */
  | { readonly event: 'upstream_credentials_rejected'; readonly requestId: string; readonly backend: string }
  /** A backend's circuit breaker opened for the first time since it last answered; `contentKind` is what it fails on, `plain` for everything. */
  | { readonly event: 'backend_down'; readonly backend: string; readonly contentKind: string; readonly reason: string }
  /** It has given a complete answer again. */
  | { readonly event: 'backend_back'; readonly backend: string; readonly contentKind: string; readonly downMs: number }
  /** This process has no file descriptors or ports left: `code` is the system's. Once a minute at most. */
  | { readonly event: 'out_of_descriptors'; readonly code: string }
  /** The limit of open files (`ulimit -n`) is lower than the configured connections need. */
  | { readonly event: 'descriptor_limit_low'; readonly limit: number; readonly wanted: number }
  /** A provider does not know the model or the path that a backend is configured with. */
  | { readonly event: 'upstream_not_found'; readonly requestId: string; readonly backend: string }
  /** A letter could not be sent: `reason` is the mail server's status or the system's code. */
  | { readonly event: 'mail_failing'; readonly reason: string }
  /** The secret scanner reported so many tokens, and so many keys were revoked by it. */
  | { readonly event: 'leak_report'; readonly reported: number; readonly revoked: number }
  /** The public keys of the secret scanner cannot be had: its reports are asked to come again. */
  | { readonly event: 'scanning_keys_failing'; readonly reason: string }
  | { readonly event: 'ledger_failing'; readonly reason: string }
  /** The audit log was signed up to here: a copy of this line kept elsewhere shows any later rewriting. */
  | { readonly event: 'audit_checkpoint'; readonly sequence: number; readonly hash: string }
  /** The audit log could not be signed; where it is broken the reason says why and at which entry. */
  | { readonly event: 'audit_failing'; readonly reason: string }
  /** The live checks of contract 23.3 opened or shut managed access, or that could not be recorded. */
  | { readonly event: 'managed_access'; readonly what: 'opened' | 'shut' | 'unrecorded'; readonly reason: string }
  | { readonly event: 'store_failing'; readonly reason: string }
  /** So many refused requests are missing from what accounts see: too many waited to be written, or could not be at the end. */
  | { readonly event: 'refused_requests_dropped'; readonly count: number }
  /** A subscription granted another plan, or none any more. */
  | { readonly event: 'subscription_changed_plan'; readonly accountId: string; readonly planId: string }
  /** Whoever takes the money cannot be asked; plans stay as they are meanwhile. */
  | { readonly event: 'billing_failing'; readonly reason: string }
  /** Something about an account's subscriptions that its operator should look at. */
  | { readonly event: 'billing_odd'; readonly accountId: string; readonly reason: string }
  /** Payments are simulated: no money moves. */
  | { readonly event: 'billing_simulated'; readonly origin: string }
  /** The edge gate refused a request, `inMinute` times for this reason in this minute. */
  | {
      readonly event: 'edge_blocked'
      readonly requestId: string
      readonly reason: EdgeReason
      readonly inMinute: number
    }
  /** `stack` holds the places in our code, without the error's message. */
  | { readonly event: 'internal_error'; readonly requestId: string; readonly name: string; readonly stack: string }

/** Why the edge gate refuses a User-Agent. */
export type EdgeReason = 'missing' | 'bare_browser' | 'placeholder' | 'scanner'

export type EventLog = (event: ServiceEvent) => void

/** How the end of a request is named in its log line. */
export function outcomeName(outcome: RequestOutcome): ErrorCode | 'answered' | 'client_closed' {
  return outcome.errorCode ?? 'answered'
}
