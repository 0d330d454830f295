import { rescueModes, routingSorts } from '../domain/routing-policy.ts'
import { conversationOperations, paging } from './conversation-operations.ts'
import type { ApiOperation } from './operation.ts'
import { selfServiceOperations } from './self-service-operations.ts'

const profile = 'svc-router/frontier'
const model = { type: 'string', description: 'A profile, such as `svc-router/frontier`.' }
const stream = {
  type: ['boolean', 'null'],
  default: false,
  description: 'Stream the answer as server-sent events.',
}
const toolsDescription = 'Tools for the model. `{"type": "svc-router:fusion"}` requires a premium plan.'
const tools = { type: ['array', 'null'], items: { type: 'object' }, description: toolsDescription }
const namedTools = {
  ...tools,
  items: { type: 'object', anyOf: [{ required: ['name'] }, { required: ['type'] }] },
}
const messages = {
  type: 'array',
  items: { type: 'object', required: ['role'], properties: { role: { type: 'string' } } },
  description: 'The conversation, oldest first.',
}
const items = { type: 'array', items: { type: 'object', anyOf: [{ required: ['type'] }, { required: ['role'] }] } }
const inputDescription = 'Text, or the items of the conversation.'
const input = { anyOf: [{ type: 'string' }, items, { type: 'null' }], description: inputDescription }
const filledInput = { anyOf: [{ type: 'string' }, { ...items, minItems: 1 }], description: inputDescription }
const previous = { type: ['string', 'null'], description: 'The stored response to continue from.' }
const names = { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1 }
const amount = { type: ['number', 'null'], minimum: 0 }
const routing = {
  type: ['object', 'null'],
  properties: {
    sort: { enum: [...routingSorts, null], description: 'How to choose among the backends.' },
    order: { ...names, description: 'Backends or models to try first, in this order.' },
    only: { ...names, description: 'Excludes all other backends or models.' },
    ignore: { ...names, description: 'Excludes these backends or models.' },
    regions: { ...names, description: 'Requires one of these regions.' },
    zero_retention: { type: ['boolean', 'null'], description: 'Whether to require zero retention.' },
    max_price: {
      type: ['object', 'null'],
      properties: { input: amount, output: amount },
      description: 'The highest price, in US dollars per million tokens.',
    },
    rescue: {
      enum: [...rescueModes, null],
      description: 'Whether another backend continues a stream that breaks off.',
    },
  },
  additionalProperties: false,
  description: 'Preferences for choosing a backend. Never sent to a provider.',
}
const attachedTools = {
  name: 'X-Svc-Router-Tools',
  in: 'header',
  description: 'A header: `svc-router:fusion` attaches that tool, with optional `;mode=` and `;preset=`.',
  schema: { type: 'string' },
} as const
const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'Identifies the request: 1 to 255 characters, for example a random UUID. A retry with the same key and body gets the same answer and costs nothing.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
} as const
const lastEventId = {
  name: 'Last-Event-ID',
  in: 'header',
  description:
    'With an `Idempotency-Key`: the `id` of the last event that was received. The stream continues after it.',
  schema: { type: 'string' },
} as const
const streamed = {
  name: 'stream',
  in: 'query',
  description: '`true` streams the events.',
  schema: { type: 'boolean' },
} as const
const startingAfter = {
  name: 'starting_after',
  in: 'query',
  description: 'With `stream=true`: the `sequence_number` of the last event that was received.',
  schema: { type: 'integer', minimum: 0 },
} as const
const background = {
  type: ['boolean', 'null'],
  description: 'Whether to return at once and answer in the background. Poll the response, or stream its events.',
}
const retries = [idempotencyKey, lastEventId]
const responseId = {
  name: 'response_id',
  in: 'path',
  description: 'The ID of a response.',
  schema: { type: 'string' },
} as const

const conversation = {
  anyOf: [
    { type: 'string', minLength: 1 },
    { type: 'object', required: ['id'], properties: { id: { type: 'string', minLength: 1 } } },
    { type: 'null' },
  ],
  description: 'The conversation to continue. Input and output are appended to it.',
}
const asked = { access: 'key', errorCodes: 'model' } as const
const read = { access: 'key', errorCodes: 'lookup' } as const
const open = { access: 'public', errorCodes: 'public' } as const

/** Every operation of the API. A test compares it with the routes. */
export const apiOperations: readonly ApiOperation[] = [
  {
    ...asked,
    method: 'post',
    path: '/v1/chat/completions',
    id: 'createChatCompletion',
    summary: 'Chat completions',
    description: 'Answers a conversation, like OpenAI’s chat completions.',
    parameters: [attachedTools, ...retries],
    body: {
      required: ['model', 'messages'],
      fields: { model, messages, tools, stream, routing },
      example: { model: profile, messages: [{ role: 'user', content: 'Hello!' }] },
    },
    answer: 'A chat completion; with `stream`, its chunks and then `[DONE]`.',
    streams: true,
  },
  {
    ...asked,
    method: 'post',
    path: '/v1/responses',
    id: 'createResponse',
    summary: 'Responses',
    description:
      'Answers a conversation, like OpenAI’s Responses. Responses are stored unless `store` is false. A GET with `Upgrade: websocket` opens a connection for many requests.',
    parameters: [attachedTools, ...retries],
    body: {
      required: ['model'],
      fields: {
        model,
        input,
        tools,
        stream,
        background,
        store: {
          type: ['boolean', 'null'],
          default: true,
          description: 'Store the response, to read it or continue from it.',
        },
        previous_response_id: previous,
        conversation,
        routing,
      },
      example: { model: profile, input: 'Hello!' },
    },
    answer: 'A response; with `stream`, its events and then `[DONE]`.',
    streams: true,
  },
  {
    ...asked,
    method: 'post',
    path: '/v1/messages',
    id: 'createMessage',
    summary: 'Messages',
    description: 'Answers a conversation, like Anthropic’s Messages. You can send the key as `x-api-key`.',
    parameters: [attachedTools, ...retries],
    body: {
      required: ['model', 'messages'],
      fields: {
        model,
        max_tokens: { type: ['integer', 'null'], minimum: 0, description: 'The longest answer, in tokens.' },
        messages,
        tools: namedTools,
        stream,
        routing,
      },
      example: { model: profile, max_tokens: 1024, messages: [{ role: 'user', content: 'Hello!' }] },
    },
    answer: 'A message; with `stream`, its events.',
    streams: true,
  },
  {
    ...read,
    method: 'post',
    path: '/v1/messages/count_tokens',
    id: 'countMessageTokens',
    summary: 'Count tokens of a message',
    description: 'Estimates the size of a request in tokens. Free; no provider is called.',
    parameters: [attachedTools, ...retries],
    body: {
      required: ['model', 'messages'],
      fields: { model, messages, tools: namedTools },
      example: { model: profile, messages: [{ role: 'user', content: 'Hello!' }] },
    },
    answer: 'The estimate, as `input_tokens`.',
  },
  {
    ...asked,
    method: 'post',
    path: '/v1/completions',
    id: 'createCompletion',
    summary: 'Text completions',
    description:
      'Continues a prompt, like OpenAI’s legacy completions. Requests are relayed to servers that have this endpoint. For other servers, the prompt becomes a user message, and `suffix`, `echo`, `best_of`, `logprobs`, several prompts, and token prompts are rejected.',
    body: {
      required: ['model', 'prompt'],
      fields: {
        model,
        prompt: {
          anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' }, minItems: 1 }],
          description: 'Text. Servers that have this endpoint also accept several texts, or lists of token IDs.',
        },
        stream,
      },
      example: { model: profile, prompt: 'Once upon a time' },
    },
    answer: 'A text completion; with `stream`, its chunks and then `[DONE]`.',
    streams: true,
  },
  {
    ...asked,
    method: 'post',
    path: '/v1/embeddings',
    id: 'createEmbeddings',
    summary: 'Embeddings',
    description: 'Converts texts to vectors. Requires a profile whose `kind` is `embeddings`.',
    body: {
      required: ['model', 'input'],
      fields: {
        model,
        input: {
          anyOf: [{ type: 'string' }, { type: 'array', minItems: 1 }],
          description: 'One or several texts, or tokens.',
        },
      },
      example: { model: 'svc-router/embeddings', input: ['The cat sleeps.'] },
    },
    answer: 'One vector per text.',
  },
  {
    ...read,
    method: 'get',
    path: '/v1/models',
    id: 'listModels',
    summary: 'Models',
    description: 'Lists the profiles that your key can use. Use it to test a key.',
    answer: 'The list, in a form that OpenAI clients, Anthropic clients, and Codex can read.',
  },
  {
    ...read,
    method: 'get',
    path: '/v1/models/{model}',
    id: 'getModel',
    summary: 'One model',
    description: 'Retrieves one profile, with the same fields as in the list.',
    parameters: [
      {
        name: 'model',
        in: 'path',
        description: 'A profile. The slash can be percent-encoded.',
        schema: { type: 'string' },
      },
    ],
    answer: 'The profile.',
  },
  {
    ...read,
    method: 'get',
    path: '/v1/responses/{response_id}',
    id: 'getResponse',
    summary: 'Get a stored response',
    description:
      'Retrieves a stored response, or one that runs in the background. With `stream=true`, streams the events of a response that was created with `stream` and `background` or an `Idempotency-Key`.',
    parameters: [responseId, streamed, startingAfter],
    answer: 'The response as it was delivered. While it runs in the background: its current state.',
  },
  {
    ...read,
    method: 'delete',
    path: '/v1/responses/{response_id}',
    id: 'deleteResponse',
    summary: 'Delete a stored response',
    description: 'Deletes a stored response. Requests can no longer continue from it.',
    parameters: [responseId],
    answer: 'The ID and `deleted`.',
  },
  {
    ...read,
    method: 'get',
    path: '/v1/responses/{response_id}/input_items',
    id: 'listInputItems',
    summary: 'List the input items of a response',
    description: 'Lists the input items of a stored response.',
    parameters: [responseId, ...paging],
    answer: 'A page of the list.',
  },
  {
    ...read,
    method: 'post',
    path: '/v1/responses/{response_id}/cancel',
    id: 'cancelResponse',
    summary: 'Cancel a response',
    description:
      'Cancels a background response. To stop a response that is not in the background, close its connection.',
    parameters: [responseId],
    answer: 'The response with the status `cancelled`. A response that had already ended is returned unchanged.',
  },
  {
    ...read,
    method: 'post',
    path: '/v1/responses/input_tokens',
    id: 'countInputTokens',
    summary: 'Count tokens of an input',
    description: 'Estimates the size of a request in tokens. Free; no provider is called.',
    body: {
      required: [],
      fields: { model, input, tools, previous_response_id: previous, conversation },
      example: { model: profile, input: 'Hello!' },
    },
    answer: 'The estimate, as `input_tokens`.',
  },
  {
    ...read,
    method: 'post',
    path: '/v1/route',
    id: 'explainRoute',
    summary: 'Explain a route',
    description:
      'Shows which backends a request would get, and why. Takes the body of chat completions, Responses, or, with `anthropic-version`, Messages. Free; no provider is called.',
    body: {
      required: ['model'],
      fields: { model, input, routing },
      example: { model: profile, input: 'Hello!' },
    },
    answer: 'The backends in order, and those that are left out, with reasons.',
  },
  {
    ...asked,
    method: 'post',
    path: '/v1/responses/compact',
    id: 'compactResponse',
    summary: 'Compact a conversation',
    description:
      'Has a model summarize a conversation so that you can continue it with fewer tokens. Counts as a request.',
    body: {
      required: ['model', 'input'],
      fields: { model, input: filledInput, previous_response_id: previous, conversation },
      example: { model: profile, input: 'Hello!' },
    },
    answer: 'The compacted conversation, to send as input.',
  },
  ...conversationOperations,
  ...selfServiceOperations,
  {
    ...open,
    method: 'get',
    path: '/model-catalog',
    id: 'getModelCatalog',
    summary: 'Catalog',
    description: 'Lists the available profiles. Using them requires a key.',
    answer: 'The profiles and their capabilities.',
  },
  {
    ...open,
    method: 'get',
    path: '/pricing',
    id: 'getPricing',
    summary: 'Plans',
    description: 'Lists the plans and their limits, and says whether managed access is on.',
    answer: 'The plans and limits.',
  },
  {
    ...open,
    method: 'get',
    path: '/health',
    id: 'getHealth',
    summary: 'Health',
    description: 'For liveness probes.',
    answer: '`{"status": "ok"}`',
  },
  {
    ...open,
    method: 'get',
    path: '/ready',
    id: 'getReadiness',
    summary: 'Readiness',
    description: 'For load balancers. The status is 503 if new requests should go elsewhere.',
    answer: '`{"ready": true, "reasons": []}`.',
  },
  {
    ...open,
    method: 'head',
    path: '/',
    id: 'probe',
    summary: 'Check that the server is up',
    description: 'Agents send this before their first request.',
    answer: 'The status only.',
  },
]
