import { authentication, type ErrorEntry, forbidden, invalid, limited, unavailable } from './error-entry.ts'

/** Every refusal that the service can give: one row each of contract 4. Statuses, bodies, headers and docs derive from it. */
export const errorCatalog = {
  key_missing: {
    ...authentication,
    action: 'accountSetupUrl',
    message: 'No API key was sent. Send "Authorization: Bearer sk_svc_…". Get a key:',
  },
  key_malformed: {
    ...authentication,
    action: 'accountUrl',
    message: '{reason} Keys of svc-router start with sk_svc_ and have 45 characters. Find yours:',
  },
  key_inactive: {
    ...authentication,
    action: 'accountUrl',
    message:
      'This API key is not active: it is unknown, disabled or expired, or its account is suspended. See your keys:',
  },
  key_revoked: {
    ...authentication,
    action: 'accountUrl',
    message: 'This API key was revoked and will not work again. Create a new one:',
  },
  auth_unavailable: {
    ...unavailable,
    message: 'Your key could not be checked just now. Your key is not at fault; please try again in 1s.',
  },

  duplicate_header: { ...invalid, message: 'The header {header} was sent more than once. Send it once.' },
  invalid_json: { ...invalid, message: 'The body is not valid JSON{where}. Send one JSON object.' },
  invalid_request: { ...invalid, message: '{problem}' },
  unsupported_parameter: { ...invalid, message: '{problem}' },
  reserved_tool_name: { ...invalid, message: 'The tool name {name} belongs to {type}. Choose another one.' },
  previous_response_not_found: {
    ...invalid,
    message:
      'No stored response has the id in previous_response_id, or one before it is gone. Send the whole conversation in input instead.',
  },
  item_not_found: {
    ...invalid,
    status: 404,
    message: 'Item with {named} not found. Send the item itself in input instead of its id.',
  },
  response_not_found: {
    ...invalid,
    status: 404,
    message:
      'There is no stored response with this id. It may have expired, been deleted, or been asked for with "store": false.',
  },
  conversation_not_found: {
    ...invalid,
    status: 404,
    message: 'There is no conversation with this id. It may have expired or been deleted. Create a new one.',
  },
  conversation_item_not_found: {
    ...invalid,
    status: 404,
    message: 'There is no item with this id in the conversation.',
  },
  context_length_exceeded: {
    ...invalid,
    message:
      'The prompt is too long: with the answer that it asks for, it exceeds the context window of every backend of {profile} that could be asked. Shorten the conversation and send it again.',
  },
  content_rejected: {
    ...invalid,
    source: 'provider',
    message:
      'The provider did not accept the content of this request ({said}){rule}. Change the request: the same one will be rejected again.',
  },
  payload_too_large: { ...invalid, status: 413, message: 'The body is larger than {limit}. Send a smaller one.' },
  unsupported_media_type: {
    ...invalid,
    status: 415,
    message:
      'The body must be JSON. Send it with "Content-Type: application/json", uncompressed or with one Content-Encoding of gzip, deflate, br, zstd.',
  },
  headers_too_large: {
    ...invalid,
    status: 431,
    message: 'The headers of this request are too large or too many. Send fewer or shorter ones.',
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
    message: '{problem} Send a POST with "stream": true to {baseUrl}/responses',
  },
  websocket_connection_limit_reached: {
    ...invalid,
    retryable: true,
    message:
      'This WebSocket connection has been open for {minutes} minutes, as long as one may. Open a new one to go on.',
  },
  websocket_queue_full: { ...limited, message: 'Too much waits on this connection. Wait for an answer to end.' },
  not_found: {
    ...invalid,
    status: 404,
    message: '{problem}',
  },
  model_not_found: {
    ...invalid,
    status: 404,
    message: 'There is no profile {named}.{suggestion} Profiles: {profiles}.',
  },

  plan_required: {
    status: 403,
    type: 'permission_error',
    source: 'client',
    retryable: false,
    signals: 'billing',
    action: 'upgradeUrl',
    message: '{what} needs a premium plan; this account is on {plan}. Upgrade:',
  },
  key_profile_not_allowed: {
    ...forbidden,
    action: 'keysUrl',
    message: '{what} is not among what this API key may use: {profiles}. Use one of these, or change the key’s limits:',
  },
  key_address_not_allowed: {
    ...forbidden,
    action: 'keysUrl',
    message: 'This API key may not be used from the address {address}. Allow it among the key’s limits:',
  },
  no_provider_connected: {
    ...forbidden,
    action: 'accountUrl',
    message: 'No provider is connected for {profile}. Add your own provider credentials:',
  },
  rate_limit_exceeded: {
    ...limited,
    message:
      '{limit} requests a minute are allowed on {plan}, and this minute is used up. Please try again in {seconds}s.',
  },
  too_many_fusions: { ...limited, message: '{plan} allows {limit} fusions at once. Please try again in {seconds}s.' },
  insufficient_quota: {
    status: 402,
    type: 'insufficient_quota',
    source: 'client',
    retryable: false,
    signals: 'billing',
    action: 'upgradeUrl',
    message: 'The monthly quota is used up: {used} of {limit} on {plan}. It resets on {resetsOn}. Upgrade:',
  },
  '1010': {
    status: 403,
    type: 'edge_error',
    source: 'edge',
    retryable: false,
    signals: 'none',
    action: 'docsUrl',
    message: '{problem} (1010). Send a descriptive User-Agent, for example "my-app/1.0 (me@example.com)". More:',
  },
  server_is_overloaded: {
    ...unavailable,
    source: 'provider',
    message: 'No backend of {profile} could answer just now. Please try again in {seconds}s.',
  },
  record_unavailable: {
    ...unavailable,
    message: 'This request could not be recorded, so it was not answered and not counted. Please try again in 1s.',
  },
  store_unavailable: {
    ...unavailable,
    message:
      'What is kept for this account could not be read just now. This request was not counted. Please try again in 1s.',
  },
  server_busy: {
    ...unavailable,
    message:
      'This server has as many requests under way as it can hold, or as it can hold for one account. Please try again in 1s.',
  },
  restarting: {
    ...unavailable,
    message: 'This server is restarting and could not finish the answer. Please send the request again in 1s.',
  },
  upstream_credentials_rejected: {
    status: 502,
    type: 'server_error',
    source: 'provider',
    retryable: false,
    signals: 'none',
    action: 'accountUrl',
    message:
      'Every provider rejected the provider credentials of this account. Your svc-router key is fine. Replace them:',
  },
  upstream_misconfigured: {
    status: 502,
    type: 'server_error',
    source: 'provider',
    retryable: false,
    signals: 'none',
    action: 'accountUrl',
    message:
      'No provider knows the model or the address that it is configured with. Your request is fine. Correct the providers:',
  },
  upstream_timeout: {
    status: 504,
    type: 'server_error',
    source: 'provider',
    retryable: true,
    signals: 'none',
    message:
      'No backend of {profile} answered before the deadline of {seconds}s. Try again, or send a shorter request.',
  },
  upstream_broken: {
    status: 502,
    type: 'server_error',
    source: 'provider',
    retryable: true,
    signals: 'none',
    message:
      'The answer broke off before it was complete. What arrived is not the whole answer; please send the request again.',
  },
  internal_error: {
    status: 500,
    type: 'server_error',
    source: 'gateway',
    retryable: true,
    signals: 'none',
    action: 'supportUrl',
    message: 'Something went wrong on our side. Tell us the request id:',
  },
} as const satisfies Record<string, ErrorEntry>

export type ErrorCode = keyof typeof errorCatalog

/** A limit for one minute besides the plan's, as the `RateLimit` fields name it. */
export interface LimiterWindow {
  readonly name: string
  readonly limit: number
  readonly unit: 'requests' | 'content-bytes'
  /** Unix seconds. */
  readonly endsAt: number
}

/** The account that a key belongs to, and the key's id. */
export interface KeyOwner {
  readonly accountId: string
  readonly keyId: string
}

/** What an error's message and body are filled with: shown to the caller, so never a key, a prompt or an upstream's text. */
export interface ErrorFacts {
  /** The request field at fault (`error.param`). */
  readonly param?: string
  /** Whole seconds after which a retry makes sense: `Retry-After`, 1–60. */
  readonly retryAfterSeconds?: number
  /** For `insufficient_quota`: Unix seconds of the next month (`error.resets_at`). */
  readonly resetsAt?: number
  /** The status of the upstream's own refusal, for `content_rejected`. */
  readonly status?: number
  /** For `server_is_overloaded`: categories of the attempts made, and why others were not: an open circuit breaker, or an operator. */
  readonly attempts?: readonly { readonly backend: string; readonly outcome: string }[]
  readonly passedBy?: readonly { readonly backend: string; readonly reason: string }[]
  /** The backend whose own refusal this is (`X-Svc-Router-Upstream`). */
  readonly upstream?: string
  /** How many backends failed before this error was final (`X-Svc-Router-Retry-Count`). */
  readonly retryCount?: number
  /** The limiter that refused where it is not the plan's minute: what `RateLimit` then says (contract 5.8). */
  readonly window?: LimiterWindow
  /** Whose key was sent, where the key itself is refused: the refusal is counted for that account; never shown. */
  readonly owner?: KeyOwner
  /** What led to it, for our own log; never shown. */
  readonly cause?: unknown
  /** Values for the placeholders of the message. */
  readonly words?: Readonly<Record<string, string | number>>
}

/** An expected refusal. Whatever else is thrown is a bug and is answered as `internal_error`. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  readonly code: ErrorCode
  readonly facts: ErrorFacts
  /** Whether the request was admitted: its record then says how it ended, and it is not counted as refused. */
  isRecorded = false

  constructor(code: ErrorCode, facts: ErrorFacts = {}) {
    super(code, { cause: facts.cause })
    this.code = code
    this.facts = facts
  }

  get entry(): ErrorEntry {
    return errorCatalog[this.code]
  }

  /** The HTTP status: the catalogue's, except where the upstream's own refusal is passed on. */
  get status(): number {
    return this.code === 'content_rejected' ? (this.facts.status ?? 400) : this.entry.status
  }
}

/** A request whose field `param` has the wrong type or value; `problem` is a full sentence. */
export function invalidRequest(param: string, problem: string): ServiceError {
  return new ServiceError('invalid_request', { param, words: { problem } })
}

/** An `item_reference` to an item that the account does not have. The id is the caller's own, but could hold anything: only a plain one is repeated. */
export function itemNotFound(id: string | undefined): ServiceError {
  const named = id !== undefined && /^[\w-]{1,100}$/.test(id) ? `id '${id}'` : 'the id in item_reference'
  return new ServiceError('item_not_found', { param: 'input', words: { named } })
}
