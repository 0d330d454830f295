import type { IncomingMessage } from 'node:http'
import { describe, expect, test } from 'vitest'
import { ServiceError } from '../../../src/domain/errors.ts'
import type { ServiceEvent } from '../../../src/domain/events.ts'
import type { AnswerSink, ModelRequest, Principal } from '../../../src/gateway/ports.ts'
import type { ConnectionCache } from '../../../src/http/websocket/connection-cache.ts'
import { SocketRequests, type SocketRequestsDeps } from '../../../src/http/websocket/socket-requests.ts'
import { SocketSink, type SocketEnd } from '../../../src/http/websocket/socket-sink.ts'
import { settled } from '../../gateway/manual-clock.ts'

const principal = { accountId: 'a', keyId: 'k' } as Principal
/** A connection that takes everything. */
const end = {
  socket: { terminate: () => {} },
  raw: { cork: () => {}, uncork: () => {}, on: () => {}, off: () => {} },
} as unknown as SocketEnd

/** Answers one message with `answer`, and returns what was logged. */
async function run(answer: (sink: AnswerSink) => Promise<void>) {
  const events: ServiceEvent[] = []
  const requests = new SocketRequests({
    gateway: { answer: (_principal: Principal, _request: ModelRequest, sink: AnswerSink) => answer(sink) },
    limits: { bodyBytes: 1_000_000 },
    nowMs: () => 0,
    log: (event: ServiceEvent) => void events.push(event),
    authenticate: () => principal,
    intake: { answerInTurn: () => ({ grow: () => {}, [Symbol.dispose]: () => {} }) },
    work: { begin: () => ({ spend: () => {} }) },
  } as unknown as SocketRequestsDeps)
  const error = await requests.run({
    bytes: Buffer.from('{"type":"response.create","model":"p","input":"Hi"}'),
    requestId: 'req_1',
    request: { headers: {}, rawHeaders: [] } as unknown as IncomingMessage,
    owner: principal,
    memory: {} as ConnectionCache,
    sink: new SocketSink(
      end,
      'req_1',
      () => 0,
      () => {},
    ),
    ending: { response: undefined, isFinal: false },
  })
  return { error, events }
}

describe('what fails after the answer was sent', () => {
  test.each([
    ['a bug is logged', new TypeError('x'), [{ event: 'internal_error', requestId: 'req_1', name: 'TypeError' }]],
    ['an expected error is not', new ServiceError('record_unavailable'), []],
  ])('%s', async (_what, thrown, logged) => {
    const { promise, reject } = Promise.withResolvers<void>()
    const { error, events } = await run((sink) => {
      sink.end()
      return promise
    })
    expect([error, events]).toEqual([undefined, []])
    reject(thrown)
    await settled()
    expect(events).toMatchObject(logged)
    expect(events).toHaveLength(logged.length)
  })
})
