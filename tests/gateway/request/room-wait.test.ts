import { beforeEach, expect, test } from 'vitest'
import { UpstreamError } from '../../../src/domain/upstream.ts'
import { FakeGateway } from '../fake-gateway.ts'
import { failOnce } from '../routing/breaker-outcomes.ts'

let gateway: FakeGateway
const body = { model: 'p', stream: true, messages: [{ role: 'user', content: 'Why?' }] }
/** Ends one of the calls that fill the first backend. */
const ends: (() => void)[] = []

async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve()
}

const calls = (): number[] => gateway.backends.map(({ requests }) => requests.length)

/** A backend's provider accepts three calls at once, and as many are open. */
function fill(backendId: string): void {
  const observer = { sawAnswer: () => {}, sawContent: () => {}, lost: () => {}, ended: () => {} }
  const begin = () => gateway.statistics.begin({ backend: { id: backendId }, accountId: 'other', kind: 0 }, observer)
  const open = Array.from({ length: 5 }, begin)
  for (const call of open.splice(3)) call.ended(new UpstreamError('rate_limited'))
  ends.push(...open.map((call) => () => call.ended()))
}

async function ask(accountId = 'a', timeoutMs?: number): Promise<void> {
  gateway.accountId = accountId
  void gateway.answer('openai-chat', body, timeoutMs).catch(() => {})
  await settled()
}

async function endOne(): Promise<void> {
  ends.pop()!()
  await settled()
}

beforeEach(() => {
  ends.length = 0
  gateway = new FakeGateway(['openai-chat', 'openai-chat'])
})

test('nothing waits while another backend has room', async () => {
  fill('b0')
  await ask()
  expect(calls()).toEqual([0, 1])
})

test('if all are full, a request waits until a call to its backend ends', async () => {
  fill('b1')
  fill('b0')
  await ask()
  expect(calls()).toEqual([0, 0])
  await gateway.clock.advance(1_999)
  expect(calls()).toEqual([0, 0])
  await endOne()
  expect(calls()).toEqual([1, 0])
})

test('after 2 s, or a quarter of its own time, it is sent all the same: what is known is an estimate', async () => {
  fill('b1')
  fill('b0')
  await ask()
  await ask('a', 4_000)
  await gateway.clock.advance(900)
  await settled()
  expect(calls()).toEqual([1, 0])
  await gateway.clock.advance(1_100)
  await settled()
  expect(calls()).toEqual([2, 0])
})

test('accounts take turns, and later requests do not overtake those that wait', async () => {
  gateway = new FakeGateway(['openai-chat'])
  fill('b0')
  for (let count = 0; count < 80; count++) await ask('hostile')
  await ask('neighbor')
  const accounts: string[] = []
  const { statistics } = gateway
  const begin = statistics.begin.bind(statistics)
  statistics.begin = (call, next) => {
    accounts.push(call.accountId)
    return begin(call, next)
  }
  await endOne()
  await ask('newcomer')
  await endOne()
  await endOne()
  expect(accounts).toEqual(['hostile', 'neighbor', 'hostile'])
})

test('the wait ends with the request', async () => {
  gateway = new FakeGateway(['openai-chat'])
  fill('b0')
  await ask()
  gateway.sink.disconnect()
  await settled()
  await ask('b')
  await endOne()
  expect(calls(), 'the turn is that of the next request').toEqual([1])
  await gateway.clock.advance(3_000)
  await settled()
  expect(calls()).toEqual([1])
})

test('a wait for a failing backend that ends with the request takes nothing from the retry budget', async () => {
  fill('b1')
  for (let count = 0; count < 5; count++) failOnce(gateway.breakers, 'b1', new UpstreamError('timeout'))
  const [first] = gateway.backends
  const askAndFail = async (): Promise<void> => {
    await ask()
    first!.listener.onHead({ status: 429, contentType: 'application/json', retryAfterMs: 3_000, requestId: undefined })
    first!.end()
    await settled()
  }
  for (let request = 0; request < 6; request++) {
    await askAndFail()
    gateway.sink.disconnect()
    await gateway.clock.advance(3_001)
    await settled()
  }
  expect(calls()).toEqual([6, 0])
  await askAndFail()
  await endOne()
  expect(calls()).toEqual([7, 1])
})
