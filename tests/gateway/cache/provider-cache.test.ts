import { describe, expect, test } from 'vitest'
import type { CacheContext } from '../../../src/gateway/cache/cache-context.ts'
import { cacheHeader, cacheRequestFor } from '../../../src/gateway/cache/provider-cache.ts'
import { vendorEndpoint, vendors, type VendorId } from '../../../src/providers/registry.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import { cachingProviders, session, written } from '../../simulation/caches/cache-world.ts'
import { someBackend } from '../routing/some-backend.ts'

const keys = { id: 'k', key: new Secret(new Uint8Array(32)) }
const named = { digest: 'session', id: 'ses_1', isNamed: true }
const unnamed = { digest: 'session', id: 'ses_1', isNamed: false }
const context: CacheContext = { accountId: 'acc_1', addsMarks: true, keys, session: named }

function keyOf(
  vendor: VendorId,
  callerKey?: string,
  { model = 'm', isManaged = false, ...own }: Partial<CacheContext> & { model?: string; isManaged?: boolean } = {},
): string | undefined {
  const { dialect } = vendorEndpoint(vendors[vendor])
  const backend = someBackend('b', { dialect, model, isManaged })
  return cacheRequestFor(backend, dialect, callerKey, { ...context, ...own }).key
}

describe('the key that leads requests to one cache', () => {
  test('is the caller’s own, and otherwise one of the session', () => {
    expect(keyOf('mistral', 'mine')).toBe('mine')
    expect(keyOf('mistral')).toMatch(/^[\w-]{43}$/)
    expect(keyOf('mistral', undefined, { session: { ...named, digest: 'other' } })).not.toBe(keyOf('mistral'))
    expect(keyOf('mistral', undefined, { session: undefined })).toBeUndefined()
  })

  test('is shortened where a provider takes fewer characters', () => {
    expect(keyOf('openai', 'x'.repeat(64))).toHaveLength(64)
    expect(keyOf('openai', 'x'.repeat(65))).toHaveLength(43)
  })

  test('is none for a session that its client did not name, unless nothing is cached without one', () => {
    expect(keyOf('openai')).toMatch(/^[\w-]{43}$/)
    expect(keyOf('openai', undefined, { session: unnamed })).toBeUndefined()
    expect(keyOf('openai', 'mine', { session: unnamed })).toBe('mine')
    expect(keyOf('mistral', undefined, { session: unnamed })).toBe(keyOf('mistral'))
  })

  test('is one of the account for models that keep keys apart', () => {
    const own = keyOf('openai', undefined, { model: 'gpt-5.6' })
    expect(own).toMatch(/^[\w-]{43}$/)
    expect(keyOf('openai', undefined, { model: 'gpt-5.6', session: unnamed })).toBe(own)
    expect(keyOf('openai', undefined, { model: 'gpt-5.6', accountId: 'acc_2' })).not.toBe(own)
  })

  test('says nothing of another account’s cache where accounts share a credential', () => {
    const first = keyOf('openai', 'guessable', { isManaged: true })
    expect(first).toMatch(/^[\w-]{43}$/)
    expect(keyOf('openai', 'guessable', { isManaged: true, accountId: 'acc_2' })).not.toBe(first)
  })

  test('is not sent to providers that take none', () => {
    expect(keyOf('groq', 'mine')).toBeUndefined()
    expect(keyOf('vllm', 'mine')).toBeUndefined()
  })

  test('is a header for chat at xAI', () => {
    const chat = someBackend('x', { dialect: vendorEndpoint(vendors.xai, 'openai-chat').dialect })
    expect(cacheHeader(chat, 'mine', context)).toEqual(['x-grok-conv-id', expect.stringMatching(/^[\w-]{43}$/)])
    expect(cacheHeader(chat, undefined, { ...context, session: undefined })).toBeUndefined()
    const responses = someBackend('x', { dialect: vendorEndpoint(vendors.xai, 'openai-responses').dialect })
    expect(cacheHeader(responses, 'mine', context)).toBeUndefined()
  })
})

describe('marks', () => {
  const body = {
    model: 'svc-router/frontier',
    messages: [{ role: 'user', content: 'Hi' }],
    tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
  }
  const { backend } = cachingProviders[0]!

  test('are added unless the profile or the backend turns them off', () => {
    expect(written(backend, 'openai-chat', body).text).toContain('cache_control')
    expect(written(backend, 'openai-chat', body, { ...session, addsMarks: false }).text).not.toContain('cache_control')
    const off = { ...backend, dialect: { ...backend.dialect, leavesMarks: true } }
    expect(written(off, 'openai-chat', body).text).not.toContain('cache_control')
  })

  test('of the caller are kept even then, with their lifetime', () => {
    const mark = { type: 'ephemeral', ttl: '1h' }
    const content = [{ type: 'text', text: 'Hi', cache_control: mark }]
    const own = { ...body, messages: [{ role: 'user', content }] }
    const sent = written(backend, 'openai-chat', own, { ...session, addsMarks: false })
    expect(sent.body['messages']).toEqual([{ role: 'user', content }])
    expect(sent.text.split('cache_control')).toHaveLength(2)
  })

  test('are not sent to a backend that rejected the field', () => {
    const rejecting = { ...backend, dialect: { ...backend.dialect, refusedFields: ['cache_control'] } }
    expect(written(rejecting, 'openai-chat', body).text).not.toContain('cache_control')
  })

  test('a relayed request that needs none keeps every byte but the model', () => {
    const single = '{ "max_tokens":10, "messages":[{"role":"user","content":"Hi"}] ,"model":"svc-router/frontier"}'
    const sent = written(backend, 'anthropic-messages', JSON.parse(single), session, single)
    expect(sent.text).toBe('{"max_tokens":10, "messages":[{"role":"user","content":"Hi"}] ,"model":"claude-opus-5"}')
  })

  test('the report of Claude Code goes only to Claude', () => {
    const report = { type: 'text', text: 'x-anthropic-billing-header: cc_version=2;' }
    const system = [report, { type: 'text', text: 'You are an agent.' }]
    const own = { model: 'svc-router/frontier', max_tokens: 10, system, messages: [{ role: 'user', content: 'Hi' }] }
    expect(written(backend, 'anthropic-messages', own).body['system']).toEqual(system)
    const other = { ...backend, model: 'kimi-k2' }
    expect(written(other, 'anthropic-messages', own).body['system']).toEqual(system.slice(1))
  })
})
