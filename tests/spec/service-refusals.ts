import { expect } from 'vitest'
import { systemRandom } from '../../src/runtime/random.ts'
import { budgetOf, nanoPerUsd, pricedFacts, setTestBudget } from '../test-budgets.ts'
import {
  canaries,
  chat,
  response,
  upstreamBody,
  ask,
  askScripted,
  withDatabase,
  failingRecords,
  headersFor,
} from './provoke.ts'
import { client, unavailable, links, plans, type RefusalRow } from './refusal-row.ts'

/** Like `clientRefusals`, for rejections by the plan, the edge gate, providers, and the service itself. */
export const serviceRefusals: readonly RefusalRow[] = [
  {
    ...client,
    code: 'plan_required',
    status: 403,
    type: 'permission_error',
    signals: 'billing',
    link: links.upgradeUrl,
    usage: true,
    options: { settings: { plans } },
    async provoke(service) {
      const { key } = await service.addAccount('plain', 'plain')
      return ask(service, { key, body: { ...chat, model: 'svc-router/fusion' } })
    },
  },
  {
    ...client,
    code: 'key_profile_not_allowed',
    status: 403,
    type: 'permission_error',
    param: 'model',
    link: links.keysUrl,
    usage: true,
    async provoke(service) {
      const { key } = await service.addLimitedKey({ profiles: ['svc-router/frontier'] })
      return ask(service, { key: key.reveal(), body: { ...chat, model: 'svc-router/fusion' } })
    },
  },
  {
    ...client,
    code: 'key_profile_not_allowed',
    how: 'the tool of a forbidden profile',
    status: 403,
    type: 'permission_error',
    param: 'tools',
    link: links.keysUrl,
    usage: true,
    async provoke(service) {
      const { key } = await service.addLimitedKey({ profiles: ['svc-router/frontier'] })
      return ask(service, { key: key.reveal(), body: { ...chat, tools: [{ type: 'svc-router:fusion' }] } })
    },
  },
  {
    ...client,
    code: 'key_address_not_allowed',
    status: 403,
    type: 'permission_error',
    link: links.keysUrl,
    // The usage of the account is hidden from addresses that may not use its key.
    usage: false,
    async provoke(service) {
      const { key } = await service.addLimitedKey({ addresses: ['203.0.113.0/24'] })
      return ask(service, { key: key.reveal() })
    },
  },
  {
    ...client,
    code: 'rate_limit_exceeded',
    how: 'only the limit of the key',
    status: 429,
    type: 'rate_limit_error',
    retryable: true,
    retryAfter: [1, 60],
    usage: true,
    async provoke(service) {
      const { key } = await service.addLimitedKey({ perMinute: 1 })
      await ask(service, { key: key.reveal() })
      return ask(service, { key: key.reveal() })
    },
  },
  {
    ...client,
    code: 'no_provider_connected',
    status: 403,
    type: 'permission_error',
    link: `${links.docsUrl}/errors/no_provider_connected`,
    usage: true,
    options: { settings: { profiles: { 'team/empty': { description: 'Nothing yet' } } } },
    provoke: (service) => ask(service, { body: { ...chat, model: 'team/empty' } }),
  },
  {
    ...client,
    code: 'no_provider_connected',
    how: 'a profile that the account’s own providers serve',
    status: 403,
    type: 'permission_error',
    link: links.providersUrl,
    usage: true,
    options: { settings: { plans, profiles: { 'svc-router/frontier': { backends: [] } } } },
    async provoke(service) {
      const { key } = await service.addAccount('plain', 'plain')
      return ask(service, { key })
    },
  },
  {
    ...client,
    code: 'rate_limit_exceeded',
    status: 429,
    type: 'rate_limit_error',
    retryable: true,
    retryAfter: [1, 60],
    usage: true,
    options: { settings: { plans } },
    async provoke(service) {
      const { key } = await service.addAccount('slow', 'slow')
      await ask(service, { key })
      return ask(service, { key })
    },
  },
  {
    ...client,
    code: 'too_many_fusions',
    status: 429,
    type: 'rate_limit_error',
    retryable: true,
    retryAfter: 10,
    usage: true,
    options: { settings: { plans: { ...plans, max: { ...plans.max, fusions_at_once: 1 } } } },
    async provoke(service) {
      for (const provider of service.providers) provider.script([{ do: 'silence', repeat: true }])
      const body = { ...chat, model: 'svc-router/fusion', stream: true }
      const leave = new AbortController()
      const first = await service.post('/chat/completions', body, {}, leave.signal)
      try {
        return await ask(service, { body: { ...chat, model: 'svc-router/fusion' } })
      } finally {
        leave.abort()
        await first.text().catch(() => {})
      }
    },
  },
  {
    ...client,
    code: 'insufficient_quota',
    status: 402,
    type: 'insufficient_quota',
    signals: 'billing',
    link: links.upgradeUrl,
    usage: true,
    options: { settings: { plans } },
    async provoke(service) {
      const { key } = await service.addAccount('small', 'small')
      await ask(service, { key })
      return ask(service, { key })
    },
  },
  {
    ...client,
    code: 'budget_exceeded',
    status: 402,
    type: 'insufficient_quota',
    link: links.budgetsUrl,
    usage: true,
    options: { facts: pricedFacts },
    async provoke(service) {
      await setTestBudget(service, { limit: nanoPerUsd / 100 })
      return ask(service)
    },
  },
  {
    ...client,
    code: 'budget_held',
    status: 429,
    type: 'rate_limit_error',
    retryable: true,
    retryAfter: [1, 60],
    usage: true,
    options: { facts: pricedFacts },
    async provoke(service) {
      await setTestBudget(service, { limit: nanoPerUsd / 2 })
      for (const provider of service.providers) provider.script([{ do: 'silence', repeat: true }])
      const body = { ...chat, max_tokens: 4_000, stream: true }
      const leave = new AbortController()
      const first = service.post('/chat/completions', body, {}, leave.signal).catch(() => {})
      try {
        await expect.poll(async () => (await budgetOf(service)).held).toBeGreaterThan(0)
        return await ask(service, { body: { ...chat, max_tokens: 4_000 } })
      } finally {
        leave.abort()
        await first
      }
    },
  },
  {
    ...client,
    code: 'budget_price_unknown',
    status: 402,
    type: 'insufficient_quota',
    link: links.budgetsUrl,
    usage: true,
    async provoke(service) {
      await setTestBudget(service, { limit: nanoPerUsd })
      return ask(service)
    },
  },
  {
    code: '1010',
    param: 'user-agent',
    status: 403,
    type: 'edge_error',
    source: 'edge',
    retryable: false,
    link: `${links.docsUrl}/errors/1010`,
    usage: false,
    provoke: (service) => ask(service, { headers: { 'user-agent': 'unknown' } }),
  },
  {
    ...unavailable,
    code: 'server_is_overloaded',
    source: 'provider',
    usage: true,
    retryAfter: [1, 60],
    provoke: (service) =>
      askScripted(service, { do: 'status', status: 503, retryAfter: '1000000000000', body: upstreamBody }),
  },
  {
    ...unavailable,
    code: 'record_unavailable',
    how: 'the record of this request could not be written',
    usage: true,
    provoke: (service) => withDatabase(service, failingRecords, () => ask(service), 'drop trigger failing'),
  },
  {
    ...unavailable,
    code: 'record_unavailable',
    how: 'earlier records could not be written',
    usage: true,
    provoke: (service) =>
      withDatabase(
        service,
        failingRecords,
        async () => {
          await ask(service)
          return ask(service)
        },
        'drop trigger failing',
      ),
  },
  {
    ...unavailable,
    code: 'store_unavailable',
    usage: true,
    provoke: (service) => withDatabase(service, 'alter table upstreams rename to upstreams_away', () => ask(service)),
  },
  {
    ...unavailable,
    code: 'server_busy',
    usage: true,
    options: { settings: { limits: { streams: 1 } } },
    async provoke(service) {
      service.providers[0]!.script([{ do: 'stall', repeat: true }])
      const leave = new AbortController()
      const open = fetch(`${service.baseUrl}/chat/completions`, {
        method: 'POST',
        headers: headersFor(service.key),
        body: JSON.stringify({ ...chat, stream: true }),
        signal: leave.signal,
      })
      await expect.poll(() => service.providers[0]!.captured().length, { timeout: 5_000 }).toBe(1)
      const answer = await ask(service)
      leave.abort()
      await expect(open).rejects.toThrow()
      return answer
    },
  },
  {
    ...unavailable,
    code: 'load_shed',
    retryAfter: [2, 12],
    usage: true,
    options: { settings: { limits: { streams: 20 } } },
    async provoke(service) {
      const other = await service.addAccount('other', 'max')
      service.providers[0]!.script([{ do: 'stall', afterEvents: 2, repeat: true }])
      const stream = { ...chat, stream: true }
      const keys = Array.from({ length: 18 }, (_, index) => (index < 12 ? other.key : service.key))
      const open = await Promise.all(
        keys.map((key) =>
          fetch(`${service.baseUrl}/chat/completions`, {
            method: 'POST',
            headers: headersFor(key),
            body: JSON.stringify(stream),
          }),
        ),
      )
      await expect.poll(() => service.events.some(({ event }) => event === 'load_shedding')).toBe(true)
      const answer = await ask(service, { headers: { 'x-stainless-retry-count': '1' } })
      await Promise.all(open.map(({ body }) => body!.cancel()))
      return answer
    },
  },
  {
    code: 'upstream_credentials_rejected',
    status: 502,
    type: 'server_error',
    source: 'provider',
    retryable: false,
    link: links.providersUrl,
    usage: true,
    provoke: (service) => askScripted(service, { do: 'status', status: 401, body: upstreamBody }),
  },
  {
    code: 'upstream_misconfigured',
    status: 502,
    type: 'server_error',
    source: 'provider',
    retryable: false,
    link: links.providersUrl,
    usage: true,
    provoke: (service) => askScripted(service, { do: 'status', status: 404, body: upstreamBody }),
  },
  {
    code: 'upstream_timeout',
    status: 504,
    type: 'server_error',
    source: 'provider',
    retryable: true,
    usage: true,
    provoke: (service) => askScripted(service, { do: 'silence' }, { 'x-stainless-timeout': '2' }),
  },
  {
    code: 'answer_interrupted',
    status: 502,
    type: 'server_error',
    source: 'gateway',
    retryable: false,
    usage: true,
    async provoke(service) {
      const headers = { 'idempotency-key': 'one' }
      await ask(service, { headers })
      return withDatabase(service, `update generations set state = 'interrupted'`, () => ask(service, { headers }))
    },
  },
  {
    code: 'internal_error',
    status: 500,
    type: 'server_error',
    source: 'gateway',
    retryable: true,
    link: links.supportUrl,
    usage: true,
    options: { random: randomThatBreaks() },
    provoke: (service) => ask(service, { path: '/responses', body: response }),
  },
]

/** Random bytes, with an error for the IDs of answer items: a bug during a request. */
function randomThatBreaks(): (count: number) => Uint8Array {
  const random = systemRandom()
  const itemIdLength = 24
  return (count) => {
    if (count === itemIdLength) throw new Error(`a bug that knows ${canaries.prompt}`)
    return random(count)
  }
}
