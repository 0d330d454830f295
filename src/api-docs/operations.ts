import type { ApiOperation } from './operation.ts'
import { conversationOperations, paging } from './conversation-operations.ts'

const profile = 'svc-router/frontier'
const model = { type: 'string', description: 'A profile, such as `svc-router/frontier`.' }
const stream = {
  type: ['boolean', 'null'],
  default: false,
  description: 'Whether the answer comes as server-sent events.',
}
const toolsDescription = 'Tools that the model may call. `{"type": "svc-router:fusion"}` is premium.'
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
const inputDescription = 'A text, or the items of the conversation.'
const input = { anyOf: [{ type: 'string' }, items, { type: 'null' }], description: inputDescription }
const filledInput = { anyOf: [{ type: 'string' }, { ...items, minItems: 1 }], description: inputDescription }
const previous = { type: ['string', 'null'], description: 'Goes on from a stored answer.' }
const attachedTools = {
  name: 'X-Svc-Router-Tools',
  in: 'header',
  description:
    'A header: `svc-router:fusion` attaches that tool as if it stood in `tools`. `;mode=` and `;preset=` may follow.',
  schema: { type: 'string' },
} as const
const responseId = {
  name: 'response_id',
  in: 'path',
  description: 'The id of an answer.',
  schema: { type: 'string' },
} as const

const conversation = {
  anyOf: [
    { type: 'string', minLength: 1 },
    { type: 'object', required: ['id'], properties: { id: { type: 'string', minLength: 1 } } },
    { type: 'null' },
  ],
  description: 'The conversation to continue. Its items come before `input`; input and output are added to it.',
}
const asked = { access: 'key', errorCodes: 'model' } as const
const read = { access: 'key', errorCodes: 'lookup' } as const
const open = { access: 'public', errorCodes: 'public' } as const

/** Every operation of the API. A test holds it against the routes that are served. */
export const apiOperations: readonly ApiOperation[] = [
  {
    ...asked,
    method: 'post',
    path: '/v1/chat/completions',
    id: 'createChatCompletion',
    summary: 'Chat completions',
    description: 'Answers a conversation, as OpenAI’s chat completions do.',
    parameters: [attachedTools],
    body: {
      required: ['model', 'messages'],
      fields: { model, messages, tools, stream },
      example: { model: profile, messages: [{ role: 'user', content: 'Hello!' }] },
    },
    answer: 'A chat completion; with `stream` its chunks, and at last `[DONE]`.',
    streams: true,
  },
  {
    ...asked,
    method: 'post',
    path: '/v1/responses',
    id: 'createResponse',
    summary: 'Responses',
    description:
      'Answers a conversation, as OpenAI’s responses do. Answers are stored unless `store` is false. With `Upgrade: websocket` a GET here opens a connection for many answers.',
    parameters: [attachedTools],
    body: {
      required: ['model'],
      fields: {
        model,
        input,
        tools,
        stream,
        store: {
          type: ['boolean', 'null'],
          default: true,
          description: 'Whether the answer is kept, to be read and gone on from.',
        },
        previous_response_id: previous,
        conversation,
      },
      example: { model: profile, input: 'Hello!' },
    },
    answer: 'A response; with `stream` its events, and at last `[DONE]`.',
    streams: true,
  },
  {
    ...asked,
    method: 'post',
    path: '/v1/messages',
    id: 'createMessage',
    summary: 'Messages',
    description: 'Answers a conversation, as Anthropic’s messages do. The key may come as `x-api-key`.',
    parameters: [attachedTools],
    body: {
      required: ['model', 'messages'],
      fields: {
        model,
        max_tokens: { type: ['number', 'null'], description: 'The longest answer, in tokens.' },
        messages,
        tools: namedTools,
        stream,
      },
      example: { model: profile, max_tokens: 1024, messages: [{ role: 'user', content: 'Hello!' }] },
    },
    answer: 'A message; with `stream` its events.',
    streams: true,
  },
  {
    ...read,
    method: 'post',
    path: '/v1/messages/count_tokens',
    id: 'countMessageTokens',
    summary: 'Tokens of a message',
    description: 'Estimates how long a request is. It takes nothing of the plan and asks no provider.',
    parameters: [attachedTools],
    body: {
      required: ['model', 'messages'],
      fields: { model, messages, tools: namedTools },
      example: { model: profile, messages: [{ role: 'user', content: 'Hello!' }] },
    },
    answer: '`input_tokens`, an estimate.',
  },
  {
    ...asked,
    method: 'post',
    path: '/v1/completions',
    id: 'createCompletion',
    summary: 'Text completions',
    description:
      'Continues a prompt, as OpenAI’s oldest endpoint does. Relayed to servers that have it; for all others the prompt becomes the message of a user, and `suffix`, `echo`, `best_of`, `logprobs`, several prompts, and prompts of tokens are refused.',
    body: {
      required: ['model', 'prompt'],
      fields: {
        model,
        prompt: {
          anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' }, minItems: 1 }],
          description: 'A text. Servers that have the endpoint also take several, and lists of token numbers.',
        },
        stream,
      },
      example: { model: profile, prompt: 'Once upon a time' },
    },
    answer: 'A text completion; with `stream` its chunks, and at last `[DONE]`.',
    streams: true,
  },
  {
    ...asked,
    method: 'post',
    path: '/v1/embeddings',
    id: 'createEmbeddings',
    summary: 'Embeddings',
    description: 'Turns texts into vectors, with a profile whose `kind` is `embeddings`.',
    body: {
      required: ['model', 'input'],
      fields: {
        model,
        input: {
          anyOf: [{ type: 'string' }, { type: 'array', minItems: 1 }],
          description: 'One text or several, or tokens.',
        },
      },
      example: { model: 'svc-router/embeddings', input: ['The cat sleeps.'] },
    },
    answer: 'One vector for each text.',
  },
  {
    ...read,
    method: 'get',
    path: '/v1/models',
    id: 'listModels',
    summary: 'Models',
    description: 'Lists the profiles as your account sees them. Use it to try a key.',
    answer: 'The list, in the shapes that OpenAI’s and Anthropic’s clients and Codex read.',
  },
  {
    ...read,
    method: 'get',
    path: '/v1/models/{model}',
    id: 'getModel',
    summary: 'One model',
    description: 'The same entry as in the list.',
    parameters: [
      {
        name: 'model',
        in: 'path',
        description: 'A profile; its slash may be encoded or not.',
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
    summary: 'A stored answer',
    description: 'Reads an answer that was stored.',
    parameters: [responseId],
    answer: 'The response as it was given.',
  },
  {
    ...read,
    method: 'delete',
    path: '/v1/responses/{response_id}',
    id: 'deleteResponse',
    summary: 'Delete a stored answer',
    description: 'Forgets an answer. Nothing can go on from it afterwards.',
    parameters: [responseId],
    answer: 'The id, and that it is deleted.',
  },
  {
    ...read,
    method: 'get',
    path: '/v1/responses/{response_id}/input_items',
    id: 'listInputItems',
    summary: 'What an answer was asked',
    description: 'Lists the items that an answer was given to.',
    parameters: [responseId, ...paging],
    answer: 'A page of the list.',
  },
  {
    ...read,
    method: 'post',
    path: '/v1/responses/{response_id}/cancel',
    id: 'cancelResponse',
    summary: 'Cancel an answer',
    description: 'Always refused: nothing is made in the background here. To stop an answer, close its connection.',
    parameters: [responseId],
    answer: 'Never given.',
  },
  {
    ...read,
    method: 'post',
    path: '/v1/responses/input_tokens',
    id: 'countInputTokens',
    summary: 'Tokens of an input',
    description: 'Estimates how long a request is. It takes nothing of the plan and asks no provider.',
    body: {
      required: [],
      fields: { model, input, tools, previous_response_id: previous, conversation },
      example: { model: profile, input: 'Hello!' },
    },
    answer: '`input_tokens`, an estimate.',
  },
  {
    ...asked,
    method: 'post',
    path: '/v1/responses/compact',
    id: 'compactResponse',
    summary: 'Shorten a conversation',
    description: 'Has a model sum a conversation up, so that it goes on in fewer tokens. It counts like an answer.',
    body: {
      required: ['model', 'input'],
      fields: { model, input: filledInput, previous_response_id: previous, conversation },
      example: { model: profile, input: 'Hello!' },
    },
    answer: 'The shortened conversation, to be sent back as input.',
  },
  ...conversationOperations,
  {
    ...open,
    method: 'get',
    path: '/model-catalog',
    id: 'getModelCatalog',
    summary: 'Catalog',
    description: 'What there is, for discovery only: using it takes a key.',
    answer: 'The profiles with what they can do.',
  },
  {
    ...open,
    method: 'get',
    path: '/pricing',
    id: 'getPricing',
    summary: 'Plans',
    description: 'Plans, limits, and what is not offered.',
    answer: 'The plans.',
  },
  {
    ...open,
    method: 'get',
    path: '/health',
    id: 'getHealth',
    summary: 'Alive',
    description: 'Whether the server runs, for probes.',
    answer: '`{"status": "ok"}`',
  },
  {
    ...open,
    method: 'get',
    path: '/ready',
    id: 'getReadiness',
    summary: 'Ready',
    description: 'Whether new requests should come here, for load balancers. 503 where not.',
    answer: 'Ready, and no reasons against it.',
  },
  {
    ...open,
    method: 'head',
    path: '/',
    id: 'probe',
    summary: 'Anybody there',
    description: 'What agents ask before their first request.',
    answer: 'Nothing but the status.',
  },
]
