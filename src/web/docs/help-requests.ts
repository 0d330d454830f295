import type { ErrorHelp } from './error-help-entry.ts'

const api = { path: '/docs/api', name: 'API reference' } as const
const clients = { path: '/docs/clients', name: 'Clients' } as const

/** Errors in the request itself. These requests are not counted. */
export const requestHelp = {
  duplicate_header: {
    why: 'A header that may be sent only once, such as `Authorization`, `Content-Length`, or `Idempotency-Key`, appeared twice, so its value is ambiguous.',
    fix: ['Look for a proxy or an HTTP library default that adds the header a second time.', 'Send the header once.'],
    example: { param: 'authorization', words: { header: 'authorization' } },
  },
  invalid_json: {
    why: 'The body is not a single JSON object in UTF-8.',
    fix: [
      'If the message says why, fix that. Otherwise, check the syntax. Common causes are shell quoting, a trailing comma, and a truncated body.',
      'Use a JSON library instead of building the JSON from strings.',
    ],
    example: { words: { where: ': it ended early' } },
  },
  invalid_request: {
    why: 'A field is missing, or has a type or value that this endpoint does not accept. `error.param` names the field. Unknown fields do not cause this error, except in `routing` and in the `parameters` of the fusion tool, or if their names differ from known ones only in case, such as `Model`.',
    fix: ['Compare the field with the API reference for the endpoint.'],
    at: api,
    example: { param: 'messages', words: { problem: 'messages must be an array.' } },
  },
  unsupported_parameter: {
    why: 'The request uses a feature that no backend of this profile supports, or one that a budget or managed access rules out. We reject the request rather than silently ignore the feature.',
    fix: [
      'Do what the message says. Usually you can remove the field that `error.param` names, or use another profile.',
    ],
    at: { path: '/models', name: 'Models' },
    example: {
      param: 'n',
      words: { problem: 'The backends of this profile return one answer per request. Set n to 1, or leave it out.' },
    },
  },
  no_backend_matches: {
    why: 'The request or its profile has requirements, such as a region, zero retention, or a price cap, and the configuration of the service does not list a backend for your account that meets all of them. The message says how many backends each requirement excludes. A requirement excludes every backend that is not configured to meet it.',
    fix: [
      'Remove or relax a requirement in the `routing` field of the request.',
      'Send the same body to `/v1/route` to see which requirement excludes which backend.',
      'If the requirement is in the configuration of the profile, use another profile, or ask the operator to change it.',
    ],
    at: { path: '/docs/routing', name: 'Routing' },
    example: {
      param: 'routing',
      words: { profile: 'svc-router/frontier', reasons: '2 not declared to have zero retention' },
    },
  },
  reserved_tool_name: {
    why: 'One of your tools has the name `svc_router_fusion`. The model sees the tool `svc-router:fusion` under that name, and could not tell the two apart.',
    fix: ['Rename your tool.', 'Or remove `svc-router:fusion`.'],
    example: { param: 'tools', words: { name: 'svc_router_fusion', type: 'svc-router:fusion' } },
  },
  idempotency_key_reused: {
    why: 'An earlier request from this account had the same `Idempotency-Key`, but a different path or body, or a different header that affects the answer. Each `Idempotency-Key` identifies one request.',
    fix: [
      'To retry, send exactly the same request again. The body must have the same bytes.',
      'For a different request, use a new `Idempotency-Key`, such as a random UUID.',
    ],
    at: api,
    example: {},
  },
  previous_response_not_found: {
    why: 'The previous response, or an earlier one in its chain, is not stored: it was created with `"store": false`, was deleted, has expired, or belongs to another account.',
    fix: ['Send the whole conversation in `input`.', 'To continue by ID next time, do not set `"store": false`.'],
    example: { param: 'previous_response_id' },
  },
  item_not_found: {
    why: 'The request refers to an item of an earlier response by its ID, but that response is not stored.',
    fix: [
      'Send the item itself in `input`.',
      'In the AI SDK, set `store: false`. The SDK then sends the items itself.',
    ],
    at: clients,
    example: { param: 'input', words: { named: "id 'msg_0123456789abcdef'" } },
  },
  response_not_found: {
    why: 'This account has no stored response with this ID. Responses are stored for 30 days unless the operator configures another period.',
    fix: ['Check the ID, and that the key belongs to the account that created the response.'],
    example: {},
  },
  conversation_not_found: {
    why: 'This account has no conversation with this ID. Conversations are deleted 30 days after their last use, unless the operator configures another period.',
    fix: ['Check the ID, and that the key belongs to the account that created it.', 'Or create a new conversation.'],
    example: {},
  },
  conversation_item_not_found: {
    why: 'The conversation exists but has no item with this ID. The item was deleted or belongs to another conversation.',
    fix: ['List the items of the conversation to see their IDs.'],
    example: {},
  },
  request_not_found: {
    why: 'This account has no record of a request with this ID. Records are stored for 90 days unless the operator configures another period. Requests that the service did not accept, such as those with an invalid key, are not recorded.',
    fix: ['Check the ID in the response header `X-Request-Id`.', 'Use a key from the account that sent the request.'],
    at: { path: '/activity', name: 'Activity' },
    example: {},
  },
  context_length_exceeded: {
    why: 'The conversation and the requested output together exceed the context window of every available backend of this profile.',
    fix: [
      'Shorten the conversation: remove or summarize early turns and large tool results. Or lower the output limit.',
      'To find a profile with a larger context window, see each profile’s page.',
    ],
    at: { path: '/models', name: 'Models' },
    example: { words: { profile: 'svc-router/frontier' } },
  },
  content_rejected: {
    why: 'The provider rejected the content: a field it does not accept, a file it cannot read, or content that its rules forbid. Except for a rejected JSON schema and in a fusion, we ask no other provider after a rejection. Our response has the status of the provider’s response, or 400 if that was a server error or the decision of a content filter.',
    fix: ['Change what the message or `error.param` points to. The same request will fail again.'],
    example: {
      status: 400,
      param: 'messages[0].content',
      upstream: 'openai-main',
      words: { said: ' (HTTP status 400)', rule: ': it could not read an image' },
    },
  },
  payload_too_large: {
    why: 'The body is larger than the service accepts.',
    fix: [
      'If the endpoint accepts URLs, send large files as URLs. Otherwise, send smaller files.',
      'Remove early turns of a long conversation.',
    ],
    example: { words: { limit: '5 MiB' } },
  },
  unsupported_media_type: {
    why: 'The `Content-Type` is not JSON or names a charset other than UTF-8, or the `Content-Encoding` is not supported, or there is more than one encoding.',
    fix: ['Send `Content-Type: application/json`, uncompressed or compressed with gzip, deflate, br, or zstd.'],
    at: api,
    example: { param: 'content-type' },
  },
  headers_too_large: {
    why: 'The headers exceed the size limit. Common causes are cookies from another site and a token repeated in a header.',
    fix: ['Send only the headers that the request needs.'],
    example: {},
  },
  request_timeout: {
    why: 'The headers or the body did not arrive in time. The connection is slow, or the sender stopped partway.',
    fix: [
      'Send the request again. The failed request was not counted.',
      'If the error persists, look for a proxy that delays requests, or send a smaller body.',
    ],
    example: { words: { seconds: 60 } },
  },
  method_not_allowed: {
    why: 'The path exists but does not support this method.',
    fix: ['Use a method that the message or the `Allow` header names.'],
    at: api,
    example: { words: { method: 'GET', allowed: 'POST' } },
  },
  upgrade_required: {
    why: 'A WebSocket could not be opened: the account or the server has reached its limit on WebSockets, or this path does not support them. The message says which.',
    fix: [
      'If a limit was reached, close unused connections. Otherwise, connect to `/v1/responses`.',
      'Or use HTTP with `"stream": true`.',
    ],
    at: clients,
    example: {
      words: {
        problem: 'This account has reached its limit of 256 open WebSockets.',
        baseUrl: 'https://api.example.com/v1',
      },
    },
  },
  websocket_connection_limit_reached: {
    why: 'The WebSocket connection has been open for an hour, the maximum. The limit allows us to replace servers without interrupting responses.',
    fix: [
      'Open a new connection. It cannot continue from responses that were not stored, so send the whole conversation once.',
    ],
    at: clients,
    example: { words: { minutes: 60 } },
  },
  websocket_queue_full: {
    why: 'The requests queued on this WebSocket are too numerous or too large, or all WebSockets of your account together hold too much data. In the last case, we close the connection. A WebSocket answers one request at a time.',
    fix: [
      'Wait for a response to finish before you send more requests.',
      'If the connection was closed, open a new one and send the requests one at a time.',
    ],
    at: clients,
    example: {},
  },
  not_found: {
    why: 'Nothing exists at this path. Usually the base URL contains `/v1` twice or not at all. If this service does not offer the endpoint, the message says so. OpenAI clients need `/v1` in the base URL; Anthropic clients add it themselves.',
    fix: [
      'Compare your base URL with the one in the message.',
      'The page for your client shows the base URL it needs.',
    ],
    at: { path: '/connect', name: 'Connect a client' },
    example: {
      words: {
        problem: 'There is nothing at this path. The base URL of the API is https://api.example.com/v1',
      },
    },
  },
  model_not_found: {
    why: 'The `model` field must name a profile of this service, and no profile has the name that you sent. Providers’ own model names do not work here.',
    fix: [
      'Use one of the names in the message. If one is close to yours, the message suggests it.',
      'If your agent uses a second model for background work, set that model too.',
    ],
    at: { path: '/models', name: 'Models' },
    example: {
      param: 'model',
      words: {
        named: '"svc-router/fronteir"',
        suggestion: ' Did you mean "svc-router/frontier"?',
        profiles: 'svc-router/frontier, svc-router/fusion',
      },
    },
  },
} as const satisfies Readonly<Record<string, ErrorHelp>>
