import { beforeEach, expect, test } from 'vitest'
import { ServiceError } from '../../../src/domain/errors.ts'
import type { JsonObject } from '../../../src/domain/json.ts'
import { UpstreamError } from '../../../src/domain/upstream.ts'
import { FakeGateway, type FakeBackend } from '../fake-gateway.ts'
import { settled } from '../manual-clock.ts'

const body = { messages: [{ role: 'user', content: 'Hi' }], stream: true }
const chunk = (delta: object, finish: string | null): string =>
  `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`

let gateway: FakeGateway

beforeEach(() => {
  gateway = new FakeGateway(['openai-chat'])
})

function ask(more: JsonObject = {}, timeoutMs?: number): Promise<unknown> {
  return gateway.answer('openai-chat', { ...body, ...more }, timeoutMs).then(
    () => undefined,
    (error: unknown) => error,
  )
}

function limit({ listener }: FakeBackend, retryAfterMs: number): void {
  listener.onHead({ status: 429, contentType: 'application/json', retryAfterMs, requestId: undefined })
  listener.onData(Buffer.from('{}'))
  listener.onEnd()
}

function drop({ listener }: FakeBackend): void {
  listener.onError(new UpstreamError('reset'))
}

function reply(backend: FakeBackend): void {
  backend.head()
  backend.send(`${chunk({ content: 'Hello' }, null)}${chunk({}, 'stop')}data: [DONE]\n\n`)
  backend.end()
}

async function pass(ms: number): Promise<void> {
  await settled()
  await gateway.clock.advance(ms)
  await settled()
}

const calls = (): number[] => gateway.backends.map(({ requests }) => requests.length)
const outcomes = (): unknown => gateway.settled.at(-1)!.outcome.attempts.map(({ outcome }) => outcome)

test('a backend that names at most 2 s is asked again after them if no other is left, for one charge', async () => {
  const end = ask()
  await settled()
  limit(gateway.backends[0]!, 2_000)
  await pass(1_999)
  expect(calls()).toEqual([1])
  await pass(251)
  expect(calls()).toEqual([2])
  reply(gateway.backends[0]!)
  expect(await end).toBeUndefined()
  expect(gateway.sink.text).toContain('Hello')
  expect(outcomes()).toEqual(['rate_limited', 'answered'])
  expect(gateway.settled.at(-1)!.outcome.charged).toBe(1)
})

test('it waits only once', async () => {
  const end = ask()
  await settled()
  limit(gateway.backends[0]!, 1_000)
  await pass(1_250)
  limit(gateway.backends[0]!, 1_000)
  await pass(1_250)
  expect(await end).toMatchObject({ code: 'server_is_overloaded' })
  expect(calls()).toEqual([2])
})

test.each([
  ['a longer time', 2_001, undefined],
  ['a time beyond the deadline', 2_000, 1_500],
])('a backend that names %s is not waited for', async (_, retryAfterMs, timeoutMs) => {
  const end = ask({}, timeoutMs)
  await settled()
  limit(gateway.backends[0]!, retryAfterMs)
  await settled()
  expect(await end).toMatchObject({ code: 'server_is_overloaded' })
  expect(calls()).toEqual([1])
})

test('a connection that is dropped before content is tried once more', async () => {
  const end = ask()
  await settled()
  drop(gateway.backends[0]!)
  await pass(250)
  drop(gateway.backends[0]!)
  await pass(250)
  expect(await end).toBeInstanceOf(ServiceError)
  expect(outcomes()).toEqual(['reset', 'reset'])
})

test('a client that disconnects ends the wait', async () => {
  const end = ask()
  await settled()
  limit(gateway.backends[0]!, 2_000)
  await settled()
  gateway.sink.disconnect()
  await pass(5_000)
  await end
  expect(calls()).toEqual([1])
})
