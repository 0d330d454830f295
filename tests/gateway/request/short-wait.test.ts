import { beforeEach, expect, test } from 'vitest'
import { UpstreamError } from '../../../src/domain/upstream.ts'
import { FakeGateway, type FakeBackend } from '../fake-gateway.ts'
import { failOnce } from '../routing/breaker-outcomes.ts'

let gateway: FakeGateway
let first: FakeBackend
let second: FakeBackend
const body = { model: 'p', stream: true, messages: [{ role: 'user', content: 'Why?' }] }

async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve()
}

const calls = (): number[] => gateway.backends.map(({ requests }) => requests.length)

/** Asks the first backend, which answers 429 with this time. */
async function rejectedFor(retryAfterMs: number | undefined): Promise<void> {
  void gateway.answer('openai-chat', body).catch(() => {})
  await settled()
  first.listener.onHead({ status: 429, contentType: 'application/json', retryAfterMs, requestId: undefined })
  first.end()
  await settled()
}

beforeEach(() => {
  gateway = new FakeGateway(['openai-chat', 'openai-chat', 'openai-chat'])
  ;[first, second] = gateway.backends as [FakeBackend, FakeBackend]
  for (const backend of gateway.backends) Object.assign(backend, { model: `model of ${backend.id}` })
})

test('a short time is waited for, once, if the next backend has another model', async () => {
  await rejectedFor(2_000)
  expect(calls()).toEqual([1, 0, 0])
  await gateway.clock.advance(1_999)
  await settled()
  expect(calls()).toEqual([1, 0, 0])
  await gateway.clock.advance(21)
  await settled()
  expect(calls()).toEqual([2, 0, 0])
  first.listener.onHead({ status: 429, contentType: 'application/json', retryAfterMs: 1_000, requestId: undefined })
  first.end()
  await settled()
  expect(calls()).toEqual([2, 1, 0])
})

test.each([
  ['a longer time', 2_001],
  ['no time', undefined],
])('%s is not waited for', async (_, retryAfterMs) => {
  await rejectedFor(retryAfterMs)
  expect(calls()).toEqual([1, 1, 0])
})

test('nothing waits if the next backend has the same model, or is not known to be slower', async () => {
  Object.assign(second, { model: first.model })
  await rejectedFor(1_000)
  expect(calls()).toEqual([1, 1, 0])
  gateway = new FakeGateway(['openai-chat', 'openai-chat'])
  gateway.profile.routing = { sort: 'latency' }
  void gateway.answer('openai-chat', body).catch(() => {})
  await settled()
  const asked = gateway.backends.find(({ requests }) => requests.length === 1)!
  asked.listener.onHead({ status: 429, contentType: 'application/json', retryAfterMs: 1_000, requestId: undefined })
  asked.end()
  await settled()
  expect(calls()).toEqual([1, 1])
})

test('a last resort that a request did not ask, because it waited, is asked if the wait was in vain', async () => {
  gateway = new FakeGateway(['openai-chat', 'openai-chat'])
  ;[first, second] = gateway.backends as [FakeBackend, FakeBackend]
  Object.assign(second, { model: 'another model' })
  failOnce(gateway.breakers, second.id, new UpstreamError('rejected_credentials'))
  await gateway.clock.advance(6_000)
  await rejectedFor(1_000)
  expect(calls()).toEqual([1, 0])
  await gateway.clock.advance(1_020)
  await settled()
  expect(calls()).toEqual([2, 0])
  first.listener.onHead({ status: 429, contentType: 'application/json', retryAfterMs: 1_000, requestId: undefined })
  first.end()
  await settled()
  expect(calls()).toEqual([2, 1])
})

test('a wait that ends with its request takes nothing from the retry budget', async () => {
  for (const { id } of gateway.backends.slice(1))
    for (let count = 0; count < 5; count++) failOnce(gateway.breakers, id, new UpstreamError('timeout'))
  for (let request = 0; request < 6; request++) {
    await rejectedFor(2_000)
    gateway.sink.disconnect()
    await gateway.clock.advance(2_001)
    await settled()
  }
  expect(calls()).toEqual([6, 0, 0])
  await rejectedFor(3_000)
  expect(calls()).toEqual([7, 1, 0])
})
