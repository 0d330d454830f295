import { describe, expect, test } from 'vitest'
import { StoreUnavailable } from '../../src/runtime/store-unavailable.ts'
import { FakeGateway } from './fake-gateway.ts'
import { settled } from './manual-clock.ts'

test('counters that cannot be read are a 503 that a client may retry, not an internal error', async () => {
  const gateway = new FakeGateway(['openai-chat'])
  gateway.readSignals = () => Promise.reject(new StoreUnavailable())
  await expect(gateway.signals()).rejects.toMatchObject({ code: 'store_unavailable', facts: { retryAfterSeconds: 1 } })
})

describe('a request that does not run yet when all are aborted', () => {
  const body = { messages: [{ role: 'user', content: 'Hi' }], stream: true }
  const restarting = { code: 'restarting', facts: { retryAfterSeconds: 1 } }

  test('is not admitted', async () => {
    const gateway = new FakeGateway(['openai-chat'])
    expect(gateway.abortAll()).toBe(0)
    await expect(gateway.answer('openai-chat', body)).rejects.toMatchObject(restarting)
    expect(gateway.admitted).toBe(0)
  })

  test('is not charged, and calls no backend, if its admission was awaited', async () => {
    const gateway = new FakeGateway(['openai-chat'])
    const { promise, resolve } = Promise.withResolvers<void>()
    gateway.prepare = () => promise
    const rejected = expect(gateway.answer('openai-chat', body)).rejects.toMatchObject({
      ...restarting,
      isRecorded: true,
    })
    await settled()
    expect(gateway.abortAll()).toBe(0)
    resolve()
    await rejected
    expect(gateway.backends[0]!.requests).toEqual([])
    expect(gateway.settled).toMatchObject([{ outcome: { charged: 0, errorCode: 'restarting' }, delivery: 'none' }])
  })
})
