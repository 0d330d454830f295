import type { UsageSignals } from './account-meter.ts'
import type { Budget } from './budgets.ts'
import { authentication, type ErrorEntry, forbidden, invalid, limited, overBudget, unavailable } from './error-entry.ts'
import type { LinkName } from './links.ts'

/**
 * Every error the service can return, one entry per row of contract 4.12-4.64. Statuses, bodies, headers, and docs
 * derive from it.
 */
export const errorCatalog = {
  key_missing: {
    ...authentication,
    action: 'accountSetupUrl',
    message: 'No API key was sent. Send "Authorization: Bearer sk_svc_…". Get a key:',
  },
  key_malformed: {
    ...authentication,
    action: 'accountUrl',
    message: '{reason} svc-router keys start with sk_svc_ and have 45 characters. See your keys:',
  },
  key_inactive: {
    ...authentication,
    action: 'accountUrl',
    message: 'This API key is not active: it is unknown, or its account is suspended. See your keys:',
  },
  key_revoked: {
    ...authentication,
    action: 'accountUrl',
    message: 'This API key was revoked and will not work again. Create a new one:',
  },
  auth_unavailable: {
    ...unavailable,
    message: 'Your key could not be checked right now. The problem is on our side. Please try again in 1s.',
  },

  duplicate_header: { ...invalid, message: 'The {header} header was sent more than once. Send it once.' },
  invalid_json: { ...invalid, message: 'The body is not a valid JSON object{where}. Send one JSON object.' },
  invalid_request: { ...invalid, message: '{problem}' },
  unsupported_parameter: { ...invalid, message: '{problem}' },
  reserved_tool_name: { ...invalid, message: 'The tool name {name} is reserved for {type}. Choose another name.' },
  previous_response_not_found: {
    ...invalid,
    message:
      'There is no stored response with the ID in previous_response_id, or an earlier response in its chain was deleted. Send the whole conversation in input instead.',
  },
  item_not_found: {
    ...invalid,
    status: 404,
    message: 'Item with {named} not found. Send the item itself in input instead of its ID.',
  },
  response_not_found: {
    ...invalid,
    status: 404,
    message:
      'There is no stored response with this ID. It may have expired or been deleted, or the request had "store": false. Check the ID.',
  },
  conversation_not_found: {
    ...invalid,
    status: 404,
    message: 'There is no conversation with this ID. It may have expired or been deleted. Create a new one.',
  },
  conversation_item_not_found: {
    ...invalid,
    status: 404,
    message: 'There is no item with this ID in the conversation. List its items to see their IDs.',
  },
  request_not_found: {
    ...invalid,
    status: 404,
    message:
      'There is no record of a request with this ID. Records expire, and requests that were not accepted have none. Check the ID, and use a key from the account that sent the request.',
  },
  context_length_exceeded: {
    ...invalid,
    message:
      'The prompt is too long: together with the requested output, it exceeds the context window of every available backend of {profile}. Shorten the conversation and send it again.',
  },
  content_rejected: {
    ...invalid,
    source: 'provider',
    message:
      'The provider rejected the content of this request{said}{rule}. Change the content before you send the request again.',
  },
  payload_too_large: { ...invalid, status: 413, message: 'The body is larger than {limit}. Send a smaller one.' },
  unsupported_media_type: {
    ...invalid,
    status: 415,
    message:
      'The body must be JSON in UTF-8. Send it with "Content-Type: application/json", either uncompressed or with a single Content-Encoding: gzip, deflate, br, or zstd.',
  },
  headers_too_large: {
    ...invalid,
    status: 431,
    message: 'This request has too many headers, or they are too large. Send fewer or shorter ones.',
  },
  request_timeout: {
    ...invalid,
    status: 408,
    retryable: true,
    message: 'The request did not arrive within {seconds}s. Send it again.',
  },
  method_not_allowed: { ...invalid, status: 405, message: '{method} is not allowed here. Use {allowed}.' },
  upgrade_required: {
    ...invalid,
    status: 426,
    message: '{problem} Instead, send a POST with "stream": true to {baseUrl}/responses',
  },
  websocket_connection_limit_reached: {
    ...invalid,
    retryable: true,
    message: 'This WebSocket connection has reached its time limit of {minutes:minute}. Open a new one to continue.',
  },
  websocket_queue_full: {
    ...limited,
    message:
      'The requests queued on this connection are too numerous or too large, or those on all WebSockets of this account are too large in total. Wait for a response to finish.',
  },
  not_found: {
    ...invalid,
    status: 404,
    message: '{problem}',
  },
  idempotency_key_reused: {
    ...invalid,
    status: 409,
    message:
      'This Idempotency-Key was already used for a different request. Send exactly the same request again, or use a new Idempotency-Key.',
  },
  model_not_found: {
    ...invalid,
    status: 404,
    message: 'There is no profile {named}.{suggestion} Available profiles: {profiles}.',
  },

  plan_required: {
    status: 403,
    type: 'permission_error',
    source: 'client',
    retryable: false,
    signals: 'billing',
    action: 'upgradeUrl',
    message: '{what} requires a premium plan, and this account is on the {plan} plan. Upgrade:',
  },
  key_profile_not_allowed: {
    ...forbidden,
    action: 'keysUrl',
    message:
      'This API key may not use {what}. Profiles that it may use: {profiles}. Use only these, or change the key’s limits:',
  },
  key_address_not_allowed: {
    ...forbidden,
    action: 'keysUrl',
    message:
      'This API key may not be used from the address {address}. If the address is yours, add it to the key’s limits:',
  },
  no_provider_connected: {
    ...forbidden,
    action: 'docsUrl',
    message: 'No provider can serve {profile} for this account. {next}:',
  },
  no_backend_matches: {
    ...invalid,
    message:
      'No backend of {profile} meets the requirements. Excluded backends: {reasons}. Change "routing", or ask the operator to add a backend.',
  },
  rate_limit_exceeded: {
    ...limited,
    message: 'Rate limit reached: {limit} per minute {scope}. Please try again in {seconds}s.',
  },
  too_many_fusions: {
    ...limited,
    message: 'Limit reached: the {plan} plan allows {limit:concurrent fusion}. Please try again in {seconds}s.',
  },
  insufficient_quota: {
    status: 402,
    type: 'insufficient_quota',
    source: 'client',
    retryable: false,
    signals: 'billing',
    action: 'upgradeUrl',
    message:
      'The monthly quota cannot cover this request: {used} of {limit:request} used on the {plan} plan. It resets on {resetsOn}. See the plans:',
  },
  budget_exceeded: {
    ...overBudget,
    message: '{budget} has {left} of {limit} left. This request needs {need}. {wayOut}, or {raise}:',
  },
  budget_held: {
    ...limited,
    message:
      '{budget} cannot pay for this request yet: {spent} of {limit} spent, {held} held by running requests, {need} needed. Please try again in {seconds}s.',
  },
  budget_price_unknown: {
    ...overBudget,
    message:
      '{budget} is in US dollars, and no backend of {profile} has a known price. Use another profile, or ask the operator to set a price. See the budgets:',
  },
  '1010': {
    status: 403,
    type: 'edge_error',
    source: 'edge',
    retryable: false,
    signals: 'none',
    action: 'docsUrl',
    message: '{problem} (1010). Send a descriptive User-Agent, for example "my-app/1.0 (me@example.com)". Details:',
  },
  server_is_overloaded: {
    ...unavailable,
    source: 'provider',
    message: 'No backend of {profile} could answer right now. Please try again in {seconds}s.',
  },
  record_unavailable: {
    ...unavailable,
    message: 'This request could not be recorded, so it was neither answered nor counted. Please try again in 1s.',
  },
  store_unavailable: {
    ...unavailable,
    message: 'The stored data of this account could not be read or changed right now. Please try again in 1s.',
  },
  server_busy: {
    ...unavailable,
    message:
      'This server is handling as many requests as it can, in total or for this account or address. Please try again in {seconds}s.',
  },
  load_shed: {
    ...unavailable,
    message: 'This server is overloaded and rejects {what} at the moment. Please try again in {seconds}s.',
  },
  restarting: {
    ...unavailable,
    message:
      'The server that handled this request stopped or is restarting, and could not finish it. Please send it again in 1s. If part of the response arrived, do not reuse the request’s Idempotency-Key.',
  },
  upstream_credentials_rejected: {
    status: 502,
    type: 'server_error',
    source: 'provider',
    retryable: false,
    signals: 'none',
    action: 'providersUrl',
    message:
      'Every provider rejected the credential that we sent to it, or reported that its credit is used up. Your svc-router key is fine. Tell the operator, or test your own providers to see why:',
  },
  upstream_misconfigured: {
    status: 502,
    type: 'server_error',
    source: 'provider',
    retryable: false,
    signals: 'none',
    action: 'providersUrl',
    message:
      'Every provider reported that its configured model or address does not exist. Your request is fine. Tell the operator, or test and correct your own providers:',
  },
  upstream_timeout: {
    status: 504,
    type: 'server_error',
    source: 'provider',
    retryable: true,
    signals: 'none',
    message:
      'The answer from {profile} was not complete within {seconds}s. Try again, or send a shorter request. If part of the answer arrived, do not reuse the request’s Idempotency-Key.',
  },
  upstream_broken: {
    status: 502,
    type: 'server_error',
    source: 'provider',
    retryable: true,
    signals: 'none',
    message:
      'The response ended before it was complete. Discard any part of it that you received, and send the request again, with a new Idempotency-Key if it had one.',
  },
  answer_interrupted: {
    status: 502,
    type: 'server_error',
    source: 'gateway',
    retryable: false,
    signals: 'none',
    message:
      'The response was interrupted or is no longer stored, so it cannot be continued. Send the request again, with a new Idempotency-Key if it had one.',
  },
  internal_error: {
    status: 500,
    type: 'server_error',
    source: 'gateway',
    retryable: true,
    signals: 'none',
    action: 'supportUrl',
    message:
      'Something went wrong on our side. Please try again. If the error persists, send the value of X-Request-Id to support:',
  },
} as const satisfies Record<string, ErrorEntry>

export type ErrorCode = keyof typeof errorCatalog

/** A per-minute limit other than the plan's, as the `RateLimit` fields name it. */
export interface LimiterWindow {
  readonly name: string
  readonly limit: number
  readonly unit: 'requests' | 'content-bytes'
  /** Unix seconds. */
  readonly endsAt: number
}

/** A key's id and the account that owns it. */
export interface KeyOwner {
  readonly accountId: string
  readonly keyId: string
}

/** A budget that refuses a request. Amounts are in nanodollars, or tokens. */
export interface BudgetFacts extends Pick<
  Budget,
  'scope' | 'subject' | 'unit' | 'window' | 'rolling' | 'limit' | 'setBy'
> {
  readonly spent: number
  readonly held: number
  readonly resetsAtMs: number
}

/** Values for an error's message and body. Clients see them, so they never contain a key, a prompt, or upstream text. */
export interface ErrorFacts {
  /** The request field that caused the error (`error.param`). */
  readonly param?: string
  /** The link at the end of the message, if it is not the catalog's. */
  readonly action?: LinkName
  /** When a retry makes sense, in whole seconds (`Retry-After`, 1–60; contract 4.6). */
  readonly retryAfterSeconds?: number
  /** For `insufficient_quota`: start of the next month in Unix seconds (`error.resets_at`). */
  readonly resetsAt?: number
  /** The counters that refused the request: later ones could contradict the error (contract 5.18). */
  readonly signals?: UsageSignals
  /** For `budget_exceeded` and `budget_held`: the budget and its state in the current window. */
  readonly budget?: BudgetFacts
  /** For `content_rejected`: the status of the upstream's rejection. */
  readonly status?: number
  /** For `server_is_overloaded`: the outcome of each attempt. `passedBy` has the skipped backends: open circuit breaker, or taken out of use by an operator. */
  readonly attempts?: readonly { readonly backend: string; readonly outcome: string }[]
  readonly passedBy?: readonly { readonly backend: string; readonly reason: string }[]
  /** The backend that rejected the request (`X-Svc-Router-Upstream`). */
  readonly upstream?: string
  /** How many backends failed before the last one that was asked (`X-Svc-Router-Retry-Count`). */
  readonly retryCount?: number
  /** The limiter that rejected the request, if other than the plan's per-minute limit; reported in `RateLimit` (contract 5.8). */
  readonly window?: LimiterWindow
  /** For a rejected key: its owner, whose account counts the rejection. Never shown. */
  readonly owner?: KeyOwner
  /** The underlying error, for our log only; never shown. */
  readonly cause?: unknown
  /** Values for the placeholders of the message. */
  readonly words?: Readonly<Record<string, string | number>>
}

/** An expected error. Anything else that is thrown is a bug and is answered as `internal_error`. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  readonly code: ErrorCode
  readonly facts: ErrorFacts
  /** Whether the request was admitted. If so, its record shows how it ended, and it does not count as rejected. */
  isRecorded = false

  constructor(code: ErrorCode, facts: ErrorFacts = {}) {
    super(code, { cause: facts.cause })
    this.code = code
    this.facts = facts
  }

  get entry(): ErrorEntry {
    return errorCatalog[this.code]
  }

  /** The HTTP status: the catalog's, or the upstream's own if its rejection is passed on. */
  get status(): number {
    return this.code === 'content_rejected' ? (this.facts.status ?? 400) : this.entry.status
  }
}

/** An error for a request field (`param`) with a wrong type or value; `problem` is a full sentence. */
export function invalidRequest(param: string, problem: string): ServiceError {
  return new ServiceError('invalid_request', { param, words: { problem } })
}

/** An error for an `item_reference` to an item that the account does not have. The message repeats the id only if it is a plain one, because a client can send anything. */
export function itemNotFound(id: string | undefined): ServiceError {
  const named = id !== undefined && /^[\w-]{1,100}$/.test(id) ? `id '${id}'` : 'the ID in item_reference'
  return new ServiceError('item_not_found', { param: 'input', words: { named } })
}
