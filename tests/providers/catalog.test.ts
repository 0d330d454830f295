import { describe, expect, test } from 'vitest'
import type { Upstream } from '../../src/domain/accounts.ts'
import type { Dialect } from '../../src/formats/format.ts'
import { formatById } from '../../src/formats/formats.ts'
import type { Backend } from '../../src/gateway/ports.ts'
import { createVault } from '../../src/providers/auth/vault.ts'
import { createBackends, openConfigured, openUpstream } from '../../src/providers/catalog.ts'
import type { BackendsOptions, ConfiguredBackend } from '../../src/providers/catalog.ts'
import { baseUrlProblem, endpointOf } from '../../src/providers/http/endpoint.ts'
import { findVendor, vendors } from '../../src/providers/registry.ts'
import { testUpstream } from '../../src/providers/test-upstream.ts'
import { defaultTimeouts } from '../../src/providers/timeouts.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { Secret } from '../../src/runtime/secret.ts'
import { openBackend, openPools, run, simulate } from './support.ts'

const vault = createVault({
  current: { id: 'k1', key: new Secret<Uint8Array>(new Uint8Array(32).fill(7)) },
  random: systemRandom(),
})

function upstream(row: Partial<Upstream> & { id: string; accountId: string }): Upstream {
  return {
    provider: 'custom',
    model: 'm',
    baseUrl: 'http://127.0.0.1:9/v1',
    format: null,
    authHeader: null,
    sealedCredential: vault.seal(row.accountId, row.id, new Secret(`made-up-${row.id}`)),
    credentialHint: null,
    position: 0,
    createdAtMs: 0,
    ...row,
  }
}

const profile = (id: string, backends: string[]): BackendsOptions['profiles'][number] => ({
  id,
  description: '',
  backends,
  premium: false,
  quotaUnits: 1,
})
const local = (id: string, more: Partial<ConfiguredBackend> = {}): ConfiguredBackend => ({
  id,
  provider: 'ollama',
  model: 'm',
  failureDomain: 'ollama',
  timeouts: defaultTimeouts(false),
  ...more,
})

function open(
  configured: ConfiguredBackend[],
  rows: Record<string, Upstream[]> = {},
  more: Partial<BackendsOptions> = {},
) {
  let reads = 0
  const backends = createBackends({
    profiles: [
      profile(
        'svc-router/frontier',
        configured.map(({ id }) => id),
      ),
      profile('other', configured.map(({ id }) => id).toReversed()),
    ],
    configured,
    upstreamsOf: async (accountId) => {
      reads += 1
      return rows[accountId] ?? []
    },
    hasManagedAccess: async () => false,
    managed: { isOn: () => false },
    vault,
    pools: openPools(),
    publicOnly: false,
    ...more,
  })
  const idsFor = async (profileId: string, accountId: string): Promise<string[]> =>
    (await backends.forProfile(profileId, accountId)).map(({ id }) => id)
  return { backends, idsFor, reads: () => reads }
}

describe('the backends of an account', () => {
  test('an account’s own upstreams come first, in their order, then configured ones in the profile’s order', async () => {
    const { idsFor } = open([local('a'), local('b')], {
      acc_1: [upstream({ id: 'ups_2', accountId: 'acc_1' }), upstream({ id: 'ups_1', accountId: 'acc_1' })],
    })
    expect(await idsFor('svc-router/frontier', 'acc_1')).toEqual(['ups_2', 'ups_1', 'a', 'b'])
    expect(await idsFor('svc-router/frontier', 'acc_2')).toEqual(['a', 'b'])
    expect(await idsFor('other', 'acc_1')).toEqual(['b', 'a'])
    expect(await idsFor('unknown', 'acc_1')).toEqual([])
  })

  test('a configured credential serves only its own account, and no one without an account', async () => {
    const credential = new Secret('made-up')
    const { idsFor } = open([
      local('mine', { credential, account: 'acc_1' }),
      local('nobody', { credential }),
      local('all'),
      local('private', { account: 'acc_2' }),
    ])
    expect(await idsFor('svc-router/frontier', 'acc_1')).toEqual(['mine', 'all'])
    expect(await idsFor('svc-router/frontier', 'acc_2')).toEqual(['all', 'private'])
  })

  test('the operator’s credential serves accounts with managed access, and only while it is on', async () => {
    const credential = new Secret('made-up')
    const on = new Set<string>()
    const approved = new Set(['acc_1'])
    const { backends, idsFor } = open(
      [local('managed', { credential, managedBy: 'vendor' }), local('other', { credential, managedBy: 'another' })],
      { acc_1: [upstream({ id: 'ups_1', accountId: 'acc_1' })] },
      {
        hasManagedAccess: async (accountId) => approved.has(accountId),
        managed: { isOn: (provider) => on.has(provider) },
      },
    )
    const served = async (): Promise<string[][]> => {
      backends.forget()
      return Promise.all(['acc_1', 'acc_2'].flatMap((id) => [idsFor('svc-router/frontier', id), idsFor('other', id)]))
    }
    expect(await served()).toEqual([['ups_1'], [], [], []])
    on.add('vendor')
    expect(await served()).toEqual([['ups_1', 'managed'], ['managed'], [], []])
    on.add('another')
    approved.add('acc_2')
    expect(await served()).toEqual([
      ['ups_1', 'managed', 'other'],
      ['other', 'managed'],
      ['managed', 'other'],
      ['other', 'managed'],
    ])
    approved.delete('acc_1')
    on.delete('another')
    expect(await served()).toEqual([['ups_1'], [], ['managed'], ['managed']])
  })

  test('simulated backends serve only accounts without real ones', async () => {
    const simulated = local('alpha', { provider: 'simulated', baseUrl: 'http://127.0.0.1:9/v1' })
    const rows = { acc_1: [upstream({ id: 'ups_1', accountId: 'acc_1' })] }
    const { idsFor } = open([simulated], rows)
    expect(await idsFor('svc-router/frontier', 'acc_1')).toEqual(['ups_1'])
    expect(await idsFor('svc-router/frontier', 'acc_2')).toEqual(['alpha'])
  })

  test('a row of another account is never used, even if the store returns it', async () => {
    const { idsFor } = open([], { acc_1: [upstream({ id: 'ups_9', accountId: 'acc_2' })] })
    expect(await idsFor('svc-router/frontier', 'acc_1')).toEqual([])
  })

  test('upstreams are read once and then returned synchronously, until the cache is cleared', async () => {
    const rows: Record<string, Upstream[]> = { acc_1: [upstream({ id: 'ups_1', accountId: 'acc_1' })] }
    const { backends, idsFor, reads } = open([], rows)
    await Promise.all([idsFor('svc-router/frontier', 'acc_1'), idsFor('svc-router/frontier', 'acc_1')])
    expect(reads()).toBe(1)
    expect(Array.isArray(backends.forProfile('svc-router/frontier', 'acc_1'))).toBe(true)
    rows.acc_1!.push(upstream({ id: 'ups_2', accountId: 'acc_1' }))
    expect(await idsFor('svc-router/frontier', 'acc_1')).toEqual(['ups_1'])
    backends.forget()
    expect(await idsFor('svc-router/frontier', 'acc_1')).toEqual(['ups_1', 'ups_2'])
    backends.forget()
    await idsFor('svc-router/frontier', 'acc_1')
    expect(reads()).toBe(3)
  })

  test('if the cache is cleared during a read, the upstreams are read again', async () => {
    let finish!: (rows: Upstream[]) => void
    let reads = 0
    const { backends, idsFor } = open(
      [],
      {},
      {
        upstreamsOf: () => {
          reads += 1
          return reads === 1 ? new Promise((resolve) => (finish = resolve)) : Promise.resolve([])
        },
      },
    )
    const early = idsFor('svc-router/frontier', 'acc_1')
    backends.forget()
    expect(await idsFor('svc-router/frontier', 'acc_1')).toEqual([])
    finish([upstream({ id: 'ups_1', accountId: 'acc_1' })])
    expect(await early).toEqual(['ups_1'])
    expect(await idsFor('svc-router/frontier', 'acc_1')).toEqual([])
  })

  test('a store failure is thrown, and the next request reads again', async () => {
    let broken = true
    const { idsFor } = open(
      [local('a')],
      {},
      {
        upstreamsOf: () => (broken ? Promise.reject(new Error('made up')) : Promise.resolve([])),
      },
    )
    await expect(idsFor('svc-router/frontier', 'acc_1')).rejects.toThrow('made up')
    broken = false
    expect(await idsFor('svc-router/frontier', 'acc_1')).toEqual(['a'])
  })

  test('at most maxCachedAccounts accounts are cached, the most recently used', async () => {
    const { idsFor, reads } = open([], {}, { maxCachedAccounts: 2 })
    for (const account of ['a', 'b', 'a', 'c', 'a']) await idsFor('svc-router/frontier', account)
    expect(reads()).toBe(3)
    await idsFor('svc-router/frontier', 'b')
    expect(reads()).toBe(4)
  })

  test('an unusable upstream fails alone and does not affect the others', async () => {
    const { backends } = open([local('a')], {
      acc_1: [
        upstream({
          id: 'swapped',
          accountId: 'acc_1',
          sealedCredential: vault.seal('acc_2', 'swapped', new Secret('x')),
        }),
        upstream({ id: 'no-url', accountId: 'acc_1', baseUrl: null }),
        upstream({ id: 'unknown', accountId: 'acc_1', provider: 'constructor', baseUrl: null }),
        upstream({
          id: 'unsendable',
          accountId: 'acc_1',
          sealedCredential: vault.seal('acc_1', 'unsendable', new Secret('a\nb')),
        }),
      ],
    })
    const list = await backends.forProfile('svc-router/frontier', 'acc_1')
    expect(list.map(({ id }) => id)).toEqual(['swapped', 'no-url', 'unknown', 'unsendable', 'a'])
    const outcomes = await Promise.all(list.slice(0, 4).map(async (backend) => (await run(backend)).error?.outcome))
    expect(outcomes).toEqual(['rejected_credentials', 'unreachable', 'unreachable', 'unreachable'])
    const aborted = list[0]!.call(
      { body: '', stream: false, requestId: 'r' },
      { onHead: fail, onData: fail, onEnd: fail, onError: fail },
    )
    aborted.abort()
    await new Promise((resolve) => setTimeout(resolve, 5))
  })

  test('with publicOnly, an account’s upstream cannot reach private addresses, but a configured backend can', async () => {
    const provider = await simulate()
    const row = upstream({ id: 'ups_1', accountId: 'acc_1', baseUrl: provider.baseUrl })
    const inside = local('inside', { provider: 'custom', baseUrl: provider.baseUrl })
    const { backends } = open([inside], { acc_1: [row] }, { publicOnly: true })
    const [own, configured] = await backends.forProfile('svc-router/frontier', 'acc_1')
    expect((await run(own!)).error?.outcome).toBe('unreachable')
    expect(provider.counts().connections).toBe(0)
    expect((await run(configured!)).head?.status).toBe(200)
  })

  test.each([
    ['http', true, true, 0],
    ['http', true, false, 1],
    ['http', false, true, 1],
    ['https', true, true, 1],
  ])('%s in production %s, with a credential %s: %i lookups', async (protocol, publicOnly, hasCredential, asked) => {
    let lookups = 0
    const lookup = (
      _host: string,
      _options: unknown,
      callback: (error: Error, addresses: { address: string; family: number }[]) => void,
    ): void => {
      lookups += 1
      callback(new Error('no such host'), [])
    }
    const row = upstream({ id: 'ups_1', accountId: 'acc_1', baseUrl: `${protocol}://provider.example/v1` })
    const own = hasCredential ? row : { ...row, sealedCredential: null }
    const { backends } = open([], { acc_1: [own] }, { publicOnly, pools: openPools({ lookup }) })
    const [backend] = await backends.forProfile('svc-router/frontier', 'acc_1')
    expect((await run(backend!)).error?.outcome).toBe('unreachable')
    expect(lookups).toBe(asked)
  })

  test('an account’s upstream sends its own credential in its own header to its own server', async () => {
    const provider = await simulate({ capture: true })
    const row = upstream({
      id: 'ups_1',
      accountId: 'acc_1',
      baseUrl: provider.baseUrl,
      authHeader: 'X-Api-Key',
      format: 'openai-responses',
    })
    const { backends } = open([], { acc_1: [row] })
    const [backend] = await backends.forProfile('svc-router/frontier', 'acc_1')
    await run(backend!, '{"model":"m","input":"hi"}')
    const [seen] = provider.captured()
    expect([seen?.path, seen?.headers['x-api-key'], seen?.headers.authorization]).toEqual([
      '/v1/responses',
      'made-up-ups_1',
      undefined,
    ])
  })
})

function fail(): never {
  throw new Error('an aborted call must not report anything')
}

describe('the properties of a backend', () => {
  test('everything that is not configured comes from the vendor', () => {
    const pools = openPools()
    const plain = openConfigured(local('a', { provider: 'mistral' }), pools)
    expect(plain).toMatchObject({
      id: 'a',
      failureDomain: 'ollama',
      format: 'openai-chat',
      simulated: false,
      timeouts: defaultTimeouts(false),
      dialect: vendors.mistral.dialect,
    })
    expect('contextWindow' in plain).toBe(false)
    const timeouts = { ...defaultTimeouts(true), idleMs: 5 }
    const reasons = openConfigured(local('b', { provider: 'openai', facts: { contextWindow: 1000 }, timeouts }), pools)
    expect(reasons).toMatchObject({ format: 'openai-responses', contextWindow: 1000, timeouts })
    expect(() => openConfigured(local('d', { provider: 'custom' }), pools)).toThrow('The backend d needs a base URL.')
  })

  test('a preset with several endpoints has all of them under one ID, or only that of a configured format', () => {
    const pools = openPools()
    const endpointsOf = (more: Partial<ConfiguredBackend>) => {
      const backend = openConfigured(local('a', more), pools)
      return [backend, ...(backend.otherEndpoints ?? [])].map(({ id, format }) => [id, format])
    }
    expect(endpointsOf({ provider: 'openai' })).toEqual([
      ['a', 'openai-responses'],
      ['a', 'openai-chat'],
    ])
    expect(endpointsOf({ provider: 'openai', format: 'openai-chat' })).toEqual([['a', 'openai-chat']])
    expect(endpointsOf({ provider: 'ollama' })).toEqual([
      ['a', 'openai-chat'],
      ['a', 'openai-completions'],
    ])
    const row = upstream({ id: 'u', accountId: 'acc_1', provider: 'openai', baseUrl: null })
    const own = openUpstream(row, { vault, pools, publicOnly: false })
    expect(own.otherEndpoints).toMatchObject([{ id: 'u', format: 'openai-chat', model: 'm' }])
  })

  test('upstreams at one server share a failure domain, apart from the vendor and other servers', async () => {
    const at = (id: string, provider: string, baseUrl: string | null): Upstream =>
      upstream({ id, accountId: 'acc_1', provider, baseUrl })
    const rows = [at('a', 'vllm', null), at('b', 'vllm', 'http://10.0.0.5:8000/v1')]
    const { backends } = open([], { acc_1: rows })
    const opened = await backends.forProfile('svc-router/frontier', 'acc_1')
    expect(opened.map(({ failureDomain }) => failureDomain)).toEqual(['vllm', 'vllm 10.0.0.5:8000'])
  })

  test('DeepSeek gets its reasoning before a tool call back, because it rejects the next turn without it', () => {
    const conversation = formatById('openai-chat').readRequest({
      model: 'svc-router/frontier',
      messages: [
        { role: 'user', content: 'The weather?' },
        {
          role: 'assistant',
          reasoning_content: 'I must look.',
          tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'call_1', content: 'Rain.' },
      ],
    })
    const target = { model: 'm', stream: false }
    const written = (dialect: Dialect): string =>
      JSON.stringify(formatById('openai-chat').writeRequest(conversation, { ...target, dialect }))
    expect(written(vendors.deepseek.dialect)).toContain('"reasoning_content":"I must look."')
    expect(written(vendors.together.dialect)).not.toContain('I must look.')
  })

  test('every vendor has a valid entry', () => {
    for (const [id, vendor] of Object.entries(vendors)) {
      expect(findVendor(id)).toBe(vendor)
      expect(vendor.formats.length).toBeGreaterThan(0)
      expect(vendor.credential === 'required').toBe(vendor.keyVariable !== null)
      if (vendor.baseUrl === null) continue
      expect(baseUrlProblem(vendor.baseUrl)).toBeUndefined()
      expect(vendor.baseUrl.startsWith('https:') || vendor.credential !== 'required').toBe(true)
      expect(endpointOf(vendor.baseUrl, '/chat/completions').path.endsWith('/chat/completions')).toBe(true)
    }
    expect(findVendor('toString')).toBeUndefined()
  })
})

describe('testUpstream', () => {
  const clock = systemClock()
  const probe = (backend: Backend): ReturnType<typeof testUpstream> =>
    testUpstream(backend, { clock, requestId: 'req_test' })

  test.each(['openai-chat', 'openai-responses'] as const)(
    'one minimal %s call reports success and its duration',
    async (format) => {
      const provider = await simulate({ capture: true })
      const result = await probe(
        openBackend(openPools(), provider.baseUrl, { format, model: 'model-7', dialect: vendors.openai.dialect }),
      )
      expect(result).toMatchObject({ outcome: 'answered', status: 200 })
      expect(result.ms).toBeLessThan(5_000)
      const body = JSON.parse(provider.captured()[0]!.body) as Record<string, unknown>
      expect(body['model']).toBe('model-7')
      expect(body[format === 'openai-chat' ? 'max_completion_tokens' : 'max_output_tokens']).toBe(16)
      expect(provider.counts().requests).toBe(1)
    },
  )

  test.each([
    [{ do: 'status', status: 401 }, 'rejected_credentials', 401],
    [{ do: 'status', status: 403 }, 'rejected_credentials', 403],
    [{ do: 'status', status: 402 }, 'rejected_credentials', 402],
    [{ do: 'status', status: 404 }, 'not_found', 404],
    [{ do: 'status', status: 504 }, 'timeout', 504],
    [{ do: 'status', status: 429, body: '{"error":{"code":"insufficient_quota"}}' }, 'rejected_credentials', 429],
    // It has the shape of an answer, but no content.
    [{ do: 'status', status: 200, body: '{"choices":[{}]}' }, 'broken', 200],
    [{ do: 'status', status: 429 }, 'rate_limited', 429],
    [{ do: 'status', status: 503 }, 'server_error', 503],
    [{ do: 'status', status: 302 }, 'server_error', 302],
    [{ do: 'context_length_exceeded' }, 'context_too_long', 400],
    [{ do: 'html' }, 'broken', 200],
    [{ do: 'empty' }, 'broken', 200],
    [{ do: 'cut' }, 'reset', 200],
    [{ do: 'reset' }, 'reset', undefined],
    [{ do: 'answer', length: 2_000_000 }, 'answered', 200],
  ] as const)('%j is reported as %s', async (step, outcome, status) => {
    const provider = await simulate()
    provider.script([step])
    const result = await probe(openBackend(openPools(), provider.baseUrl))
    expect([result.outcome, result.status]).toEqual([outcome, status])
  })
})
