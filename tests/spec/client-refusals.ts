import {
  canaries,
  chat,
  response,
  prompt,
  upstreamBody,
  ask,
  askScripted,
  send,
  sendBytes,
  withDatabase,
} from './provoke.ts'
import { refused, unauthorized, unavailable, links, type RefusalRow } from './refusal-row.ts'

/**
 * Rejections of invalid requests, one row for each cause of an error code. `APP` is a placeholder for the origin of the
 * links.
 */
export const clientRefusals: readonly RefusalRow[] = [
  {
    ...unauthorized,
    code: 'key_missing',
    link: links.accountSetupUrl,
    provoke: (service) => ask(service, { key: undefined }),
  },
  {
    ...unauthorized,
    code: 'key_malformed',
    link: links.accountUrl,
    provoke: (service) => ask(service, { key: `${service.key.slice(0, -1)}${service.key.endsWith('A') ? 'B' : 'A'}` }),
  },
  {
    ...unauthorized,
    code: 'key_inactive',
    link: links.accountUrl,
    async provoke(service) {
      return withDatabase(service, `update accounts set suspended = 1 where id = '${service.account.id}'`, () =>
        ask(service),
      )
    },
  },
  {
    ...unauthorized,
    code: 'key_revoked',
    link: links.accountUrl,
    async provoke(service) {
      const { key, stored } = await service.addAccount('leaver', 'max')
      await service.revoke(stored.id)
      return ask(service, { key })
    },
  },
  {
    ...unavailable,
    code: 'auth_unavailable',
    how: 'the keys table is missing',
    usage: false,
    provoke: (service) => withDatabase(service, 'alter table keys rename to keys_away', () => ask(service)),
  },
  {
    ...unavailable,
    code: 'auth_unavailable',
    how: 'the plan of the account is no longer configured',
    usage: false,
    async provoke(service) {
      await service.putOnPlan(service.account.id, 'forgotten')
      return ask(service)
    },
  },
  {
    ...refused,
    code: 'duplicate_header',
    param: 'authorization',
    usage: false,
    provoke: (service) => send(service, { authorization: [`Bearer ${service.key}`, `Bearer ${service.key}`] }),
  },
  {
    ...refused,
    code: 'duplicate_header',
    how: 'in x-api-key',
    param: 'x-api-key',
    usage: false,
    provoke: (service) => send(service, { 'x-api-key': [service.key, service.key] }),
  },
  {
    ...refused,
    code: 'invalid_request',
    how: 'two keys',
    param: 'x-api-key',
    usage: false,
    provoke: (service) => send(service, { 'x-api-key': [`${service.key}x`] }),
  },
  { ...refused, code: 'invalid_json', provoke: (service) => ask(service, { body: `{"messages": "${prompt}` }) },
  {
    ...refused,
    code: 'invalid_request',
    param: 'messages',
    provoke: (service) => ask(service, { body: { model: 'svc-router/frontier', messages: prompt } }),
  },
  {
    ...refused,
    code: 'invalid_request',
    how: 'bytes that are not HTTP',
    usage: false,
    model: false,
    provoke: (service) => sendBytes(service, `${prompt}\r\n\r\n`),
  },
  {
    ...refused,
    code: 'unsupported_parameter',
    param: 'background',
    options: { settings: { retention: { retries: '0d' } } },
    provoke: (service) => ask(service, { path: '/responses', body: { ...response, background: true } }),
  },
  {
    ...refused,
    code: 'no_backend_matches',
    param: 'routing',
    provoke: (service) => ask(service, { body: { ...chat, routing: { zero_retention: true } } }),
  },
  {
    ...refused,
    code: 'reserved_tool_name',
    param: 'tools',
    provoke: (service) =>
      ask(service, {
        path: '/responses',
        body: {
          ...response,
          tools: [{ type: 'svc-router:fusion' }, { type: 'function', name: 'svc_router_fusion', parameters: {} }],
        },
      }),
  },
  {
    ...refused,
    code: 'idempotency_key_reused',
    status: 409,
    async provoke(service) {
      await ask(service, { headers: { 'idempotency-key': 'one' } })
      return ask(service, { headers: { 'idempotency-key': 'one' }, body: { ...chat, max_tokens: 5 } })
    },
  },
  {
    ...refused,
    code: 'previous_response_not_found',
    param: 'previous_response_id',
    provoke: (service) => ask(service, { path: '/responses', body: { ...response, previous_response_id: 'resp_1' } }),
  },
  {
    ...refused,
    code: 'item_not_found',
    status: 404,
    param: 'input',
    provoke: (service) =>
      ask(service, { path: '/responses', body: { ...response, input: [{ type: 'item_reference', id: 'msg_1' }] } }),
  },
  {
    ...refused,
    code: 'response_not_found',
    status: 404,
    provoke: (service) => ask(service, { path: '/responses/resp_0123456789ABCDEFGHIJKLMN', method: 'DELETE' }),
  },
  {
    ...refused,
    code: 'request_not_found',
    status: 404,
    provoke: (service) => ask(service, { path: '/requests/req_0123456789ABCDEFGHIJKLMN', method: 'GET' }),
  },
  {
    ...refused,
    code: 'conversation_not_found',
    status: 404,
    param: 'conversation',
    provoke: (service) =>
      ask(service, { path: '/responses', body: { ...response, conversation: 'conv_0123456789ABCDEFGHIJKLMN' } }),
  },
  {
    ...refused,
    code: 'conversation_item_not_found',
    status: 404,
    provoke: async (service) => {
      const { text } = await ask(service, { path: '/conversations', body: {} })
      const { id } = JSON.parse(text) as { id: string }
      return ask(service, { path: `/conversations/${id}/items/msg_0123456789`, method: 'DELETE' })
    },
  },
  {
    ...refused,
    code: 'context_length_exceeded',
    provoke: (service) => askScripted(service, { do: 'context_length_exceeded', body: contextBody() }),
  },
  {
    ...refused,
    code: 'content_rejected',
    how: '400',
    source: 'provider',
    provoke: (service) => askScripted(service, { do: 'status', status: 400, body: upstreamBody }),
  },
  {
    ...refused,
    code: 'content_rejected',
    how: '422 that names a field of the request',
    source: 'provider',
    status: 422,
    param: 'messages[0].content',
    provoke: (service) =>
      askScripted(service, {
        do: 'status',
        status: 422,
        body: JSON.stringify({ error: { message: canaries.upstream, param: 'messages[0].content' } }),
      }),
  },
  {
    ...refused,
    code: 'payload_too_large',
    status: 413,
    options: { settings: { limits: { body: '4KiB' } } },
    provoke: (service) => ask(service, { body: { ...chat, pad: canaries.prompt.repeat(500) } }),
  },
  {
    ...refused,
    code: 'unsupported_media_type',
    status: 415,
    provoke: (service) => ask(service, { headers: { 'content-type': 'text/plain' } }),
  },
  {
    ...refused,
    code: 'headers_too_large',
    how: 'too many bytes',
    status: 431,
    usage: false,
    model: false,
    provoke: (service) => send(service, { 'x-pad': ['a'.repeat(40_000)] }),
  },
  {
    ...refused,
    code: 'headers_too_large',
    how: 'more than 200 headers',
    status: 431,
    usage: false,
    provoke: (service) => send(service, { 'x-pad': Array.from({ length: 200 }, () => 'a') }),
  },
  {
    ...refused,
    code: 'request_timeout',
    status: 408,
    retryable: true,
    options: { settings: { limits: { body_time: '1s' } } },
    provoke: (service) => send(service, { 'content-length': ['1000'] }, `{"messages": "${prompt}`),
  },
  {
    ...refused,
    code: 'method_not_allowed',
    status: 405,
    provoke: (service) => ask(service, { method: 'PUT' }),
  },
  {
    ...refused,
    code: 'upgrade_required',
    status: 426,
    link: 'BASE/responses',
    provoke: (service) =>
      send(service, { upgrade: ['websocket'], connection: ['Upgrade'] }, '', 'GET /v1/chat/completions'),
  },
  {
    ...refused,
    code: 'not_found',
    status: 404,
    link: 'BASE',
    provoke: (service) => ask(service, { path: '/v1/chat/completions' }),
  },
  {
    ...refused,
    code: 'model_not_found',
    how: 'a mistyped name',
    status: 404,
    param: 'model',
    provoke: (service) => ask(service, { body: { ...chat, model: 'svc-router/fronteir' } }),
  },
  {
    ...refused,
    code: 'model_not_found',
    how: 'a prompt instead of a name',
    status: 404,
    param: 'model',
    provoke: (service) => ask(service, { body: { ...chat, model: prompt } }),
  },
  {
    ...refused,
    code: 'model_not_found',
    how: 'a key instead of a name',
    status: 404,
    param: 'model',
    provoke: (service) => ask(service, { body: { ...chat, model: service.key } }),
  },
]

function contextBody(): string {
  return JSON.stringify({ error: { message: canaries.upstream, code: 'context_length_exceeded' } })
}
