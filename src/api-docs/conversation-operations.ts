import type { ApiOperation } from './operation.ts'

/** The query of every list of items. */
export const paging = [
  {
    name: 'limit',
    in: 'query',
    description: 'The maximum number of items.',
    schema: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
  },
  {
    name: 'order',
    in: 'query',
    description: 'Newest (`desc`) or oldest (`asc`) first.',
    schema: { type: 'string', enum: ['asc', 'desc'], default: 'desc' },
  },
  {
    name: 'after',
    in: 'query',
    description: 'The ID of the last item of the previous page.',
    schema: { type: 'string' },
  },
] as const

const conversationId = {
  name: 'conversation_id',
  in: 'path',
  description: 'The ID of a conversation.',
  schema: { type: 'string' },
} as const
const itemId = { name: 'item_id', in: 'path', description: 'The ID of an item.', schema: { type: 'string' } } as const
const items = {
  type: 'array',
  items: { type: 'object', anyOf: [{ required: ['type'] }, { required: ['role'] }] },
  description: 'Up to 20 items, in the same form as in `input` of `POST /v1/responses`.',
}
const metadata = {
  type: ['object', 'null'],
  description: 'Your own data: at most 16 strings of up to 512 characters, with keys of up to 64.',
}
const read = { access: 'key', errorCodes: 'lookup' } as const
const message = { role: 'user', content: 'Hello!' }

/** The operations of `/v1/conversations`. */
export const conversationOperations: readonly ApiOperation[] = [
  {
    ...read,
    method: 'post',
    path: '/v1/conversations',
    id: 'createConversation',
    summary: 'Create a conversation',
    description: 'Creates a conversation that responses can continue by ID. It expires if it is not used.',
    body: {
      required: [],
      fields: { items: { ...items, type: ['array', 'null'] }, metadata },
      example: { items: [message], metadata: { topic: 'demo' } },
    },
    answer: 'The conversation.',
  },
  {
    ...read,
    method: 'get',
    path: '/v1/conversations/{conversation_id}',
    id: 'getConversation',
    summary: 'Get a conversation',
    description: 'Retrieves a conversation without its items.',
    parameters: [conversationId],
    answer: 'The conversation.',
  },
  {
    ...read,
    method: 'post',
    path: '/v1/conversations/{conversation_id}',
    id: 'updateConversation',
    summary: 'Update a conversation',
    description: 'Replaces the metadata of a conversation.',
    parameters: [conversationId],
    body: { required: ['metadata'], fields: { metadata }, example: { metadata: { topic: 'demo' } } },
    answer: 'The conversation.',
  },
  {
    ...read,
    method: 'delete',
    path: '/v1/conversations/{conversation_id}',
    id: 'deleteConversation',
    summary: 'Delete a conversation',
    description: 'Deletes a conversation and its items. Responses that were stored separately are not deleted.',
    parameters: [conversationId],
    answer: 'The ID and `deleted`.',
  },
  {
    ...read,
    method: 'post',
    path: '/v1/conversations/{conversation_id}/items',
    id: 'createConversationItems',
    summary: 'Add items',
    description: 'Adds up to 20 items to a conversation: either all of them or none.',
    parameters: [conversationId],
    body: { required: ['items'], fields: { items }, example: { items: [message] } },
    answer: 'The added items.',
  },
  {
    ...read,
    method: 'get',
    path: '/v1/conversations/{conversation_id}/items',
    id: 'listConversationItems',
    summary: 'List items',
    description: 'Lists the items of a conversation.',
    parameters: [conversationId, ...paging],
    answer: 'A page of the list.',
  },
  {
    ...read,
    method: 'get',
    path: '/v1/conversations/{conversation_id}/items/{item_id}',
    id: 'getConversationItem',
    summary: 'Get an item',
    description: 'Retrieves one item of a conversation.',
    parameters: [conversationId, itemId],
    answer: 'The item.',
  },
  {
    ...read,
    method: 'delete',
    path: '/v1/conversations/{conversation_id}/items/{item_id}',
    id: 'deleteConversationItem',
    summary: 'Delete an item',
    description: 'Deletes one item of a conversation.',
    parameters: [conversationId, itemId],
    answer: 'The conversation.',
  },
]
