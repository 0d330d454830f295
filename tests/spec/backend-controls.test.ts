import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { controlBackend, type BackendCommand } from '../../src/accounts/backends/backend-controls.ts'
import { startApp } from '../../src/app/app.ts'
import { Service } from '../service.ts'

let service: Service

beforeEach(async () => {
  service = await Service.start()
})
afterEach(() => service.stop())

const control = (order: BackendCommand): Promise<void> =>
  controlBackend({ ...service.accountsDeps, store: service.store }, order)
const drain = (backend: string): Promise<void> => control({ step: 'drained', backend, reason: 'maintenance' })

async function answersWith(backend: string | null): Promise<void> {
  await expect
    .poll(
      async () => {
        const response = await service.chat()
        await response.text()
        return response.headers.get('x-svc-router-upstream')
      },
      { timeout: 1_000, interval: 50 },
    )
    .toBe(backend)
}

describe('a drained backend', () => {
  test('a drained backend gets no new request within a second, while its running stream finishes', async () => {
    service.providers[0]!.script([{ do: 'answer', words: 40, tokenDelayMs: 50 }])
    const running = await service.chat({ stream: true })
    expect(running.headers.get('x-svc-router-upstream')).toBe('alpha')
    await drain('alpha')
    await answersWith('beta')
    const asked = service.providers[0]!.captured().length
    for (let request = 0; request < 5; request++) await (await service.chat()).text()
    expect(service.providers[0]!.captured().length).toBe(asked)
    const text = await running.text()
    expect(text).toContain('"finish_reason":"stop"')
    expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true)
  })

  test('a restored backend is asked again', async () => {
    await drain('alpha')
    await answersWith('beta')
    await control({ step: 'undrained', backend: 'alpha' })
    await answersWith('alpha')
  })

  test('a drained backend stays drained after a restart, from the first request on', async () => {
    await drain('alpha')
    await service.app.stop()
    const again = await startApp(service.config, { log: () => {} })
    try {
      const response = await service.chat()
      expect(response.headers.get('x-svc-router-upstream')).toBe('beta')
      await response.text()
      expect(service.providers[0]!.captured().length).toBe(0)
    } finally {
      await again.stop()
    }
  })
})

test('if all backends are held, the 503 gives the reason for each, nothing is charged, and no backend is asked', async () => {
  await drain('alpha')
  await drain('beta')
  await control({ step: 'quarantined', backend: 'gamma', reason: 'credential' })
  await answersWith(null)
  const response = await service.chat()
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '60'])
  expect(response.headers.get('x-should-retry')).toBe('true')
  expect(response.headers.get('x-svc-router-retry-count')).toBe('0')
  expect(await response.json()).toMatchObject({
    error: {
      code: 'server_is_overloaded',
      attempts: [],
      passed_by: [
        { backend: 'alpha', reason: 'drained' },
        { backend: 'beta', reason: 'drained' },
        { backend: 'gamma', reason: 'quarantined' },
      ],
    },
  })
  await expect
    .poll(async () => (await service.store.listRequests({ limit: 1 }))[0])
    .toMatchObject({ charged: 0, attempts: [], errorCode: 'server_is_overloaded' })
})

test('a fusion asks no backend that is held', async () => {
  await drain('alpha')
  await answersWith('beta')
  const before = service.providers[0]!.captured().length
  const response = await service.chat({ model: 'svc-router/fusion' })
  expect(response.status, await response.text()).toBe(200)
  expect(service.providers[0]!.captured().length).toBe(before)
})

test('a release ends a quarantine that the service started itself (contract 24.9)', async () => {
  service.providers[0]!.script([{ do: 'status', status: 401 }])
  await answersWith('beta')
  await answersWith('beta')
  await control({ step: 'released', backend: 'alpha' })
  await answersWith('alpha')
})
