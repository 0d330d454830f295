import type { ErrorHelp } from './error-help.ts'

const api = { path: '/docs/api', name: 'API reference' } as const
const clients = { path: '/docs/clients', name: 'Clients' } as const

/** What is wrong with a request itself. Nothing of it is counted. */
export const requestHelp = {
  duplicate_header: {
    why: 'A header that says who asks, or how long the body is, came twice. Which of the two is meant cannot be known.',
    mend: ['Look for a proxy, or a default of your HTTP library, that adds the header once more.', 'Send it once.'],
    example: { param: 'authorization', words: { header: 'authorization' } },
  },
  invalid_json: {
    why: 'The body cannot be read as one JSON object in UTF-8.',
    mend: [
      'Look at the place that the message names: often a quote of the shell, a comma too many, or a body that was cut.',
      'Let your language write the JSON instead of putting it together as text.',
    ],
    example: { words: { where: ': it ended early' } },
  },
  invalid_request: {
    why: 'A field is missing, or has a type or a value that this endpoint does not take. `error.param` names it. Fields that we do not know are no fault.',
    mend: ['Compare the field with the reference of the endpoint.'],
    at: api,
    example: { param: 'messages', words: { problem: 'messages must be an array.' } },
  },
  unsupported_parameter: {
    why: 'The request asks for something that none of the providers behind this profile can be asked for. It would have been left out without a word, so it is refused instead.',
    mend: ['Leave out the field that `error.param` names, or ask for another profile.'],
    at: { path: '/models', name: 'Models' },
    example: { param: 'n', words: { problem: 'n above 1 cannot be served by this profile. Leave it out.' } },
  },
  reserved_tool_name: {
    why: 'The request attaches `svc-router:fusion`, which the model sees under a name of ours, and a tool of yours has that name. The two could not be told apart.',
    mend: ['Give your tool another name.', 'Or leave `svc-router:fusion` out.'],
    example: { param: 'tools', words: { name: 'svc_router_fusion', type: 'svc-router:fusion' } },
  },
  previous_response_not_found: {
    why: 'The answer to go on from is not kept: it was made with `"store": false`, deleted, has expired, or belongs to another account.',
    mend: [
      'Send the whole conversation in `input`.',
      'To go on by id next time, let answers be stored: that is the default.',
    ],
    example: { param: 'previous_response_id' },
  },
  item_not_found: {
    why: 'The request refers to an item of an earlier answer by its id, and that answer is not kept here.',
    mend: ['Send the item itself in `input`.', 'In the AI SDK `store: false` does that for you.'],
    at: clients,
    example: { param: 'input', words: { named: "id 'msg_0123456789abcdef'" } },
  },
  response_not_found: {
    why: 'No answer of this account is kept under this id. Answers are kept for 30 days unless the operator says otherwise.',
    mend: ['Check the id, and that the key is of the account that asked.'],
    example: {},
  },
  conversation_not_found: {
    why: 'This account has no conversation with this id. Conversations are deleted when they were not used for as long as responses are stored: 30 days unless the operator says otherwise.',
    mend: ['Check the id, and that the key belongs to the account that created it.', 'Or create a new conversation.'],
    example: {},
  },
  conversation_item_not_found: {
    why: 'The conversation exists, but it has no item with this id: the item was deleted, or belongs to another conversation.',
    mend: ['List the items of the conversation to see their ids.'],
    example: {},
  },
  context_length_exceeded: {
    why: 'The conversation is longer than any model behind this profile can read. Before this was said, models with larger windows were tried.',
    mend: [
      'Shorten the conversation: leave out early turns and large tool results, or sum them up.',
      'Each profile’s page says how much it takes.',
    ],
    at: { path: '/models', name: 'Models' },
    example: { words: { profile: 'svc-router/frontier' } },
  },
  content_rejected: {
    why: 'The provider looked at the content and refused it: a field that it does not take, a file that it cannot read, or something that its rules forbid. Another provider would not be sent the same content.',
    mend: ['Change what the message or `error.param` points at. The same request will be refused again.'],
    example: { status: 422, param: 'messages[0].content', upstream: 'openai-main' },
  },
  payload_too_large: {
    why: 'The body has more bytes than the service takes.',
    mend: [
      'Send large files by their URL, where the endpoint takes one, or smaller ones.',
      'Leave out early turns of a long conversation.',
    ],
    example: { words: { limit: '32 MiB' } },
  },
  unsupported_media_type: {
    why: 'The body is not JSON by its `Content-Type`, or its `Content-Encoding` is one that is not read, or several.',
    mend: ['Send `Content-Type: application/json`, uncompressed or with one of gzip, deflate, br and zstd.'],
    at: api,
    example: { param: 'content-type' },
  },
  headers_too_large: {
    why: 'The headers together are longer than the service reads. Cookies of another site, or a token put into a header twice, are the usual reasons.',
    mend: ['Send only the headers that the request needs.'],
    example: {},
  },
  request_timeout: {
    why: 'The headers or the body did not arrive in time. The connection is slow, or the sender stopped in the middle.',
    mend: [
      'Send it again. Nothing was counted.',
      'If it stays, look for a proxy that holds requests back, or send a smaller body.',
    ],
    example: { words: { seconds: 60 } },
  },
  method_not_allowed: {
    why: 'The path is right, the method is not.',
    mend: ['Use the method that the message and the header `Allow` name.'],
    at: api,
    example: { words: { method: 'GET', allowed: 'POST' } },
  },
  upgrade_required: {
    why: 'A WebSocket could not be opened: the account has as many as it may, or the request was no upgrade.',
    mend: ['Use HTTP with `"stream": true`: everything works there, too.', 'Close connections that are not used.'],
    at: clients,
    example: {
      words: {
        problem: 'This account has as many WebSocket connections as it may.',
        baseUrl: 'https://api.example.com/v1',
      },
    },
  },
  websocket_connection_limit_reached: {
    why: 'A WebSocket lasts an hour, so that servers can be changed without cutting answers.',
    mend: [
      'Open a new connection and go on. Answers that are not stored are not known there: send the whole conversation once.',
    ],
    at: clients,
    example: { words: { minutes: 60 } },
  },
  websocket_queue_full: {
    why: 'One connection answers its messages one after the other, and too many are waiting already.',
    mend: ['Wait for an answer to end before you send more, or open another connection.'],
    at: clients,
    example: { retryAfterSeconds: 1 },
  },
  not_found: {
    why: 'Nothing is served at this path. Either it is an endpoint of another API that this service does not have, which the message then names, or the base URL is wrong: it has `/v1` twice, or not at all: OpenAI’s clients want it in the base URL, Anthropic’s add it themselves.',
    mend: [
      'Compare your base URL with the one in the message.',
      'The page of your client shows it as that client wants it.',
    ],
    at: { path: '/connect', name: 'Connect a client' },
    example: {
      words: {
        problem: 'There is nothing at this path. The base URL of the API is https://api.example.com/v1',
      },
    },
  },
  model_not_found: {
    why: 'The `model` of a request names a profile of this service, and there is none of that name. Names of providers’ models are not known here.',
    mend: [
      'Use one of the names in the message. Where one is close to yours, it is suggested.',
      'Agents that ask for another model for their background work need that set, too.',
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
