import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { SkippingClock } from '../../../src/simulation/skipping-clock.ts'
import { settingsFor, openEventStream, startScriptedUpstream } from '../../faults/scripted-upstream.ts'
import { expectUsage } from '../../refusals.ts'
import type { Service, ServiceOptions } from '../../service.ts'
import { shareServices } from '../../shared-service.ts'
import { SocketClient, type Asked, type SocketEvent } from '../../socket-client.ts'

const fixtures = join(import.meta.dirname, '..', '..', 'fixtures', 'client-requests')
const minuteMs = 60_000

const share = shareServices()
let service: Service
let clients: SocketClient[] = []

afterEach(() => {
  for (const client of clients) client.socket.terminate()
  clients = []
})

async function start(options: ServiceOptions = {}): Promise<void> {
  service = await share({ formats: ['openai-responses'], ...options })
}

async function open(asked: Asked = {}, options = {}): Promise<SocketClient> {
  const client = await SocketClient.open(service, asked, options)
  clients.push(client)
  return client
}

/** Settings with a plan of these limits. */
function plan(requests_per_minute: number, requests_per_month: number): Record<string, unknown> {
  return { plans: { max: { name: 'Max', requests_per_minute, requests_per_month, premium: true } } }
}

const records = (): Promise<readonly { readonly id: string; readonly charged: number; readonly state: string }[]> =>
  service.store.listRequests({ accountId: service.account.id, limit: 100 })

/** Events without the fields that differ between answers. */
function shapeOf(events: readonly SocketEvent[]): unknown {
  const text = JSON.stringify(events.map((event) => ({ ...event, headers: undefined })))
  return JSON.parse(text.replaceAll(/"(?:id|item_id)":"[^"]*"|"(?:created|completed)_at":\d+/g, '"x":0'))
}

describe.each(['openai-chat', 'openai-responses'] as const)('an answer of a backend of format %s', (format) => {
  test('its events equal those over HTTP, each as one JSON message, without [DONE]', async () => {
    await start({ formats: [format] })
    const client = await open()
    const { events, text } = await client.turn({ stream: true })
    expect(text).toBe('This is a simulated answer from alpha. You said: "Say hello.".')
    const overHttp = await (await service.responses({ stream: true })).text()
    expect(overHttp.endsWith('data: [DONE]\n\n')).toBe(true)
    const data = overHttp.split('\n').filter((line) => line.startsWith('data: {'))
    expect(shapeOf(events)).toEqual(shapeOf(data.map((line) => JSON.parse(line.slice(6)) as SocketEvent)))
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index))
    await delay(20)
    expect(client.waiting).toEqual([])
  })

  test('non-Latin text arrives unchanged', async () => {
    await start({ formats: [format] })
    const client = await open()
    const text = 'Grüße, 世界 🌍 \u2028 "quoted" \\n {"type":"response.completed"}\n\ndata: [DONE]\n\n.'
    service.providers[0]!.script([{ do: 'answer', text }])
    expect((await client.turn()).text).toBe(text)
  })

  test('a broken answer ends with two error events, and the connection stays usable', async () => {
    await start({ formats: [format] })
    service.providers[0]!.script([{ do: 'cut', afterEvents: 8, words: 30 }])
    const client = await open()
    const { events, last } = await client.turn()
    const error = events.at(-2)!
    expect(error).toMatchObject({ type: 'error', code: 'upstream_broken', error: { code: 'upstream_broken' } })
    expect(last).toMatchObject({ type: 'response.failed', response: { error: { code: 'upstream_broken' } } })
    expect((await client.turn()).last.type).toBe('response.completed')
    await expect.poll(async () => (await records()).map(({ charged }) => charged)).toEqual([1, 1])
  })
})

describe('each turn is a separate request', () => {
  test('it has its own request ID, record, charge, and signals, which its first message carries', async () => {
    await start()
    const client = await open()
    const turns = [await client.turn(), await client.turn()]
    await expect.poll(async () => (await records()).map(({ state }) => state)).toEqual(['done', 'done'])
    const ids = turns.map(({ events }) => events[0]!.headers!['x-request-id'])
    expect((await records()).map(({ id }) => id).toReversed()).toEqual(ids)
    for (const [index, { events }] of turns.entries()) {
      expect(events[0]!.headers).toMatchObject({ 'x-svc-router-retry-count': '0', 'x-svc-router-upstream': 'alpha' })
      expect(expectUsage(new Headers(events[0]!.headers))['x-quota-used']).toBe(index + 1)
      for (const event of events.slice(1)) expect(event.headers).toBeUndefined()
    }
    const [record] = await records()
    expect(record).toMatchObject({ charged: 1, stream: true, format: 'openai-responses', usage: { source: 'counted' } })
  })

  test('it fails over like any other request', async () => {
    await start({ formats: ['openai-responses', 'openai-chat'] })
    service.providers[0]!.script([{ do: 'status', status: 503 }])
    const client = await open()
    const { events, text } = await client.turn()
    expect(text).toContain('simulated answer from beta')
    expect(events[0]!.headers).toMatchObject({ 'x-svc-router-retry-count': '1', 'x-svc-router-upstream': 'beta' })
  })

  test('it gets an error if every backend fails, and the next turn is served', async () => {
    await start()
    service.providers[0]!.script([{ do: 'status', status: 503 }])
    const client = await open()
    const { last } = await client.turn()
    expect(last).toMatchObject({ type: 'error', status: 503, error: { code: 'server_is_overloaded', retryable: true } })
    expect(last.headers).toMatchObject({ 'retry-after': expect.stringMatching(/^\d+$/) as string })
  })

  test('at the minute’s limit it gets a 429, and succeeds on the same connection after the wait', async () => {
    const clock = new SkippingClock()
    await start({ clock, settings: plan(1, 100) })
    const client = await open()
    const first = await client.turn({ store: false })
    const next = { store: false, previous_response_id: first.last.response!.id, input: 'And again.' }
    const { last } = await client.turn(next)
    expect(last).toMatchObject({ type: 'error', status: 429, error: { code: 'rate_limit_exceeded', retryable: true } })
    expect(last.error!.message).toMatch(/Please try again in \d+s\.$/)
    expectUsage(new Headers(last.headers))
    await clock.skip(Number(last.headers!['retry-after']) * 1000)
    expect((await client.turn(next)).text).toContain('You said: "And again."')
    expect(service.providers[0]!.captured().at(-1)!.body).toContain('Say hello.')
    expect(await records()).toHaveLength(2)
  })

  test('at the month’s limit it gets a 402 with the upgrade link, and no backend is asked', async () => {
    await start({ settings: plan(100, 1) })
    const client = await open()
    await client.turn()
    const { last } = await client.turn()
    expect(last).toMatchObject({
      type: 'error',
      status: 402,
      error: { code: 'insufficient_quota', upgradeUrl: expect.any(String) as string, source: 'client' },
    })
    expect(last.headers).toMatchObject({ 'x-should-retry': 'false', 'x-quota-remaining': '0' })
    expect(last.headers).not.toHaveProperty('retry-after')
    expect(service.providers[0]!.captured()).toHaveLength(1)
  })

  test.each([
    ['an unknown profile', { model: 'gpt-4' }, 404, 'model_not_found'],
    ['a wrong type', { temperature: 'hot' }, 400, 'invalid_request'],
    ['an unsupported option', { background: true }, 400, 'unsupported_parameter'],
    ['another type of message', { type: 'response.steer' }, 400, 'invalid_request'],
    ['no type', { type: undefined }, 400, 'invalid_request'],
    ['an invalid stream_id', { stream_id: 'a b' }, 400, 'invalid_request'],
    ['an empty stream_id', { stream_id: '' }, 400, 'invalid_request'],
    ['a generate that is not a boolean', { generate: 0 }, 400, 'invalid_request'],
  ])('%s gets an ordinary error, and the connection stays usable', async (_, body, status, code) => {
    await start()
    const client = await open()
    const { events, last } = await client.turn(body)
    expect(events).toHaveLength(1)
    expect(last).toMatchObject({ type: 'error', status, error: { code, retryable: false, source: 'client' } })
    expect(last.error!['request_id']).toBe(last.headers!['x-request-id'])
    expect((await client.turn()).last.type).toBe('response.completed')
    await expect.poll(records).toHaveLength(1)
  })
})

describe('the turns of one connection run one after another', () => {
  test('a second message waits for the answer to the first, and their events do not mix', async () => {
    await start()
    service.providers[0]!.script([{ do: 'answer', words: 20, tokenDelayMs: 10 }])
    const client = await open()
    client.create({ input: 'One.', store: false })
    client.create({ input: 'Two.', store: false })
    const [one, two] = [await client.read(), await client.read()]
    expect(one.events.every(({ response }) => response === undefined || response.id === one.last.response!.id)).toBe(
      true,
    )
    expect(two.text).toContain('You said: "Two."')
    expect(one.last.response!.id).not.toBe(two.last.response!.id)
  })

  test('a second message does not wait for late usage of the first, whose backend keeps its stream open', async () => {
    const upstream = await startScriptedUpstream()
    onTestFinished(() => upstream.close())
    upstream.answer = (_, response) => {
      openEventStream(response)
      for (const [delta, reason] of [
        [{ content: 'Hi.' }, null],
        [{}, 'stop'],
      ] as const) {
        const choices = [{ index: 0, delta, finish_reason: reason }]
        response.write(`data: ${JSON.stringify({ id: 'c', model: 'm', choices })}\n\n`)
      }
    }
    await start({ formats: ['openai-chat'], settings: settingsFor(upstream, 'openai-chat') })
    const client = await open()
    client.create({ input: 'One.', store: false })
    client.create({ input: 'Two.', store: false })
    const startedMs = performance.now()
    for (let turn = 0; turn < 2; turn += 1) expect((await client.read()).last.type).toBe('response.completed')
    expect(performance.now() - startedMs).toBeLessThan(7_000)
  })

  test('an unreadable message gets its error when its turn comes', async () => {
    await start()
    service.providers[0]!.script([{ do: 'answer', words: 20, tokenDelayMs: 10 }])
    const client = await open()
    client.create()
    client.send('{"type":')
    expect((await client.read()).last.type).toBe('response.completed')
    expect(await client.next()).toMatchObject({ type: 'error', status: 400, error: { code: 'invalid_json' } })
  })

  test('more than sixteen waiting messages are rejected at once, and the others are unaffected', async () => {
    await start()
    service.providers[0]!.script([{ do: 'answer', words: 20, tokenDelayMs: 10 }])
    const client = await open()
    for (let sent = 0; sent < 18; sent++) client.create({ input: `Message ${sent}.`, stream_id: `s${sent}` })
    const code = 'websocket_queue_full'
    const error = { type: 'error', stream_id: 's17', status: 429, error: { code, retryable: true } }
    const events: SocketEvent[] = []
    for (let ended = 0; ended < 17;) {
      const event = await client.next()
      events.push(event)
      if (event.type === 'response.completed') ended += 1
    }
    expect(events.filter(({ type }) => type === 'error')).toMatchObject([error])
    const endings = events.filter(({ type }) => type === 'response.completed')
    const texts = endings.map(({ response }) => JSON.stringify(response!.output))
    for (const [index, text] of texts.entries()) if (index > 0) expect(text).toContain(`Message ${index}.`)
  })

  test('every event of a turn has its stream_id, including errors, and other turns have none', async () => {
    await start()
    const client = await open()
    for (const body of [{}, { model: 'gpt-4' }]) {
      const { events } = await client.turn({ stream_id: 'planner.1', ...body })
      expect(new Set(events.map(({ stream_id: id }) => id))).toEqual(new Set(['planner.1']))
    }
    expect((await client.turn()).events.every((event) => !('stream_id' in event))).toBe(true)
  })

  test('the error for a message that cannot be read has its stream_id if it can be found (contract 14.7)', async () => {
    await start({ settings: { limits: { body: '4KiB' } } })
    const client = await open()
    const refused = async (body: object): Promise<unknown> => {
      const { stream_id: id, status, error } = (await client.turn(body)).last
      return [id, status, error?.code]
    }
    expect(await refused({ stream_id: 'a', input: 'x'.repeat(5_000) })).toEqual(['a', 413, 'payload_too_large'])
    expect(await refused({ input: 'x'.repeat(5_000), stream_id: 'b' })).toEqual(['b', 413, 'payload_too_large'])
    expect(await refused({ input: 'x'.repeat(5_000) })).toEqual([undefined, 413, 'payload_too_large'])
    expect(await refused({ stream_id: 'c', type: 'response.steer' })).toEqual(['c', 400, 'invalid_request'])
    expect(await refused({ stream_id: 'no spaces' })).toEqual([undefined, 400, 'invalid_request'])
  })

  test('an acknowledgment gets no answer', async () => {
    await start()
    const client = await open()
    const { last } = await client.turn()
    client.send({ type: 'response.processed', response_id: last.response!.id })
    expect((await client.turn()).events[0]!.type).toBe('response.created')
  })
})

describe('keys', () => {
  test('if the key of a connection is revoked, its next turn is rejected within five seconds and the connection closes', async () => {
    await start()
    const { key, stored } = await service.addAccount('leaver', 'max')
    const client = await open({ key })
    expect((await client.turn()).last.type).toBe('response.completed')
    await service.revoke(stored.id)
    const revokedMs = performance.now()
    let last: SocketEvent
    do ({ last } = await client.turn({ stream_id: 'planner' }))
    while (last.type !== 'error')
    expect(performance.now() - revokedMs).toBeLessThan(5_000)
    expect(last).toMatchObject({ type: 'error', status: 401, error: { code: 'key_revoked', source: 'client' } })
    expect(last.stream_id).toBe('planner')
    expect(last.headers).toMatchObject({ 'www-authenticate': 'Bearer realm="svc-router", error="invalid_token"' })
    expect(await client.closed).toEqual({ code: 1008, reason: 'key_revoked' })
  })

  test('after an account moves to a lower plan, its next turn is checked against that plan', async () => {
    await start({ settings: { plans: { max: { name: 'Max', requests_per_minute: 10, requests_per_month: 10 } } } })
    const client = await open()
    const { last } = await client.turn({ tools: [{ type: 'svc-router:fusion' }] })
    expect(last).toMatchObject({ status: 403, error: { code: 'plan_required' } })
  })
})

describe('a connection ends', () => {
  test('after an hour, with an error event, once the current answer is complete', async () => {
    const clock = new SkippingClock()
    await start({ clock })
    const client = await open()
    for (let minute = 0; minute < 59; minute += 10) {
      await clock.skip(10 * minuteMs - (minute === 50 ? minuteMs : 0))
      expect((await client.turn()).last.type).toBe('response.completed')
    }
    service.providers[0]!.script([{ do: 'answer', words: 20, tokenDelayMs: 20 }])
    client.create()
    await client.next()
    for (let look = 0; look < 4; look++) await clock.skip(20_000)
    expect((await client.read()).last.type).toBe('response.completed')
    expect(await client.next()).toMatchObject({
      type: 'error',
      status: 400,
      error: { code: 'websocket_connection_limit_reached', retryable: true },
    })
    expect(await client.closed).toEqual({ code: 1008, reason: 'websocket_connection_limit_reached' })
  })

  test('after a quarter of an hour without a turn', async () => {
    const clock = new SkippingClock()
    await start({ clock })
    const client = await open()
    await clock.skip(14 * minuteMs)
    expect((await client.turn()).last.type).toBe('response.completed')
    await clock.skip(16 * minuteMs)
    expect(await client.closed).toEqual({ code: 1000, reason: 'idle' })
  })

  test('when its client does not answer pings', async () => {
    const clock = new SkippingClock()
    await start({ clock })
    const [silent, lively] = [await open({}, { autoPong: false }), await open()]
    for (let look = 0; look < 3; look++) {
      await clock.skip(20_000)
      await delay(20)
    }
    expect((await silent.closed).code).toBe(1006)
    expect((await lively.turn()).last.type).toBe('response.completed')
  })

  test('when a message takes longer to arrive than the limit for bodies', async () => {
    const clock = new SkippingClock()
    await start({ clock })
    const client = await open()
    client.socket.send('{"type":', { fin: false })
    await delay(50)
    await clock.skip(2 * minuteMs)
    expect(await client.next()).toMatchObject({ type: 'error', status: 408, error: { code: 'request_timeout' } })
    expect(await client.closed).toEqual({ code: 1008, reason: 'request_timeout' })
  })
})

test('messages from Codex are answered unchanged', async () => {
  await start()
  const client = await open()
  const message = (name: string): Record<string, unknown> => {
    const file = readFileSync(join(fixtures, `codex-ws-${name}.json`), 'utf8')
    return (JSON.parse(file) as { body: Record<string, unknown> }).body
  }
  const prepared = await client.turn(message('prewarm'))
  expect(prepared.last).toMatchObject({ type: 'response.completed', response: { output: [] } })
  const turn = await client.turn(message('turn'))
  const continuation = message('continuation')
  // The recorded call came from another model, so it is sent with its output.
  const call = { type: 'function_call', call_id: 'call_ws1', name: 'shell', arguments: '{}' }
  const input = [call, ...(continuation['input'] as unknown[])]
  const next = { ...continuation, input, previous_response_id: turn.last.response!.id }
  expect((await client.turn(next)).last.type).toBe('response.completed')
})
