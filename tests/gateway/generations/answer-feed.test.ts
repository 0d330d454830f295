import { expect, test } from 'vitest'
import { ServiceError } from '../../../src/domain/errors.ts'
import { AnswerFeed } from '../../../src/gateway/generations/answer-feed.ts'
import { signals } from '../../simulation/simulated-gateway.ts'
import { ManualClock } from '../manual-clock.ts'
import { collectingSink } from './collecting-sink.ts'

const none = (): void => {}
const head = { stream: true, upstream: undefined, simulated: false, retryCount: 0, signals }

/** A feed that is too large to be stored: it has only what its clients have not read. */
function openPartial(brokenEnd = (_: ServiceError | undefined, events: Buffer): Buffer => events) {
  const feed = new AnswerFeed({ isStream: true, clock: new ManualClock(), brokenEnd })
  const { sink, received } = collectingSink()
  const followed = feed.follow({ sink, signals })
  feed.setHead(head)
  feed.push(Buffer.from('data: 1\n\ndata: 2\n\n'))
  feed.forget(none)
  feed.push(Buffer.from('data: 3\n\n'))
  return { feed, sink, followed, received }
}

test('a client that comes when the beginning is gone gets an error, and does not wait', async () => {
  const { feed, sink, followed, received } = openPartial()
  await expect(feed.follow({ sink, signals })).rejects.toMatchObject({ code: 'answer_interrupted' })
  feed.end()
  expect(await followed).toBe('over')
  expect(received()).toBe('data: 1\n\ndata: 2\n\ndata: 3\n\n')
})

test('the end of an answer whose beginning is gone continues its first event and its latest one', async () => {
  const { feed, followed, received } = openPartial((_, events) => Buffer.from(`[${events.toString()}]`))
  feed.push(feed.brokenEnd(undefined))
  feed.end()
  expect(await followed).toBe('over')
  expect(received()).toContain('[data: 1\n\ndata: 3\n\n]')
})

test('a complete answer in several parts is sent to a client that comes after its end', async () => {
  const feed = new AnswerFeed({ isStream: false, clock: new ManualClock(), brokenEnd: (_, events) => events })
  feed.setHead({ ...head, stream: false })
  feed.push(Buffer.from('{"a":'))
  feed.push(Buffer.from('1}'))
  feed.end()
  const { sink, received } = collectingSink()
  expect(await feed.follow({ sink, signals })).toBe('over')
  expect(received()).toBe('{"a":1}')
})

/** A client that takes nothing more once it is blocked, until it drains. */
function slowSink() {
  const client = { isBlocked: false, isDropped: false, drain: none, received: 0 }
  const sink = {
    ...collectingSink().sink,
    write: (bytes: string | Uint8Array) => {
      client.received += bytes.length
      return !client.isBlocked
    },
    drop: () => (client.isDropped = true),
    onDrain: (run: () => void) => (client.drain = run),
  }
  return { client, sink }
}

/** A feed of an answer that is not stored, with clients of which those named are blocked. */
function openUnstored(...blocked: readonly boolean[]) {
  const drained = { times: 0 }
  const feed = new AnswerFeed({ isStream: true, clock: new ManualClock(), brokenEnd: (_, events) => events })
  const clients = blocked.map((isBlocked) => {
    const { client, sink } = slowSink()
    client.isBlocked = isBlocked
    void feed.follow({ sink, signals })
    return client
  })
  feed.setHead(head)
  feed.push(Buffer.from('data: 1\n\n'))
  feed.forget(() => (drained.times += 1))
  const push = (): void => feed.push(Buffer.alloc(100 * 1024))
  return { feed, clients, drained, push }
}

test('a client that reads nothing does not hold up one that keeps up, and is disconnected once it is far behind', () => {
  const { feed, clients, push } = openUnstored(true, false)
  const [stalled, reading] = clients
  for (let pushed = 1; pushed <= 20; pushed += 1) {
    push()
    expect(feed.isBehind).toBe(false)
    expect(stalled!.isDropped).toBe(pushed > 5)
  }
  expect(reading).toMatchObject({ isDropped: false, received: 9 + 20 * 100 * 1024 })
})

test('if all clients are behind, the answer waits for the first that goes on, and nobody is disconnected', () => {
  const { feed, clients, drained, push } = openUnstored(true, true)
  for (let pushed = 1; pushed <= 3; pushed += 1) push()
  expect(feed.isBehind).toBe(true)
  const [first, second] = clients
  first!.isBlocked = false
  first!.drain()
  expect([feed.isBehind, drained.times]).toEqual([false, 1])
  expect([first!.isDropped, second!.isDropped]).toEqual([false, false])
})
