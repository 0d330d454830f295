import { expect, test } from 'vitest'
import { StoreUnavailable } from '../../src/runtime/store-unavailable.ts'
import { FakeGateway } from './fake-gateway.ts'

test('counters that cannot be read are a 503 that a client may retry, not an internal error', async () => {
  const gateway = new FakeGateway(['openai-chat'])
  gateway.readSignals = () => Promise.reject(new StoreUnavailable())
  await expect(gateway.signals()).rejects.toMatchObject({ code: 'store_unavailable', facts: { retryAfterSeconds: 1 } })
})
