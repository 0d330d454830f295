import type { Service } from '../service.ts'
import type { Answer } from '../wire.ts'
import { ask, canaries, messages, prompt, upstreamBody } from './provoke.ts'
import { client, links, plans, refused, unauthorized, unavailable, type RefusalRow } from './refusal-row.ts'

/** The shape and the backends of all rows in this file, for Anthropic's clients. */
const shaped = { shape: 'messages', options: { formats: ['anthropic-messages', 'openai-chat'] } } as const

function askMessages(service: Service, asked: Parameters<typeof ask>[1] = {}): Promise<Answer> {
  return ask(service, { path: '/messages', body: messages, ...asked })
}

function scripted(service: Service, step: Parameters<Service['providers'][number]['script']>[0][number]): void {
  for (const provider of service.providers) provider.script([{ ...step, repeat: true }])
}

/** Rejections in Anthropic's shape: all that have another type there, and one of each kind that has the same type. */
export const messagesRefusals: readonly RefusalRow[] = [
  {
    ...unauthorized,
    ...shaped,
    code: 'key_missing',
    link: links.accountSetupUrl,
    provoke: (service) => askMessages(service, { key: undefined }),
  },
  {
    ...unauthorized,
    ...shaped,
    code: 'key_malformed',
    how: 'in x-api-key',
    link: links.accountUrl,
    provoke: (service) =>
      askMessages(service, { key: undefined, headers: { 'x-api-key': `${service.key.slice(0, -1)}!` } }),
  },
  {
    ...refused,
    ...shaped,
    code: 'invalid_request',
    param: 'messages',
    provoke: (service) => askMessages(service, { body: { ...messages, messages: prompt } }),
  },
  {
    ...refused,
    ...shaped,
    code: 'unsupported_parameter',
    how: 'a thread',
    param: 'thread',
    errorCode: 'thread_unsupported_request',
    provoke: (service) => askMessages(service, { body: { ...messages, thread: { type: 'create' } } }),
  },
  {
    ...refused,
    ...shaped,
    code: 'content_rejected',
    source: 'provider',
    provoke(service) {
      scripted(service, { do: 'status', status: 400, body: upstreamBody })
      return askMessages(service)
    },
  },
  {
    ...refused,
    ...shaped,
    code: 'payload_too_large',
    status: 413,
    type: 'request_too_large',
    options: { ...shaped.options, settings: { limits: { body: '4KiB' } } },
    provoke: (service) => askMessages(service, { body: { ...messages, pad: canaries.prompt.repeat(500) } }),
  },
  {
    ...refused,
    ...shaped,
    code: 'model_not_found',
    status: 404,
    type: 'not_found_error',
    param: 'model',
    provoke: (service) => askMessages(service, { body: { ...messages, model: 'svc-router/fronteir' } }),
  },
  {
    ...refused,
    ...shaped,
    code: 'model_not_found',
    how: 'in a token count',
    status: 404,
    type: 'not_found_error',
    param: 'model',
    provoke: (service) =>
      askMessages(service, { path: '/messages/count_tokens', body: { ...messages, model: 'svc-router/fronteir' } }),
  },
  {
    ...refused,
    ...shaped,
    code: 'not_found',
    how: 'below an existing path',
    status: 404,
    type: 'not_found_error',
    link: 'BASE',
    provoke: (service) => askMessages(service, { path: '/messages/batches' }),
  },
  {
    ...client,
    ...shaped,
    code: 'plan_required',
    status: 403,
    type: 'permission_error',
    signals: 'billing',
    link: links.upgradeUrl,
    usage: true,
    options: { ...shaped.options, settings: { plans } },
    async provoke(service) {
      const { key } = await service.addAccount('plain', 'plain')
      return askMessages(service, { key, body: { ...messages, model: 'svc-router/fusion' } })
    },
  },
  {
    ...client,
    ...shaped,
    code: 'rate_limit_exceeded',
    status: 429,
    type: 'rate_limit_error',
    retryable: true,
    retryAfter: [1, 60],
    usage: true,
    options: { ...shaped.options, settings: { plans } },
    async provoke(service) {
      const { key } = await service.addAccount('slow', 'slow')
      await askMessages(service, { key })
      return askMessages(service, { key })
    },
  },
  {
    ...client,
    ...shaped,
    code: 'insufficient_quota',
    status: 402,
    type: 'billing_error',
    signals: 'billing',
    link: links.upgradeUrl,
    usage: true,
    options: { ...shaped.options, settings: { plans } },
    async provoke(service) {
      const { key } = await service.addAccount('small', 'small')
      await askMessages(service, { key })
      return askMessages(service, { key })
    },
  },
  {
    ...shaped,
    code: '1010',
    param: 'user-agent',
    status: 403,
    type: 'permission_error',
    source: 'edge',
    retryable: false,
    link: `${links.docsUrl}/errors/1010`,
    usage: false,
    provoke: (service) => askMessages(service, { headers: { 'user-agent': 'unknown' } }),
  },
  {
    ...unavailable,
    ...shaped,
    code: 'server_is_overloaded',
    type: 'overloaded_error',
    source: 'provider',
    usage: true,
    retryAfter: [1, 60],
    provoke(service) {
      scripted(service, { do: 'status', status: 503, retryAfter: '7', body: upstreamBody })
      return askMessages(service)
    },
  },
]
