import { afterEach, describe, expect, test } from 'vitest'
import { HeldTime } from '../held-time.ts'
import { Service, type ServiceOptions } from '../service.ts'
import { judgeReply } from '../simulation/simulated-judge.ts'
import { SocketClient, type SocketEvent } from '../socket-client.ts'
import { answer } from './fused-answers.ts'

const model = 'svc-router/fusion'
const judged = answer(judgeReply({ scores: { A: 6, B: 6, C: 6 } }))
const weather = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const tools = [{ type: 'function', name: 'get_weather', parameters: weather }]
const silent = [{ do: 'silence', repeat: true }] as const

let service: Service
let client: SocketClient | undefined
afterEach(async () => {
  client?.socket.terminate()
  client = undefined
  await service.stop()
})

async function start(options?: ServiceOptions): Promise<void> {
  service = await Service.start(options)
  expectDeliberation()
}

async function connect(key?: string): Promise<SocketClient> {
  client = await SocketClient.open(service, key === undefined ? {} : { key })
  return client
}

/** Scripts a valid reply of the judge for the next deliberation. Everything else has the simulated default. */
function expectDeliberation(): void {
  service.providers[0]!.script([{ do: 'answer' }, judged])
}

const requests = (): number[] => service.providers.map((provider) => provider.counts().requests)

/** The number of requests that `run` causes for each provider. */
async function askedBy(run: () => Promise<unknown>): Promise<number[]> {
  const before = requests()
  await run()
  return requests().map((count, index) => count - before[index]!)
}

async function until(isSo: () => boolean): Promise<void> {
  for (let tries = 0; tries < 400 && !isSo(); tries++) await new Promise((resolve) => setTimeout(resolve, 5))
  expect(isSo()).toBe(true)
}

function shapeOf(events: readonly SocketEvent[]): unknown {
  const text = JSON.stringify(events.map((event) => ({ ...event, headers: undefined })))
  return JSON.parse(text.replaceAll(/"(?:id|item_id)":"[^"]*"|"(?:(?:created|completed)_at|ms)":\d+/g, '"x":0'))
}

describe('svc-router/fusion over a WebSocket', () => {
  test('the response is the same as over HTTP, charged once, and shows none of the panel', async () => {
    await start()
    const { events, text } = await (await connect()).turn({ model })
    expect(text).toContain('This is a simulated answer from alpha.')
    expect(events[0]!.headers).toMatchObject({ 'x-svc-router-upstream': 'fusion', 'x-quota-used': '1' })
    expect(requests()).toEqual([3, 1, 1])
    expectDeliberation()
    const overHttp = await (await service.responses({ model, stream: true })).text()
    const data = overHttp.split('\n').filter((line) => line.startsWith('data: {'))
    const last = JSON.parse(data.at(-1)!.slice(6)) as SocketEvent
    expect(shapeOf(events.slice(-1))).toEqual(shapeOf([last]))
    for (const secret of ['model-of-', 'JUDGE-SECRET', '⟦', 'beta'])
      expect(JSON.stringify(events)).not.toContain(secret)
  })

  test("the panel runs once per user message, and not for results of the client's tools", async () => {
    await start()
    const socket = await connect()
    const about = { model, store: false, tools }
    const asked = await socket.turn({ ...about, input: 'What is the weather in Oslo?' })
    const [call] = asked.last.response!.output.filter(({ type }) => type === 'function_call')
    expect(requests()).toEqual([3, 1, 1])
    const output = { type: 'function_call_output', call_id: call!['call_id'], output: '7 degrees' }
    let previous_response_id = asked.last.response!.id
    const loop = async (): Promise<void> => {
      const { text, last, events } = await socket.turn({ ...about, previous_response_id, input: [output] })
      expect(text).toContain('7 degrees')
      expect(events[0]!.headers).toMatchObject({ 'x-svc-router-upstream': 'alpha' })
      previous_response_id = last.response!.id
    }
    expect(await askedBy(loop)).toEqual([1, 0, 0])
    expectDeliberation()
    const next = () => socket.turn({ ...about, previous_response_id, input: 'Thank you.' })
    expect(await askedBy(next)).toEqual([3, 1, 1])
    const panel = service.providers[2]!.captured().at(-1)!.body
    expect(panel).toContain('What is the weather in Oslo?')
    expect(panel).toContain('7 degrees')
  })

  test('the stream gets keep-alives, and reports that no member answered', async () => {
    await start({ timeouts: { first_content: '800ms', whole_answer: '800ms' }, settings: { keep_alive: '100ms' } })
    for (const provider of service.providers) provider.script(silent)
    const { events, last } = await (await connect()).turn({ model })
    expect(events.filter(({ type }) => type === 'response.in_progress').length).toBeGreaterThan(3)
    expect(last).toMatchObject({ type: 'response.failed', response: { error: { code: 'upstream_timeout' } } })
    expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index))
    await expect.poll(async () => (await service.store.listRequests({ limit: 9 }))[0]?.charged).toBe(0)
  })

  test('a plan without fusion gets an error, and the connection stays open', async () => {
    await start()
    const { key } = await service.addAccount('frugal', 'free')
    const socket = await connect(key)
    const { last } = await socket.turn({ model })
    expect(last).toMatchObject({ type: 'error', status: 403, error: { code: 'plan_required' } })
    expect(requests()).toEqual([0, 0, 0])
    expect((await socket.turn()).last.type).toBe('response.completed')
  })

  test('a prewarm asks no backend, and the next turn runs the panel on what it sent', async () => {
    await start()
    const socket = await connect()
    const warm = await socket.turn({ model, store: false, generate: false, input: 'My name is Ada.' })
    expect(requests()).toEqual([0, 0, 0])
    const previous_response_id = warm.last.response!.id
    await socket.turn({ model, store: false, previous_response_id, input: 'Who am I?' })
    expect(requests()).toEqual([3, 1, 1])
    expect(service.providers[1]!.captured().at(-1)!.body).toContain('My name is Ada.')
  })

  test('a client that disconnects aborts every sub-call within 100 ms', async () => {
    await start()
    for (const provider of service.providers) provider.script(silent)
    const socket = await connect()
    socket.create({ model })
    await until(() => service.providers.every((provider) => provider.counts().open === 1))
    using held = new HeldTime()
    const leftMs = performance.now()
    socket.socket.terminate()
    await until(() => service.providers.every((provider) => provider.counts().aborted === 1))
    for (const provider of service.providers) {
      const abortedMs = provider.counts().abortedAtMs[0]! - performance.timeOrigin
      expect(abortedMs - leftMs - held.within(leftMs, abortedMs)).toBeLessThan(100)
    }
  })
})

describe('a compacted conversation with svc-router/fusion', () => {
  const compact = async (input: unknown): Promise<{ output: { type: string }[]; usage: object }> => {
    const response = await service.post('/responses/compact', { model, input })
    expect(response.status).toBe(200)
    expect(response.headers.get('x-quota-used')).toMatch(/^\d+$/)
    return (await response.json()) as { output: { type: string }[]; usage: object }
  }

  test('one model summarizes it, and the panel runs again at the next user message', async () => {
    await start()
    const first = (await (await service.responses({ model, input: 'My name is Ada.' })).json()) as { output: unknown[] }
    const input = [{ role: 'user', content: 'My name is Ada.' }, ...first.output]
    let output: { type: string }[] = []
    const asked = await askedBy(async () => {
      service.providers[0]!.script([answer('Summary: the user is Ada.')])
      ;({ output } = await compact(input))
    })
    expect(asked).toEqual([1, 0, 0])
    expect(output.map(({ type }) => type)).toEqual(['message', 'compaction'])
    expectDeliberation()
    const next = () => service.responses({ model, input: [...output, { role: 'user', content: 'Who am I?' }] })
    expect(await askedBy(async () => expect((await next()).status).toBe(200))).toEqual([3, 1, 1])
    for (const provider of service.providers)
      expect(provider.captured().some(({ body }) => body.includes('Summary: the user is Ada.'))).toBe(true)
  })

  test('compaction also continues from a stored fusion response', async () => {
    await start()
    const first = (await (await service.responses({ model, input: 'My name is Ada.' })).json()) as { id: string }
    const asked = await askedBy(async () => {
      const response = await service.post('/responses/compact', { model, previous_response_id: first.id })
      expect(response.status, await response.text()).toBe(200)
    })
    expect(asked).toEqual([1, 0, 0])
    expect(service.providers[0]!.captured().at(-1)!.body).toContain('My name is Ada.')
  })
})
