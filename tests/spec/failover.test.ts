import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { Service } from '../service.ts'

let service: Service

beforeEach(async () => {
  service = await Service.start({
    timeouts: { connect: '500ms', first_content: '400ms', whole_answer: '400ms', idle: '600ms' },
  })
})
afterEach(() => service.stop())

/** Every failure of contract 7.3 that a script can cause before the first content. */
const failures: readonly (readonly [string, ScriptStep])[] = [
  ['401', { do: 'status', status: 401 }],
  ['403', { do: 'status', status: 403 }],
  ['408', { do: 'status', status: 408 }],
  ['429', { do: 'status', status: 429 }],
  ['429 with Retry-After', { do: 'status', status: 429, retryAfter: '3' }],
  ['500', { do: 'status', status: 500, repeat: true }],
  ['502', { do: 'status', status: 502 }],
  ['503', { do: 'status', status: 503 }],
  ['504', { do: 'status', status: 504 }],
  ['529', { do: 'status', status: 529 }],
  ['a reset', { do: 'reset' }],
  ['silence', { do: 'silence' }],
  ['a first event that comes too late', { do: 'slow_first', ms: 2_000 }],
  ['headers that come too late', { do: 'slow_headers', ms: 2_000 }],
  ['a broken first event', { do: 'broken_first_event', with: 'garbage' }],
  ['an error as its first event', { do: 'broken_first_event', with: 'error' }],
  ['an empty 200', { do: 'empty' }],
  ['a web page', { do: 'html' }],
]

describe.each([
  ['chat, not streaming', '/chat/completions', { messages: [{ role: 'user', content: 'Hello' }] }],
  ['chat, streamed', '/chat/completions', { messages: [{ role: 'user', content: 'Hello' }], stream: true }],
  ['responses, not streaming', '/responses', { input: 'Hello' }],
  ['responses, streamed', '/responses', { input: 'Hello', stream: true }],
] as const)('%s', (_, path, body) => {
  test.each(failures)(
    'if the first backend gives %s, the next one answers with one retry and one charge',
    async (name, step) => {
      service.providers[0]!.script([step])
      const response = await service.post(path, { model: 'svc-router/frontier', ...body })
      const text = await response.text()
      expect(response.status, text).toBe(200)
      expect(response.headers.get('x-svc-router-retry-count')).toBe('1')
      expect(response.headers.get('x-svc-router-upstream')).toBe('beta')
      expect(response.headers.get('x-quota-used')).toBe('1')
      expect(text).toContain('simulated')
      const record = await recordOf(response)
      expect(record?.attempts.map(({ backend, outcome }) => `${backend} ${outcome}`)).toEqual([
        expect.stringMatching(/^alpha (?!answered)/),
        // A single 500 is retried once (decision 38).
        ...(name === '500' ? ['alpha server_error'] : []),
        'beta answered',
      ])
      expect(record).toMatchObject({ charged: 1, state: 'done' })
      expect(await service.store.usedUnits(service.account.id, new Date().toISOString().slice(0, 7))).toBe(1)
    },
  )
})

test('if the first backend gives 429 with a short Retry-After, it answers after that time, as the preferred model', async () => {
  service.providers[0]!.script([{ do: 'status', status: 429, retryAfter: '1' }])
  const startedMs = performance.now()
  const body = { model: 'svc-router/frontier', messages: [{ role: 'user', content: 'Hello' }] }
  const response = await service.post('/chat/completions', body)
  expect(response.status).toBe(200)
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(950)
  expect(response.headers.get('x-svc-router-upstream')).toBe('alpha')
  expect(response.headers.get('x-quota-used')).toBe('1')
  const record = await recordOf(response)
  expect(record?.attempts.map(({ backend, outcome }) => `${backend} ${outcome}`)).toEqual([
    'alpha rate_limited',
    'alpha answered',
  ])
})

/** Waits until the end of a request is stored, and returns its record. */
async function recordOf(response: Response) {
  const id = response.headers.get('x-request-id') ?? ''
  for (let attempt = 0; attempt < 100; attempt++) {
    const record = await service.store.findRequest(id)
    if (record?.state === 'done') return record
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  return service.store.findRequest(id)
}

test('when the first backend fails thirty simultaneous requests, the next one answers each, charged once', async () => {
  // With the usual time limits: on a busy machine, thirty answers take longer than those above.
  await service.stop()
  service = await Service.start()
  service.providers[0]!.script([{ do: 'status', status: 500, repeat: true }])
  const responses = await Promise.all(Array.from({ length: 30 }, () => service.chat()))
  await Promise.all(responses.map((response) => response.text()))
  expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 30 }, () => 200))
  expect(responses.map((response) => response.headers.get('x-svc-router-upstream'))).toEqual(
    Array.from({ length: 30 }, () => 'beta'),
  )
  const last = await service.chat()
  expect(last.headers.get('x-quota-used')).toBe('31')
  expect(last.headers.get('x-svc-router-retry-count')).toBe('0')
})
