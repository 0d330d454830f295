import { describe, expect, test } from 'vitest'
import { ServiceError } from '../../../src/domain/errors.ts'
import { UpstreamError } from '../../../src/domain/upstream.ts'
import { formatById } from '../../../src/formats/formats.ts'
import { FakeGateway } from '../fake-gateway.ts'
import { settled } from '../manual-clock.ts'

const messages = [{ role: 'user', content: 'Hi' }]
const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const wholeStream = `${chunk({ content: 'Hello' })}${chunk({}, 'stop')}data: [DONE]\n\n`
const wholeChat = JSON.stringify({
  id: 'c',
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
})

/** Sends a chat request and waits until the gateway has called its first backend. */
async function asked(gateway: FakeGateway, body: object = { stream: true }) {
  const answered = gateway.answer('openai-chat', { messages, ...body })
  // The test awaits it later.
  answered.catch(() => {})
  await settled()
  return answered.then(
    () => undefined,
    (error: unknown) => error,
  )
}

/** The same, without waiting for the end. */
function ask(gateway: FakeGateway, body: object = { stream: true }): Promise<{ ended: Promise<unknown> }> {
  const ended = asked(gateway, body)
  return settled().then(() => ({ ended }))
}

describe('a complete answer whose backend does not end its stream', () => {
  const reason = `${chunk({ content: 'Hello' })}${chunk({}, 'stop')}`
  const usage = 'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":5}}\n\n'
  const counted = { inputTokens: 3, outputTokens: 5, source: 'counted' }

  test.each([
    ['relayed', 'openai-chat', { messages, stream: true }, '[DONE]'],
    ['translated', 'openai-responses', { input: 'Hi', stream: true }, 'response.completed'],
    ['translated', 'anthropic-messages', { messages, max_tokens: 9, stream: true }, 'message_stop'],
  ] as const)(
    'the client’s stream ends after a second, and the record waits for the usage (%s %s)',
    async (_, format, body, end) => {
      const gateway = new FakeGateway(['openai-chat'])
      const ended = gateway.answer(format, body)
      await settled()
      const [backend] = gateway.backends
      backend!.head()
      backend!.send(reason)
      await gateway.clock.advance(1_100)
      expect(gateway.sink.text).toContain(end)
      const { text } = gateway.sink
      expect(gateway.settled).toEqual([])
      await gateway.clock.advance(4_000)
      backend!.send(usage.slice(0, 20))
      backend!.send(usage.slice(20))
      await ended
      expect(gateway.settled).toMatchObject([{ outcome: { usage: counted, charged: 1 }, delivery: 'done' }])
      expect(gateway.settled[0]!.outcome.totalMs).toBeLessThan(2_000)
      expect(gateway.settled[0]!.outcome.errorCode).toBeUndefined()
      expect(gateway.sink.text).toBe(text)
    },
  )

  test.each(['silence', 'the end', 'a fault'])('usage is estimated after %s', async (what) => {
    const gateway = new FakeGateway(['openai-chat'])
    const { ended } = await ask(gateway)
    const [backend] = gateway.backends
    backend!.head()
    backend!.send(reason)
    await gateway.clock.advance(1_100)
    if (what === 'the end') backend!.end()
    else if (what === 'a fault') backend!.listener.onError(new UpstreamError('reset'))
    else await gateway.clock.advance(9_500)
    expect(gateway.settled).toEqual([])
    await gateway.clock.advance(1_000)
    await ended
    const [{ outcome }] = gateway.settled as [(typeof gateway.settled)[0]]
    expect(outcome).toMatchObject({ usage: { source: 'estimated' }, charged: 1 })
    expect(outcome.errorCode).toBeUndefined()
    expect(gateway.clock.waiting).toBe(0)
  })

  test('if usage has arrived, the request ends immediately', async () => {
    const gateway = new FakeGateway(['openai-chat'])
    const { ended } = await ask(gateway)
    const [backend] = gateway.backends
    backend!.head()
    backend!.send(`${reason}${usage}`)
    await gateway.clock.advance(1_100)
    await ended
    expect(gateway.settled).toMatchObject([{ outcome: { usage: counted } }])
  })
})

describe('an answer that was not recorded is not delivered', () => {
  test('a stream that was complete before its mark failed is dropped and not charged', async () => {
    const gateway = new FakeGateway(['openai-chat'])
    const { promise, resolve } = Promise.withResolvers<void>()
    gateway.durable = promise
    gateway.deliver = () => {
      throw new Error('the disk is full')
    }
    const { ended } = await ask(gateway)
    gateway.backends[0]!.head()
    gateway.backends[0]!.send(wholeStream)
    gateway.backends[0]!.end()
    resolve()
    await ended
    expect(gateway.sink.isDropped).toBe(true)
    expect(gateway.settled).toMatchObject([
      { outcome: { charged: 0, errorCode: 'record_unavailable' }, delivery: 'none' },
    ])
    expect(gateway.line).toMatchObject({ outcome: 'record_unavailable', charged: 0 })
  })

  // A retry receives what is stored (contract 39.4). Found by the simulated schedule of seed 47,870.
  test.each([true, false])(
    'one whose content is stored is delivered and charged without its mark (stream: %s)',
    async (stream) => {
      const gateway = new FakeGateway(['openai-chat'])
      gateway.sink.stored = () => Promise.resolve()
      gateway.deliver = () => {
        throw new Error('the disk is full')
      }
      const { ended } = await ask(gateway, { stream })
      const [backend] = gateway.backends
      backend!.head(200, stream ? 'text/event-stream' : 'application/json')
      backend!.send(stream ? wholeStream : wholeChat)
      backend!.end()
      await ended
      expect(gateway.sink.isDropped).toBe(false)
      expect(gateway.settled).toMatchObject([{ outcome: { charged: 1 }, delivery: 'done' }])
    },
  )

  test.each([true, false])('a ledger that hangs is awaited for at most 25 s (stream: %s)', async (stream) => {
    const gateway = new FakeGateway(['openai-chat'])
    gateway.durable = new Promise(() => {})
    const { ended } = await ask(gateway, { stream })
    const [backend] = gateway.backends
    backend!.head(200, stream ? 'text/event-stream' : 'application/json')
    backend!.send(stream ? wholeStream : wholeChat)
    backend!.end()
    await gateway.clock.advance(25_000)
    expect(await ended).toMatchObject({ code: 'record_unavailable' })
    expect(gateway.settled).toHaveLength(1)
    expect(gateway.sink.head).toBeUndefined()
    expect(gateway.clock.waiting).toBe(0)
  })
})

test('a bug in the middle of a stream is logged with its location and recorded as internal_error', async () => {
  const gateway = new FakeGateway(['openai-chat'], (id) => ({
    ...formatById(id),
    readAnswer: () => {
      const reader = formatById(id).readAnswer()
      return {
        get finished() {
          return reader.finished
        },
        get lastData() {
          return reader.lastData
        },
        readEvent(data) {
          if (data.includes('"stop"')) throw new TypeError('a bug')
          return reader.readEvent(data)
        },
        readWhole: (body) => reader.readWhole(body),
        usageIn: (data) => reader.usageIn(data),
      }
    },
  }))
  const { ended } = await ask(gateway)
  gateway.backends[0]!.head()
  gateway.backends[0]!.send(chunk({ content: 'Hello' }))
  await settled()
  gateway.backends[0]!.send(chunk({}, 'stop'))
  expect(await ended).toBeUndefined()
  const bugs = gateway.events.filter(({ event }) => event === 'internal_error')
  expect(bugs).toMatchObject([{ requestId: 'req_1', name: 'TypeError' }])
  expect(gateway.settled).toMatchObject([{ outcome: { errorCode: 'internal_error' } }])
  expect(gateway.sink.text).toContain('"code":"internal_error"')
  expect(gateway.sink.text).toContain('"source":"gateway","retryable":true,"request_id":"req_1"')
})

test('an admitted request that fails has its log line, too', async () => {
  const gateway = new FakeGateway(['openai-chat'])
  const { ended } = await ask(gateway)
  gateway.backends[0]!.listener.onError(new UpstreamError('unreachable'))
  expect(await ended).toMatchObject({ code: 'server_is_overloaded' })
  expect(gateway.events.filter(({ event }) => event === 'request')).toMatchObject([
    { requestId: 'req_1', outcome: 'server_is_overloaded', attempts: 1, charged: 0 },
  ])
})

describe('if one backend has failed and the second attempt is running', () => {
  test('the head of a stream that needs keep-alives reports one retry', async () => {
    const gateway = new FakeGateway(['openai-chat', 'openai-chat'])
    const { ended } = await ask(gateway)
    gateway.backends[0]!.listener.onError(new UpstreamError('unreachable'))
    await gateway.clock.advance(10_000)
    expect(gateway.backends[1]!.requests).toHaveLength(1)
    expect(gateway.sink.head?.retryCount).toBe(1)
    gateway.sink.disconnect()
    await ended
  })

  test('the error after the deadline reports one retry', async () => {
    const gateway = new FakeGateway(['openai-chat', 'openai-chat'])
    const { ended } = await ask(gateway, { stream: false })
    gateway.backends[0]!.listener.onError(new UpstreamError('unreachable'))
    await settled()
    gateway.backends[1]!.timeouts.wholeAnswerMs = 1e7
    await gateway.clock.advance(5e6)
    const refusal = await ended
    expect(refusal).toMatchObject({ facts: { retryCount: 1 } })
  })
})

describe('a client’s fault is not counted against the backend', () => {
  test('a client that accepts no data for a minute is recorded as disconnected, and its connection is closed', async () => {
    const gateway = new FakeGateway(['openai-chat'])
    gateway.sink.isReading = false
    const { ended } = await ask(gateway)
    gateway.backends[0]!.head()
    gateway.backends[0]!.send(chunk({ content: 'Hello' }))
    await gateway.clock.advance(71_000)
    expect(await ended).toBeUndefined()
    expect(gateway.settled).toMatchObject([{ outcome: { errorCode: 'client_closed', charged: 1 }, delivery: 'done' }])
    expect(gateway.sink.isDropped).toBe(true)
    expect(gateway.clock.waiting).toBe(0)
  })

  test('a client that disconnects before the whole answer has arrived gets nothing delivered', async () => {
    const gateway = new FakeGateway(['openai-chat'])
    let delivered = 0
    gateway.deliver = () => void (delivered += 1)
    const { ended } = await ask(gateway, {})
    gateway.backends[0]!.head(200, 'application/json')
    gateway.backends[0]!.send(wholeChat)
    gateway.backends[0]!.end()
    gateway.sink.disconnect()
    await ended
    expect(gateway.settled).toMatchObject([{ outcome: { errorCode: 'client_closed', charged: 1 }, delivery: 'none' }])
    expect([delivered, gateway.sink.head]).toEqual([0, undefined])
  })
})

test('a translated response reports that it is not stored, and when it was completed', async () => {
  const gateway = new FakeGateway(['openai-chat'])
  const ended = gateway.answer('openai-responses', { input: 'Hi', store: true })
  await gateway.clock.advance(7_000)
  gateway.backends[0]!.head(200, 'application/json')
  gateway.backends[0]!.send(wholeChat)
  gateway.backends[0]!.end()
  await ended
  const response = JSON.parse(gateway.sink.text) as { store: boolean; created_at: number; completed_at: number }
  expect(response.store).toBe(false)
  expect(response.completed_at - response.created_at).toBe(7)
})

describe('a request that no backend can serve', () => {
  test.each([
    ['openai-responses', { input: 'Hi', background: true }, 'openai-chat', 'unsupported_parameter'],
    ['openai-responses', { input: 'Hi', previous_response_id: 'r' }, 'openai-chat', 'previous_response_not_found'],
    ['openai-responses', { input: [{ type: 'item_reference', id: 'm' }] }, 'openai-chat', 'item_not_found'],
    ['openai-chat', { messages, n: 2 }, 'openai-responses', 'unsupported_parameter'],
  ] as const)('it is rejected before admission: %s %j', async (client, body, backend, code) => {
    const gateway = new FakeGateway([backend, backend])
    await expect(gateway.answer(client, body)).rejects.toMatchObject({ code })
    expect(gateway.admitted).toBe(0)
    expect(gateway.backends[0]!.requests).toHaveLength(0)
  })

  test.each([
    ['anthropic-messages', { max_tokens: 9, messages, stop_sequences: ['x'] }, 'openai-responses', 'stop_sequences'],
    [
      'anthropic-messages',
      { max_tokens: 9, messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 't' }] }] },
      'openai-chat',
      'messages',
    ],
    ['openai-chat', { messages: [{ role: 'tool', tool_call_id: 't', content: 'x' }] }, 'gemini', 'messages'],
    [
      'openai-responses',
      { input: [{ type: 'function_call_output', call_id: 't', output: 'x' }] },
      'anthropic-messages',
      'input',
    ],
    ['openai-chat', { messages, stop: 'x' }, 'openai-responses', 'stop'],
  ] as const)('the error uses the field name of %s: %j', async (client, body, backend, param) => {
    const gateway = new FakeGateway([backend])
    await expect(gateway.answer(client, body)).rejects.toMatchObject({ facts: { param } })
  })

  test('it goes to the backend that can serve it', async () => {
    const gateway = new FakeGateway(['openai-chat', 'openai-responses'])
    const ended = gateway.answer('openai-responses', { input: 'Hi', prompt: { id: 'pmpt_1' } })
    await settled()
    expect(gateway.backends.map(({ requests }) => requests.length)).toEqual([0, 1])
    gateway.sink.disconnect()
    await ended
    expect(gateway.admitted).toBe(1)
  })

  test('a request for several backends of one format is written once', async () => {
    let written = 0
    const gateway = new FakeGateway(['openai-chat', 'openai-chat'], (id) => ({
      ...formatById(id),
      writeRequest(...args) {
        written += 1
        return formatById(id).writeRequest(...args)
      },
    }))
    const ended = gateway.answer('openai-responses', { input: 'Hi' })
    await settled()
    expect(written).toBe(1)
    expect(gateway.backends[0]!.requests[0]?.body).toContain('"content":"Hi"')
    gateway.sink.disconnect()
    await ended
  })
})

describe('a deadline after a backend was asked', () => {
  test.each([
    ['the caller’s deadline is charged like a disconnect', 5_000, 1],
    ['our own deadline is not charged', undefined, 0],
  ])('%s', async (_, timeoutMs, charged) => {
    const gateway = new FakeGateway(['openai-chat'])
    gateway.backends[0]!.timeouts.wholeAnswerMs = 1e7
    const answered = gateway.answer('openai-chat', { messages }, timeoutMs)
    answered.catch(() => {})
    await gateway.clock.advance(timeoutMs ?? 5e6)
    await expect(answered).rejects.toMatchObject({ code: 'upstream_timeout' })
    expect(gateway.settled).toMatchObject([{ outcome: { charged, errorCode: 'upstream_timeout' }, delivery: 'none' }])
  })
})

test('an error names a deadline of less than a second in tenths (contract 6.19)', async () => {
  const gateway = new FakeGateway(['openai-chat'])
  const answered = gateway.answer('openai-chat', { messages }, 500)
  answered.catch(() => {})
  await gateway.clock.advance(500)
  await expect(answered).rejects.toMatchObject({ facts: { words: { seconds: 0.5 } } })
})

test('if this service could not open a connection, the error is server_busy, and no breaker counts it', async () => {
  const gateway = new FakeGateway(['openai-chat', 'openai-chat'])
  for (let count = 0; count < 20; count++) {
    const { ended } = await ask(gateway)
    for (const backend of gateway.backends) {
      backend.listener.onError(new UpstreamError('not_sent'))
      await settled()
    }
    expect(await ended).toMatchObject({ code: 'server_busy' })
  }
  expect(gateway.backends.map(({ requests }) => requests.length)).toEqual([20, 20])
})

describe('a non-streaming answer', () => {
  test('if the account’s memory is used up, the error is server_busy, and no other backend is asked or blamed', async () => {
    const gateway = new FakeGateway(['openai-chat', 'openai-chat'])
    const grown: number[] = []
    gateway.held = {
      grow: (bytes) => {
        grown.push(bytes)
        if (grown.length > 1) throw new ServiceError('server_busy', { retryAfterSeconds: 1 })
      },
    }
    for (let request = 0; request < 6; request += 1) {
      grown.length = 0
      const { ended } = await ask(gateway, { stream: false })
      const [backend, other] = gateway.backends
      backend!.head(200, 'application/json')
      backend!.send(wholeChat.slice(0, 40))
      backend!.send(wholeChat.slice(40))
      expect(await ended).toMatchObject({ code: 'server_busy' })
      expect([grown, other!.requests]).toEqual([[40, wholeChat.length - 40], []])
    }
    expect(gateway.settled.at(-1)).toMatchObject({ outcome: { charged: 0, errorCode: 'server_busy' } })
    expect(gateway.settled.at(-1)!.outcome.attempts).toMatchObject([{ outcome: 'cancelled' }])
    expect(gateway.events.filter(({ event }) => event === 'internal_error')).toEqual([])
  })

  const deep = wholeChat.replace('{', () => `{"x":${'['.repeat(100_000)}${']'.repeat(100_000)},`)

  test.each([true, false])(
    'JSON nested 100,000 deep is the backend’s fault, and the next one answers (%s)',
    async (stream) => {
      const gateway = new FakeGateway(['openai-chat', 'openai-chat'])
      const { ended } = await ask(gateway, { stream })
      const type = stream ? 'text/event-stream' : 'application/json'
      for (const [backend, text] of [
        [gateway.backends[0]!, stream ? `data: ${deep}\n\n` : deep],
        [gateway.backends[1]!, stream ? wholeStream : wholeChat],
      ] as const) {
        backend.head(200, type)
        backend.send(text)
        backend.end()
        await settled()
      }
      expect(await ended).toBeUndefined()
      expect(gateway.sink.text).toContain('Hello')
      expect(gateway.settled[0]!.outcome.attempts.map(({ outcome }) => outcome)).toEqual(['broken', 'answered'])
    },
  )

  test('a stream that continues with JSON nested 100,000 deep ends with an error', async () => {
    const gateway = new FakeGateway(['openai-chat'])
    const { ended } = await ask(gateway)
    gateway.backends[0]!.head()
    gateway.backends[0]!.send(chunk({ content: 'Hello' }))
    await settled()
    gateway.backends[0]!.send(`data: ${deep}\n\n`)
    await ended
    expect(gateway.sink.text).toContain('upstream_broken')
    expect(gateway.settled).toMatchObject([{ outcome: { errorCode: 'upstream_broken' } }])
  })
})

test('if its credentials are rejected, the only backend is asked again after 5 s', async () => {
  const gateway = new FakeGateway(['openai-chat'])
  const [backend] = gateway.backends
  const answer = async (status: number): Promise<unknown> => {
    const asked = backend!.requests.length
    const { ended } = await ask(gateway, { stream: false })
    if (backend!.requests.length === asked) return ended
    backend!.head(status, 'application/json')
    backend!.send(status === 200 ? wholeChat : '{"error":{"message":"no such key"}}')
    backend!.end()
    return ended
  }
  const rejected = { code: 'upstream_credentials_rejected' }
  expect(await answer(401)).toMatchObject(rejected)
  await gateway.clock.advance(4_000)
  expect(await answer(200)).toMatchObject(rejected)
  expect(backend!.requests).toHaveLength(1)
  await gateway.clock.advance(1_000)
  expect(await answer(200)).toBeUndefined()
  expect(await answer(200)).toBeUndefined()
})

test('rejected credentials are the answer only if no backend is left that was not asked', async () => {
  const codes: string[] = []
  for (const count of [3, 4]) {
    const gateway = new FakeGateway(Array(count).fill('openai-chat'))
    const { ended } = await ask(gateway, { stream: false })
    for (const backend of gateway.backends.slice(0, 3)) {
      await settled()
      backend.head(401, 'application/json')
      backend.send('{"error":{"message":"no such key"}}')
      backend.end()
    }
    codes.push(((await ended) as { code: string }).code)
  }
  expect(codes).toEqual(['upstream_credentials_rejected', 'server_is_overloaded'])
})
