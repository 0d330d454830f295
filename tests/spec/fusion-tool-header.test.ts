import { describe, expect, onTestFinished, test } from 'vitest'
import type { JsonObject } from '../../src/domain/json.ts'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { embeddingsProfile, startEmbeddingsService } from '../embeddings-service.ts'
import { seenIn } from '../seen-answer.ts'
import type { Service } from '../service.ts'
import { judgeReply } from '../simulation/simulated-judge.ts'
import { SocketClient } from '../socket-client.ts'
import { answer, scriptedServices } from './fused-answers.ts'
import { send } from './provoke.ts'

const startScripted = scriptedServices()

const frontier = 'svc-router/frontier'
const name = 'x-svc-router-tools'
const type = 'svc-router:fusion'
const reply = 'All things weighed: fifty.'
const call: ScriptStep = {
  do: 'answer',
  text: 'Let me ask around.',
  calls: JSON.stringify([{ name: 'svc_router_fusion', arguments: { question: 'How many?' } }]),
}
const judged = answer(judgeReply({ scores: { A: 6, B: 6, C: 6 } }))
/** The first backend is called first and last. In between, all three are members, and the first one is the judge. */
const scripts: readonly (readonly ScriptStep[])[] = [
  [call, answer('Alpha says forty.'), judged, answer(reply)],
  [answer('Beta says fifty.')],
  [answer('Gamma says sixty.')],
]
const deliberated: readonly (readonly ScriptStep[])[] = [scripts[0]!.slice(1), scripts[1]!, scripts[2]!]

const messages = [{ role: 'user', content: 'How many?' }]
const bodies = {
  '/chat/completions': { model: frontier, messages },
  '/responses': { model: frontier, input: 'How many?' },
  '/messages': { model: frontier, max_tokens: 900, messages },
} as const
const asked = (Object.keys(bodies) as (keyof typeof bodies)[]).flatMap((path) =>
  [false, true].map((stream) => ({
    name: `${path}, ${stream ? 'streamed' : 'whole'}`,
    path,
    body: { ...bodies[path], stream },
  })),
)

const sentBy = ({ providers }: Service): (readonly string[])[] =>
  providers.map((provider) => provider.captured().map(({ body }) => body))

describe.each(asked)('$name', ({ path, body }) => {
  test('the header equals the tool in the body, for providers and for the caller', async () => {
    const seen = []
    const sent = []
    for (const [more, headers] of [
      [{ tools: [{ type }] }, {}],
      [{}, { [name]: type }],
    ] as const) {
      const service = await startScripted(scripts)
      const response = await service.post(path, { ...body, ...more }, headers)
      expect(response.headers.get('x-quota-used')).toBe('1')
      seen.push(seenIn(await response.text()))
      sent.push(sentBy(service))
      for (const { headers: passed } of service.providers.flatMap((provider) => provider.captured()))
        expect(passed).not.toHaveProperty(name)
    }
    expect(seen[1]!.report).toMatchObject({ ran: true, runs: 1, reason: 'called' })
    expect(seen[1]!.text).toContain(reply)
    expect(seen[1]!.items.map((item) => item['type'])).toEqual(path === '/responses' ? ['mcp_call'] : [])
    for (const one of ['text', 'calls', 'report', 'finish'] as const) expect(seen[1]![one]).toEqual(seen[0]![one])
    expect(sent[0]!.map((of) => of.length)).toEqual([4, 1, 1])
    // Compare the calling model and the members. The judge's request has a random order.
    const unshuffled = sent.map(([first, ...others]) => [first!.slice(0, 2), ...others])
    expect(unshuffled[1]).toEqual(unshuffled[0])
  })

  test('a plan without fusion gets 403 before any backend is asked', async () => {
    const service = await startScripted([])
    const { key } = await service.addAccount('frugal', 'free')
    const response = await service.post(path, body, { authorization: `Bearer ${key}`, [name]: type })
    expect(response.status).toBe(403)
    expect(await response.text()).toContain('plan_required')
    expect(response.headers.get('x-quota-used')).toBe('0')
    expect(sentBy(service)).toEqual([[], [], []])
  })

  test("parameters may follow the tool's name", async () => {
    const service = await startScripted([deliberated[0]!, deliberated[1]!, []])
    const headers = { [name]: `${type}; mode=always;preset=fast` }
    const seen = seenIn(await (await service.post(path, body, headers)).text())
    expect(seen.report).toMatchObject({ ran: true, reason: 'always', mode: 'always' })
    expect(seen.report!['panel']).toHaveLength(2)
    expect(seen.text).toBe(reply)
  })

  test('a tool in the body takes precedence over the header', async () => {
    const service = await startScripted([[answer(reply)]])
    const always = { [name]: `${type};mode=always` }
    const response = await service.post(path, { ...body, tools: [{ type }] }, always)
    expect(seenIn(await response.text()).report).toEqual({ ran: false, reason: 'not_called', mode: 'auto' })
    expect(sentBy(service).map((of) => of.length)).toEqual([1, 0, 0])
  })

  test("the tool follows the caller's tools, and is not sent if no tool may be called", async () => {
    const service = await startScripted([[answer(reply), answer(reply)]])
    const schema = { type: 'object', properties: { city: { type: 'string' } } }
    const weather: Readonly<Record<string, JsonObject>> = {
      '/chat/completions': { type: 'function', function: { name: 'get_weather', parameters: schema } },
      '/responses': { type: 'function', name: 'get_weather', parameters: schema },
      '/messages': { name: 'get_weather', input_schema: schema },
    }
    const attached = { ...body, tools: [weather[path]!] }
    await (await service.post(path, attached, { [name]: type })).text()
    const none = path === '/messages' ? { type: 'none' } : 'none'
    const last = await service.post(path, { ...attached, tool_choice: none }, { [name]: type })
    expect(seenIn(await last.text()).report).toEqual({ ran: false, reason: 'not_allowed' })
    const tools = sentBy(service)[0]!.map((sent) =>
      (JSON.parse(sent) as { tools: { function: { name: string } }[] }).tools.map((tool) => tool.function.name),
    )
    expect(tools).toEqual([['get_weather', 'svc_router_fusion'], ['get_weather']])
  })

  test('an invalid value is a 400 that names the header', async () => {
    const service = await startScripted([])
    for (const value of [
      'svc-router:fushion',
      `${type}, ${type}`,
      `${type};`,
      `${type};mode`,
      `${type};mode=sometimes`,
      `${type};mode=always;mode=auto`,
      `${type};panel_size=3`,
      `${type};constructor=name`,
      `{"type":"${type}"}`,
      `${type};${'preset=fast'.padStart(200)}`,
    ]) {
      const response = await service.post(path, body, { [name]: value })
      const text = await response.text()
      expect(response.status, `${value}: ${text}`).toBe(400)
      const { error } = JSON.parse(text) as { error: { message: string } }
      expect(error.message).toContain(`The ${name} header must be ${type}`)
      expect(error.message.length).toBeLessThanOrEqual(240)
      expect(response.headers.get('x-quota-used')).toBe('0')
    }
    expect(sentBy(service)).toEqual([[], [], []])
  })
})

test('an empty header attaches nothing', async () => {
  const service = await startScripted([[answer(reply)]])
  const { key } = await service.addAccount('frugal', 'free')
  const response = await service.chat({}, { authorization: `Bearer ${key}`, [name]: '' })
  expect(response.status).toBe(200)
})

test('two headers are rejected like two keys', async () => {
  const service = await startScripted([])
  const { status, text } = await send(service, { [name]: [type, type] })
  expect(status, text).toBe(400)
  expect(JSON.parse(text)).toMatchObject({ error: { code: 'duplicate_header', param: name } })
})

test('a body whose tools are not a list is rejected as without the header', async () => {
  const service = await startScripted([])
  const errors = []
  for (const headers of [{}, { [name]: type }]) {
    const response = await service.chat({ tools: 'all' }, headers)
    const { error } = (await response.json()) as { error: JsonObject }
    errors.push({ ...error, request_id: '' })
  }
  expect(errors[0]).toMatchObject({ code: 'invalid_request', param: 'tools' })
  expect(errors[1]).toEqual(errors[0])
})

test('with svc-router/fusion the header acts like the tool next to the alias', async () => {
  const service = await startScripted(deliberated)
  const response = await service.chat({ model: 'svc-router/fusion' }, { [name]: type })
  const seen = seenIn(await response.text())
  expect(seen.text).toBe(reply)
  expect(seen.report).toMatchObject({ ran: true, mode: 'synthesised' })
})

test('counting tokens needs the plan that the answer would need', async () => {
  const service = await startScripted([])
  const { key } = await service.addAccount('frugal', 'free')
  const count = (headers: Record<string, string>) =>
    service.post('/messages/count_tokens', bodies['/messages'], headers)
  expect((await count({ [name]: type })).status).toBe(200)
  expect((await count({ authorization: `Bearer ${key}`, [name]: type })).status).toBe(403)
})

test('where no tool can be attached the header is ignored, because clients send it with every request', async () => {
  const service = await startEmbeddingsService()
  onTestFinished(() => service.stop())
  const { key } = await service.addAccount('frugal', 'free')
  const headers = { authorization: `Bearer ${key}`, 'user-agent': 'svc-router-tests/1.0', [name]: 'whatever' }
  const body = { model: embeddingsProfile, input: 'Hello' }
  expect((await service.post('/embeddings', body, headers)).status).toBe(200)
  expect(service.providers[0]!.captured()[0]!.body).not.toContain('tools')
  for (const path of ['/v1/models', '/model-catalog', '/pricing', '/health'])
    expect((await fetch(`${service.origin}${path}`, { headers })).status, path).toBe(200)
})

test('a stored response is continued, each turn with the header', async () => {
  const service = await startScripted([
    [call, answer('Alpha says forty.'), judged, answer(reply), answer('As I said.')],
    scripts[1]!,
    scripts[2]!,
  ])
  const first = (await (await service.responses({}, { [name]: type })).json()) as { id: string }
  const next = await service.responses({ previous_response_id: first.id, input: 'And now?' }, { [name]: type })
  const seen = seenIn(await next.text())
  expect(seen.text).toBe('As I said.')
  expect(seen.report).toMatchObject({ ran: false, reason: 'not_called' })
  expect(sentBy(service)[0]!.at(-1)).toContain(reply)
})

describe('on a WebSocket the header of the upgrade applies to every turn', () => {
  test('the header equals the tool in each message', async () => {
    const service = await startScripted([[...scripts[0]!, answer('As I said.')], scripts[1]!, scripts[2]!])
    const client = await SocketClient.open(service, { headers: { [name]: type } })
    await client.turn({ generate: false })
    const { text, last } = await client.turn({ store: false })
    expect(text).toContain(reply)
    expect(last.response!.output.map((item) => item.type)).toContain('mcp_call')
    const next = await client.turn({ store: false, previous_response_id: last.response!.id, input: 'And now?' })
    expect(next.text).toBe('As I said.')
    expect(sentBy(service)[0]!.at(-1)).toContain('"name":"svc_router_fusion"')
    await client.close()
  })

  test('on a lower plan, or misspelled, the header rejects each turn before any backend is asked', async () => {
    const service = await startScripted([])
    const { key } = await service.addAccount('frugal', 'free')
    for (const [asking, status, code] of [
      [{ key, headers: { [name]: type } }, 403, 'plan_required'],
      [{ headers: { [name]: 'fusion' } }, 400, 'invalid_request'],
    ] as const) {
      const client = await SocketClient.open(service, asking)
      for (const body of [{}, { generate: false }]) {
        const { last } = await client.turn(body)
        expect(last).toMatchObject({ type: 'error', status, error: { code } })
      }
      await client.close()
    }
    expect(sentBy(service)).toEqual([[], [], []])
  })
})
