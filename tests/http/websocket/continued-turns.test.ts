import { afterEach, describe, expect, test } from 'vitest'
import { SkippingClock } from '../../../src/simulation/skipping-clock.ts'
import type { Service, ServiceOptions } from '../../service.ts'
import { shareServices } from '../../shared-service.ts'
import { SocketClient, type Turn } from '../../socket-client.ts'

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

async function open(key = service.key): Promise<SocketClient> {
  const client = await SocketClient.open(service, { key })
  clients.push(client)
  return client
}

const idOf = ({ last }: Turn): string => last.response!.id
const notFound = {
  type: 'error',
  status: 400,
  error: { code: 'previous_response_not_found', param: 'previous_response_id', type: 'invalid_request_error' },
}

/** The texts in the input of the last request to the backend, in order. */
function lastAsked(): string[] {
  const { input, messages } = JSON.parse(service.providers[0]!.captured().at(-1)!.body) as {
    input?: string | readonly { content: string | readonly { text: string }[] }[]
    messages?: readonly { content: string }[]
  }
  if (typeof input === 'string') return [input]
  return (input ?? messages ?? []).map(({ content }) => (typeof content === 'string' ? content : content[0]!.text))
}

async function get(id: string): Promise<number> {
  const headers = { authorization: `Bearer ${service.key}`, 'user-agent': 'svc-router-tests/1.0' }
  return (await fetch(`${service.baseUrl}/responses/${id}`, { headers })).status
}

describe.each(['openai-chat', 'openai-responses'] as const)(
  'with "store": false and a backend of format %s',
  (format) => {
    const simulatedAnswer = (text: string): string => `This is a simulated answer from alpha. You said: "${text}".`

    test('a turn with only new input continues everything on the connection', async () => {
      await start({ formats: [format] })
      const client = await open()
      let previous: string | undefined
      const all: string[] = []
      for (const text of ['One.', 'Two.', 'Three.', 'Four.']) {
        const turn = await client.turn({
          store: false,
          input: text,
          ...(previous && { previous_response_id: previous }),
        })
        expect(turn.last.response).toMatchObject({ store: false, previous_response_id: previous ?? null })
        for (const { response } of turn.events) {
          if (response !== undefined) expect(response.previous_response_id).toBe(previous ?? null)
        }
        all.push(text)
        expect(lastAsked()).toEqual(all)
        all.push(simulatedAnswer(text))
        previous = idOf(turn)
      }
      expect(await get(previous!)).toBe(404)
    })

    test('a tool call and its output are sent in order', async () => {
      await start({ formats: [format] })
      const client = await open()
      const tools = [
        {
          type: 'function',
          name: 'get_weather',
          parameters: { type: 'object', properties: { city: { type: 'string' } } },
        },
      ]
      const asked = await client.turn({ store: false, tools, input: 'What is the weather in Oslo?' })
      const call = asked.last.response!.output.find(({ type }) => type === 'function_call')!
      const output = { type: 'function_call_output', call_id: call['call_id'], output: '7 degrees' }
      const answered = await client.turn({ store: false, tools, previous_response_id: idOf(asked), input: [output] })
      expect(answered.text).toContain('7 degrees')
      const body = service.providers[0]!.captured().at(-1)!.body
      const places = ['What is the weather in Oslo?', 'get_weather', '7 degrees'].map((text) => body.indexOf(text))
      expect(places).toEqual(places.toSorted((a, b) => a - b))
      expect(places[0]).toBeGreaterThan(0)
    })

    test('the next turn continues a prepared one, which was not sent to a provider, admitted, or charged', async () => {
      await start({ formats: [format] })
      const client = await open()
      const prepared = await client.turn({ store: false, generate: false, input: 'Be brief.' })
      expect(prepared.events.map(({ type }) => type)).toEqual([
        'response.created',
        'response.in_progress',
        'response.completed',
      ])
      expect(prepared.last.response).toMatchObject({
        status: 'completed',
        output: [],
        usage: { total_tokens: 0 },
        store: false,
      })
      expect(prepared.events[0]!.headers).toMatchObject({ 'x-quota-used': '0', 'x-ratelimit-remaining': '600' })
      expect(service.providers[0]!.captured()).toHaveLength(0)
      expect(await service.store.listRequests({ accountId: service.account.id, limit: 1 })).toEqual([])
      const turn = await client.turn({ store: false, previous_response_id: idOf(prepared), input: 'Say hello.' })
      expect(lastAsked()).toEqual(['Be brief.', 'Say hello.'])
      expect(turn.events[0]!.headers).toMatchObject({ 'x-quota-used': '1' })
    })
  },
)

describe('after a new connection', () => {
  test('an answer that was not stored is unknown, and resending the whole conversation succeeds', async () => {
    await start()
    const first = await open()
    const turn = await first.turn({ store: false })
    await first.close()
    const second = await open()
    const next = { store: false, previous_response_id: idOf(turn), input: 'And again.' }
    const { events, last } = await second.turn(next)
    expect(events).toHaveLength(1)
    expect(last).toMatchObject(notFound)
    const { previous_response_id: _, ...whole } = next
    expect((await second.turn(whole)).last.type).toBe('response.completed')
  })

  test('a stored answer can be continued', async () => {
    await start()
    const first = await open()
    const turn = await first.turn({ input: 'One.' })
    expect(await get(idOf(turn))).toBe(200)
    await first.close()
    const second = await open()
    const next = await second.turn({ input: 'Two.', previous_response_id: idOf(turn) })
    expect(lastAsked()).toEqual(['One.', expect.stringContaining('"One."'), 'Two.'])
    // Stored and unstored answers can continue one another.
    const third = await second.turn({ store: false, input: 'Three.', previous_response_id: idOf(next) })
    expect(third.last.response!.previous_response_id).toBe(idOf(next))
    const fourth = await second.turn({ input: 'Four.', previous_response_id: idOf(third) })
    expect(fourth.last.response).toMatchObject({ store: true, previous_response_id: idOf(third) })
    await second.close()
    await (await open()).turn({ input: 'Five.', previous_response_id: idOf(fourth) })
    const own = lastAsked().filter((text) => !text.includes('simulated'))
    expect(own).toEqual(['One.', 'Two.', 'Three.', 'Four.', 'Five.'])
  })

  test('another connection of the same account finds no answer of this one', async () => {
    await start()
    const [mine, other] = [await open(), await open()]
    const turn = await mine.turn({ store: false })
    expect((await other.turn({ store: false, previous_response_id: idOf(turn) })).last).toMatchObject(notFound)
    expect((await mine.turn({ store: false, previous_response_id: idOf(turn) })).last.type).toBe('response.completed')
  })
})

describe('a turn that fails', () => {
  test('an invalid turn removes the answer that it continues, so that the client starts again', async () => {
    await start()
    const client = await open()
    const turn = await client.turn({ store: false })
    const next = { store: false, previous_response_id: idOf(turn) }
    expect((await client.turn({ ...next, temperature: 'hot' })).last).toMatchObject({ status: 400 })
    expect((await client.turn(next)).last).toMatchObject(notFound)
  })

  test.each([
    ['was rejected temporarily', { do: 'status', status: 503 } as const],
    ['broke', { do: 'cut', afterEvents: 8, words: 30 } as const],
  ])('a turn that %s can be retried unchanged', async (_, step) => {
    const clock = new SkippingClock()
    await start({ clock })
    const client = await open()
    const turn = await client.turn({ store: false, input: 'One.' })
    const next = { store: false, previous_response_id: idOf(turn), input: 'Two.' }
    service.providers[0]!.script([step])
    expect(['error', 'response.failed']).toContain((await client.turn(next)).last.type)
    await clock.skip(60_000)
    expect((await client.turn(next)).last.type).toBe('response.completed')
    expect(lastAsked()).toEqual(['One.', expect.any(String), 'Two.'])
  })

  test('a failed turn cannot be continued', async () => {
    await start()
    service.providers[0]!.script([{ do: 'cut', afterEvents: 8, words: 30 }])
    const client = await open()
    const turn = await client.turn({ store: false })
    expect(turn.last.type).toBe('response.failed')
    expect((await client.turn({ store: false, previous_response_id: idOf(turn) })).last).toMatchObject(notFound)
  })
})

describe('preparing a turn', () => {
  test.each([
    ['an unknown profile', { model: 'gpt-4' }, { status: 404, error: { code: 'model_not_found' } }],
    ['an invalid input', { input: 7 }, { status: 400, error: { code: 'invalid_request', param: 'input' } }],
    ['an unknown answer', { previous_response_id: 'resp_0000000000000000' }, notFound],
  ])('it is rejected for %s', async (_, body, refusal) => {
    await start()
    const client = await open()
    expect((await client.turn({ generate: false, ...body })).last).toMatchObject({ type: 'error', ...refusal })
  })

  test('it is limited like the lists, separately from turns', async () => {
    const clock = new SkippingClock()
    await start({ clock })
    clock.startMinute()
    const client = await open()
    const types: string[] = []
    for (let asked = 0; asked < 301; asked++) types.push((await client.turn({ generate: false })).last.type)
    expect(types.filter((type) => type === 'error').length).toBeGreaterThan(0)
    expect((await client.turn()).last.type).toBe('response.completed')
  })

  test('it can continue a stored answer, too', async () => {
    await start()
    const client = await open()
    const stored = await client.turn({ input: 'One.' })
    const prepared = await client.turn({ generate: false, previous_response_id: idOf(stored), input: 'Two.' })
    await client.turn({ previous_response_id: idOf(prepared), input: 'Three.' })
    expect(lastAsked()).toEqual(['One.', expect.stringContaining('"One."'), 'Two.', 'Three.'])
  })
})

test('a conversation that has grown beyond the largest body is a 413', async () => {
  await start({ settings: { limits: { body: '64KiB' } } })
  service.providers[0]!.script([{ do: 'answer', text: 'Yes.' }])
  const client = await open()
  const large = 'x'.repeat(40_000)
  const turn = await client.turn({ store: false, input: large })
  const { last } = await client.turn({ store: false, previous_response_id: idOf(turn), input: large })
  expect(last).toMatchObject({ type: 'error', status: 413, error: { code: 'payload_too_large' } })
})
