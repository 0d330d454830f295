import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/domain/json.ts'
import type { Dialect } from '../../src/formats/format.ts'
import { readRequest } from '../../src/formats/openai-responses/read-request.ts'
import { openaiResponsesRelay } from '../../src/formats/openai-responses/relay.ts'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { seenIn, type SeenAnswer } from '../seen-answer.ts'
import type { Service, ServiceOptions } from '../service.ts'
import { shareServices } from '../shared-service.ts'
import { judgeReply } from '../simulation/simulated-judge.ts'
import { SocketClient } from '../socket-client.ts'
import { answer, eventsOf, recordOf, until } from './fused-answers.ts'

const frontier = 'svc-router/frontier'
const fusion = 'svc-router/fusion'
const dialect: Dialect = { maxTokensField: 'max_tokens', developerRole: true, streamUsage: true, refusedFields: [] }
const reply = 'All things weighed: fifty.'
const judged = judgeReply({ scores: { A: 6, B: 6, C: 6 } })
const ask: ScriptStep = {
  do: 'answer',
  calls: JSON.stringify([{ name: 'svc_router_fusion', arguments: { question: 'How many?', focus: ['size'] } }]),
}
const members: readonly (readonly ScriptStep[])[] = [[answer('Beta says fifty.')], [answer('Gamma says sixty.')]]
const called = [[ask, answer('Alpha says forty.'), answer(judged), answer(reply)], ...members]
/** The items of a response, streamed or not. */
function outputOf(text: string): JsonObject[] {
  const response = (text.startsWith('{') ? JSON.parse(text) : eventsOf(text).at(-1)!['response']) as {
    output: JsonObject[]
  }
  return response.output
}

/** Scripts for the alias, which calls its members at once. */
const convened = [[answer('Alpha says forty.'), answer(judged), answer(reply)], ...members]

const share = shareServices()
let service: Service | undefined

async function start(given: readonly (readonly ScriptStep[])[], options?: ServiceOptions): Promise<Service> {
  service = await share(options)
  script(given)
  return service
}

function script(given: readonly (readonly ScriptStep[])[]): void {
  for (const [index, steps] of given.entries()) service!.providers[index]!.script(steps)
}

const tool = (parameters: JsonObject): JsonObject => ({ type: 'svc-router:fusion', parameters })
const seen = async (response: Promise<Response>): Promise<SeenAnswer> => seenIn(await (await response).text())
const lastBody = (index = 0): string => service!.providers[index]!.captured().at(-1)!.body

describe.each([{ stream: false }, { stream: true }])('a response, $stream', ({ stream }) => {
  const asked = (parameters: JsonObject): Promise<Response> =>
    service!.responses({ input: 'How many?', stream, tools: [tool(parameters)] })

  test('a run appears as a remote server call, which every client knows, before the reply', async () => {
    await start(called)
    const body = await (await asked({})).text()
    const { items } = seenIn(body)
    expect(items).toEqual([
      {
        type: 'mcp_call',
        id: expect.stringMatching(/^mcp_\w+$/) as string,
        server_label: 'svc-router',
        name: 'fusion',
        arguments: JSON.stringify({ questions: ['How many?'], focus: ['size'] }),
        output: expect.any(String) as string,
        error: null,
        status: 'completed',
      },
    ])
    const output = JSON.parse(items[0]!['output'] as string) as JsonObject
    expect(output).toMatchObject({ status: 'ok', verdict: 'synthesize', judge: { status: 'answered' } })
    for (const part of ['analysis', 'responses', 'scores', 'timings']) expect(output).not.toHaveProperty(part)
    if (!stream) return
    const events = eventsOf(body)
    expect(events.map((event) => event['sequence_number'])).toEqual(events.map((_, index) => index))
    const types = events.map(({ type }) => type)
    expect(types).toEqual(expect.arrayContaining(['response.mcp_call.in_progress', 'response.mcp_call.completed']))
    const added = events.filter(({ type }) => type === 'response.output_item.added')
    expect(added.map(({ item }) => (item as JsonObject)['type'])).toEqual(['reasoning', 'mcp_call', 'message'])
    expect(types.filter((type) => /^response\.(?:completed|failed|incomplete)$/.test(type as string))).toHaveLength(1)
  })

  test('our own item type appears only on request, and no item if the caller wants none', async () => {
    await start(called)
    const native = await seen(asked({ result_item: 'native' }))
    expect(native.items).toMatchObject([{ type: 'svc-router:fusion', status: 'completed' }])
    for (const result of ['reasoning', 'none']) {
      script(called)
      const shown = await (await asked({ result_item: result })).text()
      expect(seenIn(shown)).toMatchObject({ text: reply, items: [] })
      expect(shown.includes('models were asked')).toBe(stream && result === 'reasoning')
    }
  })

  test('a failed run appears as failed', async () => {
    const down: ScriptStep = { do: 'status', status: 503 }
    await start([[ask, down, answer(reply)], [down], [down]], { settings: {} })
    const { items, text } = await seen(asked({}))
    expect(text).not.toBe('')
    expect(items).toMatchObject([{ type: 'mcp_call', output: null, error: 'all_panels_failed', status: 'failed' }])
  })

  test('the items are accepted when sent back, in full or by reference, and summarized in a few words', async () => {
    await start(called)
    const first = await (await asked({ include: ['analysis'] })).text()
    const { output, id } = (stream ? eventsOf(first).at(-1)!['response'] : JSON.parse(first)) as JsonObject & {
      output: JsonObject[]
      id: string
    }
    const item = output.find(({ type }) => type === 'mcp_call')!
    const digest = '[Several models were asked: \\"How many?\\"'
    const next = { role: 'user', content: 'And now?' }
    for (const extra of [
      { input: [{ role: 'user', content: 'How many?' }, ...output, next] },
      { input: [next], previous_response_id: id },
      { input: [{ role: 'user', content: 'How many?' }, { type: 'item_reference', id: item['id'] }, next] },
      { input: [{ ...item, type: 'svc-router:fusion' }, next] },
    ]) {
      const response = await service!.responses({ ...extra, stream })
      const body = await response.text()
      expect(response.status, body).toBe(200)
      expect(lastBody(), body).toContain(digest.replaceAll('"', '"'))
      expect(lastBody()).not.toContain('mcp_call')
    }
  })
})

test('no Responses provider ever receives our items, relayed or translated', async () => {
  const ours = { type: 'mcp_call', server_label: 'svc-router', name: 'fusion' }
  const items = [
    { ...ours, id: 'mcp_1', arguments: '{"questions":["Q1"]}', output: '{"status":"ok"}' },
    { type: 'svc-router:fusion', id: 'fus_1', arguments: '{"questions":["Q2"]}', output: '{"verdict":"insufficient"}' },
    { ...ours, id: 'mcp_2', arguments: '{', output: 'changed by somebody' },
    { type: 'mcp_call', id: 'mcp_3', server_label: 'others', name: 'fusion', arguments: '{}', output: 'theirs' },
  ]
  const body = { model: frontier, input: [...items, { role: 'user', content: 'And?' }], store: false }
  await start([[answer('Yes.')]], { formats: ['openai-responses'] })
  const response = await service!.responses(body)
  expect(response.status, await response.text()).toBe(200)
  const digests = [
    '[Several models were asked: "Q1".]',
    '[Several models were asked: "Q2". None of their answers could be trusted.]',
  ]
  for (const digest of digests) expect(lastBody()).toContain(JSON.stringify(digest).slice(1, -1))
  for (const kept of ['mcp_call', 'changed by somebody']) expect(lastBody()).not.toContain(kept)
  const target = { model: 'm', stream: false, dialect }
  const { input } = openaiResponsesRelay.requestChanges!(body, readRequest(body), target)
  const relayed = JSON.parse(input!) as (JsonObject & { content?: string | { text?: string }[] })[]
  expect(relayed.map(({ type, id }) => id ?? type)).toEqual(['message', 'message', 'mcp_3', undefined])
  expect(relayed.slice(0, 2).map(({ content }) => (content![0] as { text: string }).text)).toEqual(digests)
})

test('the caller sees the findings on request, with letters instead of names', async () => {
  await start(called)
  const include = ['analysis', 'responses', 'scores', 'timings']
  const { report } = await seen(service!.chat({ tools: [tool({ include })] }))
  expect(report).toMatchObject({
    analysis: { consensus: expect.any(Array) as unknown[], contradictions: expect.any(Array) as unknown[] },
    scores: { A: { correct: 6, total: 6 }, B: { total: 6 }, C: { total: 6 } },
    timings: { panel_ms: expect.any(Number) as number, judge_ms: expect.any(Number) as number },
  })
  const responses = report!['responses'] as { model: string; content: string }[]
  expect(responses.map(({ model }) => model)).toEqual(['A', 'B', 'C'])
  expect(responses.map(({ content }) => content).toSorted()).toEqual([
    'Alpha says forty.',
    'Beta says fifty.',
    'Gamma says sixty.',
  ])
})

test('a chat stream reports its fusion with the usage or at the end', async () => {
  await start(called)
  const request = { stream: true, tools: [tool({})] }
  const without = eventsOf(await (await service!.chat(request)).text())
  expect(without.every(({ choices }) => (choices as unknown[]).length === 1)).toBe(true)
  expect(without.findLast(({ svc_router: said }) => said !== undefined)).toMatchObject({
    choices: [{ finish_reason: 'stop' }],
    svc_router: { fusion: { ran: true } },
  })
  script(called)
  const usage = eventsOf(await (await service!.chat({ ...request, stream_options: { include_usage: true } })).text())
  expect(usage.filter(({ svc_router: said }) => said !== undefined)).toMatchObject([
    { choices: [], usage: { total_tokens: expect.any(Number) as number }, svc_router: { fusion: { ran: true } } },
  ])
})

describe.each([{ stream: false }, { stream: true }])('the alias, $stream', ({ stream }) => {
  test('the alias reports its fusion and takes the parameters of the tool', async () => {
    await start(convened)
    const plain = await seen(service!.chat({ model: fusion, stream }))
    expect(plain.text).toBe(reply)
    expect(plain.report).toMatchObject({
      ran: true,
      reason: 'user_turn',
      mode: 'synthesised',
      panel: [{ status: 'answered' }, { status: 'answered' }, { status: 'answered' }],
      judge: { status: 'answered' },
    })
    expect(plain.report).not.toHaveProperty('responses')
    script([[answer('Alpha says forty.'), answer(judgeReply({ scores: { A: 6, B: 6 } })), answer(reply)], members[0]!])
    const tools = [tool({ analysis_models: ['alpha', 'beta'], include: ['responses'] })]
    const shaped = await seen(service!.chat({ model: fusion, stream, tools }))
    expect(shaped.report!['responses']).toHaveLength(2)
    expect(service!.providers[2]!.counts().requests).toBe(1)
    expect(lastBody()).not.toContain('svc-router:fusion')
    script(convened)
    const item = await seen(
      service!.responses({ model: fusion, stream, tools: [tool({ result_item: 'mcp_call', include: ['analysis'] })] }),
    )
    expect(item).toMatchObject({ text: reply, items: [{ type: 'mcp_call', status: 'completed' }] })
    expect(item.items[0]!['output']).toContain('"analysis"')
    script(convened)
    expect(await seen(service!.responses({ model: fusion, stream }))).toMatchObject({ text: reply, items: [] })
  })

  test('with the tool attached its model may ask again while it works with its own tools', async () => {
    await start(called)
    const made = { id: 'call_1', type: 'function', function: { name: 'count', arguments: '{}' } }
    const messages = [
      { role: 'user', content: 'How many?' },
      { role: 'assistant', content: null, tool_calls: [made] },
      { role: 'tool', tool_call_id: 'call_1', content: '42' },
    ]
    const count = { type: 'function', function: { name: 'count', parameters: { type: 'object', properties: {} } } }
    const { text, report } = await seen(service!.chat({ model: fusion, stream, messages, tools: [count, tool({})] }))
    expect(text).toBe(reply)
    expect(report).toMatchObject({ ran: true, reason: 'called' })
  })
})

test('a plain request forwards its fusion depth to the provider, and none if it has none', async () => {
  await start([])
  await (await service!.chat({}, { 'x-svc-router-fusion-depth': '1' })).text()
  await (await service!.chat()).text()
  const depths = service!.providers[0]!.captured().map(({ headers }) => headers['x-svc-router-fusion-depth'])
  expect(depths).toEqual(['1', undefined])
})

test('svc-router/fusion configures the panel, and the profile the model that answers', async () => {
  const profiles = { [frontier]: { backends: ['alpha'] }, [fusion]: { backends: ['beta', 'gamma'] } }
  await start(
    [
      [ask, answer(reply)],
      [answer('Beta says fifty.'), answer(judgeReply({ scores: { A: 6, B: 6 } }))],
    ],
    {
      settings: { profiles },
    },
  )
  expect(await seen(service!.chat({ tools: [tool({ panel_size: 2 })] }))).toMatchObject({
    text: reply,
    report: { ran: true },
  })
  expect(service!.providers.map((provider) => provider.counts().requests)).toEqual([2, 2, 1])
})

test("a model without tool support gets the other models' answers before it is asked", async () => {
  const backends = Object.fromEntries(
    ['alpha', 'beta', 'gamma'].map((name) => [
      name,
      { provider: name, model: `model-of-${name}`, capabilities: { tools: false } },
    ]),
  )
  await start(convened, { settings: { backends } })
  expect(await seen(service!.chat({ tools: [tool({})] }))).toMatchObject({
    text: reply,
    report: { ran: true, reason: 'no_tool_support' },
  })
})

test('a WebSocket works like HTTP, and a later turn continues from it', async () => {
  await start(called)
  const client = await SocketClient.open(service!)
  try {
    const first = await client.turn({ input: 'How many?', store: false, tools: [tool({})] })
    expect(first.text).toContain(reply)
    const { id, output } = first.last.response!
    expect(output.map(({ type }) => type)).toEqual(['reasoning', 'mcp_call', 'message'])
    const second = await client.turn({ input: 'And now?', store: false, previous_response_id: id })
    expect(second.last.type).toBe('response.completed')
    expect(lastBody()).toContain('[Several models were asked')
  } finally {
    client.socket.close()
  }
})

describe.each(['/chat/completions', '/responses'] as const)('findings on %s', (path) => {
  test.each([{ stream: false }, { stream: true }])(
    "findings remain available while the caller's tools run, $stream",
    async (form) => {
      const weather = { name: 'get_weather', parameters: { type: 'object', properties: {} } }
      const declared =
        path === '/responses' ? { type: 'function', ...weather } : { type: 'function', function: weather }
      const work: ScriptStep = { do: 'answer', calls: JSON.stringify([{ name: 'get_weather', arguments: {} }]) }
      const analysed = judgeReply({ scores: { A: 6, B: 6, C: 6 }, isMaterial: true })
      await start([[ask, answer('Alpha says forty.'), answer(analysed), answer(analysed), work], ...members])
      const asked = { role: 'user', content: 'How many?' }
      const tools = [tool({}), declared]
      const include = path === '/responses' ? { include: ['reasoning.encrypted_content'], store: false } : {}
      const telling = (history: readonly JsonObject[]) =>
        path === '/responses' ? { input: history } : { messages: history }
      const text = await (
        await service!.post(path, { model: frontier, tools, ...include, ...telling([asked]), ...form })
      ).text()
      const { calls } = seenIn(text)
      expect(calls.map(({ name }) => name)).toEqual(['get_weather'])
      const { id } = calls[0]!
      const made = { id, type: 'function', function: { name: 'get_weather', arguments: '{}' } }
      const history: JsonObject[] =
        path === '/responses'
          ? [asked, ...outputOf(text), { type: 'function_call_output', call_id: id, output: 'Cold.' }]
          : [
              asked,
              { role: 'assistant', content: null, tool_calls: [made] },
              { role: 'tool', tool_call_id: id, content: 'Cold.' },
            ]
      const next = async (messages: readonly JsonObject[], headers = {}): Promise<string> => {
        const body = { model: frontier, tools, ...include, ...telling(messages) }
        const response = await service!.post(path, body, headers)
        expect(response.status, await response.text()).toBe(200)
        expect(lastBody()).not.toContain('svcr1.')
        return lastBody()
      }
      const noted = 'What follows was noted when several answers to it were compared'
      expect(await next(history)).toContain(noted)
      const { key } = await service!.addAccount('other', 'max')
      expect(await next(history, { authorization: `Bearer ${key}` })).not.toContain(noted)
      const another = [{ role: 'user', content: 'How else?' }, ...history.slice(1)]
      const sealed = another.findIndex(({ encrypted_content: seal }) => seal !== undefined)
      expect(sealed >= 0).toBe(path === '/responses')
      if (sealed === -1) return
      expect(await next(another), 'the client itself sends the encrypted findings').toContain(noted)
      const seal = another[sealed]!['encrypted_content'] as string
      const middle = Math.floor(seal.length / 2)
      const changed = seal.slice(0, middle) + (seal[middle] === 'A' ? 'B' : 'A') + seal.slice(middle + 1)
      expect(await next(another.with(sealed, { ...another[sealed]!, encrypted_content: changed }))).not.toContain(noted)
    },
  )
})

test('a run has its trail in the record of its request, and each call its usage', async () => {
  await start(called)
  const response = await service!.chat({ tools: [tool({})] })
  const { usage } = (await response.json()) as { usage: { svc_router: { breakdown: { role: string }[] } } }
  const roles = usage.svc_router.breakdown.map(({ role }) => role)
  expect(roles.toSorted()).toEqual(['judge', 'outer', 'outer', 'panel', 'panel', 'panel'])
  const id = response.headers.get('x-request-id')!
  const record = await recordOf(service!, id)
  expect(record.fusions).toMatchObject([{ preset: 'balanced', asked: 3, answered: 3, verdict: 'synthesize' }])
  expect(record.fusions![0]!.calls.map(({ role }) => role).toSorted()).toEqual(['judge', 'panel', 'panel', 'panel'])
})

test('the plan limits simultaneous runs; a further one does not start, and the report says so', async () => {
  const plans = {
    max: { name: 'Max', requests_per_minute: 600, requests_per_month: 1_000, premium: true, fusions_at_once: 1 },
  }
  const profiles = { [frontier]: { backends: ['alpha'] }, [fusion]: { backends: ['beta', 'gamma'] } }
  const silent: ScriptStep = { do: 'silence', repeat: true }
  await start([[ask, ask, answer(reply)], [silent], [silent]], { settings: { plans, profiles } })
  const leave = new AbortController()
  const first = service!
    .post(
      '/chat/completions',
      { model: frontier, messages: [{ role: 'user', content: 'Hm?' }], tools: [tool({})] },
      {},
      leave.signal,
    )
    .catch(() => undefined)
  await until(() => service!.providers[1]!.counts().open > 0)
  expect(await seen(service!.chat({ tools: [tool({})] }))).toMatchObject({
    text: reply,
    report: { ran: false, reason: 'rate_limited' },
  })
  leave.abort()
  await first
})

test('a money limit applies to the whole request, and rejects it if nothing fits', async () => {
  const priced = Object.fromEntries(
    ['alpha', 'beta', 'gamma'].map((name) => [
      name,
      { provider: name, model: `model-of-${name}`, usd_per_million: { input: 1, output: 1 } },
    ]),
  )
  await start(called, { settings: { backends: priced } })
  const expensive = await service!.chat({ tools: [tool({ max_cost_usd: 0.000_01 })] })
  expect(expensive.status).toBe(400)
  expect(await expensive.text()).toContain('max_cost_usd')
  expect(service!.providers.map((provider) => provider.counts().requests)).toEqual([0, 0, 0])
  const some = await seen(service!.chat({ max_tokens: 100, tools: [tool({ max_cost_usd: 0.003 })] }))
  expect(some.report).toMatchObject({ ran: true, failure_reason: 'cost_cap' })
  expect(service!.providers.map((provider) => provider.counts().requests)).toEqual([2, 0, 0])
  script(called)
  const all = await seen(service!.chat({ max_tokens: 100, tools: [tool({ max_cost_usd: 5 })] }))
  expect(all).toMatchObject({ text: reply, report: { ran: true, judge: { status: 'answered' } } })
})
