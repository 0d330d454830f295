import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/domain/json.ts'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { HeldTime } from '../held-time.ts'
import { seenIn } from '../seen-answer.ts'
import type { Service } from '../service.ts'
import { judgeReply, judgeSecret } from '../simulation/simulated-judge.ts'
import {
  answer,
  keptAliveText,
  disconnectDuring,
  recordOf,
  scriptedServices,
  withoutProgress,
} from './fused-answers.ts'

const startScripted = scriptedServices()

const frontier = 'svc-router/frontier'
const tool = { type: 'svc-router:fusion' }
const ours = 'svc_router_fusion'
const judged = judgeReply({ scores: { A: 6, B: 6, C: 6 } })
const reply = 'All things weighed: fifty.'
const call = (question: string, more: Partial<ScriptStep> = {}): ScriptStep => ({
  do: 'answer',
  calls: JSON.stringify([{ name: ours, arguments: { question } }]),
  ...more,
})
const down: ScriptStep = { do: 'status', status: 500, repeat: true }
/** The first backend is called first and last. In between, all three are members, and the first one is the judge. */
const scripts: readonly (readonly ScriptStep[])[] = [
  [call('How many?', { text: 'Let me ask around.' }), answer('Alpha says forty.'), answer(judged), answer(reply)],
  [answer('Beta says fifty.')],
  [answer('Gamma says sixty.')],
]

const weather = { city: { type: 'string' } }
const bodies = {
  '/chat/completions': {
    model: frontier,
    messages: [{ role: 'user', content: 'How many?' }],
    tools: [tool],
    stream_options: { include_usage: true },
  },
  '/responses': { model: frontier, input: 'How many?', tools: [tool] },
  '/messages': {
    model: frontier,
    max_tokens: 900,
    messages: [{ role: 'user', content: 'How many?' }],
    tools: [tool],
  },
} as const
type Path = keyof typeof bodies
const paths = Object.keys(bodies) as Path[]
const asked = paths.flatMap((path) => [
  { name: `${path}, whole`, path, body: { ...bodies[path], stream: false } },
  { name: `${path}, streamed`, path, body: { ...bodies[path], stream: true } },
])
/** A tool of the client in this format. */
const clientTool: Readonly<Record<Path, JsonObject>> = {
  '/chat/completions': {
    type: 'function',
    function: { name: 'get_weather', parameters: { type: 'object', properties: weather } },
  },
  '/responses': { type: 'function', name: 'get_weather', parameters: { type: 'object', properties: weather } },
  '/messages': { name: 'get_weather', input_schema: { type: 'object', properties: weather } },
}

const requestsOf = ({ providers }: Service): number[] => providers.map((provider) => provider.counts().requests)
const bodiesOf = ({ providers }: Service, index: number): string[] =>
  providers[index]!.captured().map(({ body }) => body)
/** The text without the blank line between two turns of one model. */
const joined = (text: string): string => text.replace('\n\n', '')

describe.each(asked)('$name', ({ path, body }) => {
  test('the model asks three others during its answer; the caller sees one reply and is charged once', async () => {
    const service = await startScripted(scripts)
    const response = await service.post(path, body)
    const text = await response.text()
    expect(response.status, text).toBe(200)
    const seen = seenIn(text)
    expect(joined(seen.text)).toBe(`Let me ask around.${reply}`)
    expect(seen.calls).toEqual([])
    expect(['stop', 'completed', 'end_turn']).toContain(seen.finish)
    expect(seen.report).toMatchObject({
      ran: true,
      runs: 1,
      reason: 'called',
      mode: 'auto',
      panel: [{ status: 'answered' }, { status: 'answered' }, { status: 'answered' }],
      judge: { status: 'answered' },
      degraded: [],
    })
    expect(text).toContain(`"model":"${frontier}"`)
    for (const secret of ['model-of-', judgeSecret, '⟦', 'Beta says', ours]) expect(text).not.toContain(secret)
    expect(requestsOf(service)).toEqual([4, 1, 1])
    expect(response.headers.get('x-svc-router-retry-count')).toBe('0')
    expect(['alpha', 'fusion']).toContain(response.headers.get('x-svc-router-upstream'))
    expect(response.headers.get('x-quota-used')).toBe('1')
    const record = await recordOf(service, response.headers.get('x-request-id'))
    expect(record).toMatchObject({ profile: frontier, charged: 1, units: 1 })
    expect(record.attempts.map(({ backend, outcome }) => `${backend} ${outcome}`).toSorted()).toEqual([
      ...Array.from({ length: 4 }, () => 'alpha answered'),
      'beta answered',
      'gamma answered',
    ])
    const used = seen.usage!
    expect(used['prompt_tokens'] ?? used['input_tokens']).toBe(record.usage!.inputTokens)
    expect(used['completion_tokens'] ?? used['output_tokens']).toBe(record.usage!.outputTokens)
    expect(record.usage!.source).toBe('counted')
  })

  test('the findings reach the model as a fenced result of its call, and our tool as a function', async () => {
    const service = await startScripted(scripts)
    await (await service.post(path, body)).text()
    const [first, , , last] = bodiesOf(service, 0)
    expect(first).toContain(`"name":"${ours}"`)
    expect(first).not.toContain('svc-router:fusion')
    const { messages } = JSON.parse(last!) as { messages: (JsonObject & { tool_calls?: JsonObject[] })[] }
    const calls = messages.find(({ tool_calls: made }) => made !== undefined)!
    const result = messages.at(-1)!
    expect(calls).toMatchObject({ content: 'Let me ask around.', tool_calls: [{ function: { name: ours } }] })
    expect(result).toMatchObject({ role: 'tool', tool_call_id: calls.tool_calls![0]!['id'] })
    const lines = (result['content'] as string).split('\n').filter((line) => /says|Agreed|judge/i.test(line))
    expect(lines.length).toBeGreaterThanOrEqual(3)
    for (const line of lines) expect(line).toMatch(/^⟦[0-9A-Za-z]{6}·(?:[A-C]|notes)⟧ /)
    for (const sent of service.providers.flatMap((provider) => provider.captured()).slice(1, 3))
      expect(sent.body).not.toContain('"tools"')
    const [toBeta] = bodiesOf(service, 1)
    expect(toBeta).toContain('Answer this question:\\nHow many?')
    expect(toBeta).not.toContain(ours)
    expect(service.providers[1]!.captured()[0]!.headers['x-svc-router-fusion-depth']).toBe('1')
  })

  test('a model that does not call the tool answers as usual', async () => {
    const service = await startScripted([[answer(reply)]])
    const response = await service.post(path, body)
    const seen = seenIn(await response.text())
    expect(seen.text).toBe(reply)
    expect(seen.report).toEqual({ ran: false, reason: 'not_called', mode: 'auto' })
    expect(requestsOf(service)).toEqual([1, 0, 0])
    expect(response.headers.get('x-svc-router-upstream')).toBe('alpha')
  })

  test('the simulated model calls the tool if the prompt asks it to consult other models', async () => {
    const service = await startScripted([])
    const question = 'Please consult other models: how many?'
    const said = path === '/responses' ? { input: question } : { messages: [{ role: 'user', content: question }] }
    const seen = seenIn(await (await service.post(path, { ...body, ...said })).text())
    expect(seen.text).toContain('The tool answered')
    expect(seen.report).toMatchObject({
      ran: true,
      judge: { status: 'answered' },
      degraded: [],
    })
  })

  test('a plan without fusion gets 403 before any backend is asked', async () => {
    const service = await startScripted([])
    const { key } = await service.addAccount('frugal', 'free')
    const response = await service.post(path, body, { authorization: `Bearer ${key}` })
    expect(response.status).toBe(403)
    expect(await response.text()).toContain('plan_required')
    expect(requestsOf(service)).toEqual([0, 0, 0])
  })

  test('with "always" three models are asked before the calling model, which then has no such tool', async () => {
    const service = await startScripted([
      [answer('Alpha says forty.'), answer(judged), answer(reply)],
      scripts[1]!,
      scripts[2]!,
    ])
    const tools = [{ ...tool, parameters: { mode: 'always' } }]
    const seen = seenIn(await (await service.post(path, { ...body, tools })).text())
    expect(seen.text).toBe(reply)
    expect(seen.report).toMatchObject({ ran: true, runs: 1, reason: 'always', mode: 'always' })
    expect(requestsOf(service)).toEqual([3, 1, 1])
    const last = bodiesOf(service, 0).at(-1)!
    expect(last).toContain('Beta says fifty.')
    expect(last).not.toContain('"tools"')
  })

  test('a choice that names the tool equals "always", and a choice of none equals "never"', async () => {
    const service = await startScripted([
      [answer('Alpha says forty.'), answer(judged), answer(reply)],
      scripts[1]!,
      scripts[2]!,
    ])
    const forced = seenIn(await (await service.post(path, { ...body, tool_choice: tool })).text())
    expect(forced.report).toMatchObject({ ran: true, reason: 'forced' })
    expect(bodiesOf(service, 0).at(-1)).not.toContain('tool_choice')
    const none = path === '/messages' ? { type: 'none' } : 'none'
    const tools = [{ ...tool, parameters: { mode: 'always' } }]
    const before = requestsOf(service)
    const response = await service.post(path, { ...body, tools, tool_choice: none })
    expect(seenIn(await response.text()).report).toEqual({ ran: false, reason: 'not_allowed' })
    expect(requestsOf(service)).toEqual([before[0]! + 1, before[1], before[2]])
    expect(bodiesOf(service, 0).at(-1)).not.toContain('svc-router')
  })

  test('a run without answers is a result for the model, not an error of the request', async () => {
    const fails: ScriptStep = { do: 'status', status: 503 }
    const service = await startScripted([[call('How many?'), fails, answer(reply)], [down], [down]])
    const response = await service.post(path, body)
    const seen = seenIn(await response.text())
    expect(response.status).toBe(200)
    expect(seen.text).toBe(reply)
    expect(seen.report).toMatchObject({ ran: true, failure_reason: 'all_panels_failed' })
    const result = service.providers
      .flatMap((_, index) => bodiesOf(service, index))
      .find((sent) => sent.includes('failure_reason'))
    expect(result).toContain(String.raw`{\"status\":\"error\",\"failure_reason\":\"all_panels_failed\"}`)
    expect(response.headers.get('x-quota-used')).toBe('1')
  })

  test('the best answer of the others replaces a model that fails after a run', async () => {
    const service = await startScripted([
      [call('How many?'), answer('Forty, says alpha.'), answer(judged), down],
      [answer('Forty, says beta.'), down],
      [answer('Forty, says gamma.'), down],
    ])
    const response = await service.post(path, body)
    const text = await response.text()
    expect(response.status, text).toBe(200)
    expect(seenIn(text).text).toMatch(/^Forty, says (?:alpha|beta|gamma)\.$/)
  })

  test.each(['', ' \n'])(
    'the best answer of the others also replaces a model that is silent after a run: %j',
    async (nothing) => {
      const service = await startScripted([
        [call('How many?'), answer('Forty, says alpha.'), answer(judged), answer(nothing)],
        [answer('Forty, says beta.')],
        [answer('Forty, says gamma.')],
      ])
      const response = await service.post(path, body)
      const seen = seenIn(await response.text())
      expect(seen.text).toMatch(/^\s*Forty, says (?:alpha|beta|gamma)\.$/)
      expect(['stop', 'completed', 'end_turn']).toContain(seen.finish)
    },
  )

  test('a model that fails before a run is failed over, and the request is rejected if none is left', async () => {
    // A stream that opens with progress names no backend and cannot be rejected.
    const clock = withoutProgress()
    const failingOver = await startScripted([[down], [answer(reply)], []], { clock })
    const response = await failingOver.post(path, body)
    expect(seenIn(await response.text()).text).toBe(reply)
    expect(response.headers.get('x-svc-router-upstream')).toBe('beta')
    expect(response.headers.get('x-svc-router-retry-count')).toBe('1')
    await failingOver.stop()
    const failing = await startScripted([[down], [down], [down]], { clock })
    const refused = await failing.post(path, body)
    expect(refused.status, await refused.text()).toBe(503)
    expect(refused.headers.get('x-quota-used')).toBe('0')
  })

  test("the caller's calls are shown first, and ours runs after they are answered", async () => {
    const both = JSON.stringify([
      { name: ours, arguments: { question: 'Is it cold?' } },
      { name: 'get_weather', arguments: { city: 'Oslo' } },
    ])
    const service = await startScripted([
      [{ do: 'answer', calls: both }, answer('Alpha says forty.'), answer(judged), answer(reply)],
      scripts[1]!,
      scripts[2]!,
    ])
    const tools = [tool, clientTool[path]]
    const first = await service.post(path, { ...body, tools })
    const text = await first.text()
    const seen = seenIn(text)
    expect(text).not.toContain(ours)
    expect(seen.calls.map(({ name }) => name)).toEqual(['get_weather'])
    expect(seen.report).toMatchObject({ ran: false, reason: 'waiting_for_tools' })
    if (body.stream && path === '/chat/completions') expect(text).toContain('"tool_calls":[{"index":0')
    expect(requestsOf(service)).toEqual([1, 0, 0])
    const second = await service.post(path, { ...body, tools, ...withResult(path, seen.calls[0]!, 'It is -7.') })
    const after = seenIn(await second.text())
    expect(after.text).toBe(reply)
    expect(after.report).toMatchObject({ ran: true, reason: 'deferred' })
    const [toBeta] = bodiesOf(service, 1)
    expect(toBeta).toContain('Is it cold?')
    expect(toBeta).toContain('It is -7.')
    expect(bodiesOf(service, 0).at(-1)).toContain('Beta says fifty.')
    // Only once: the same results do not start another run.
    const again = await service.post(path, { ...body, tools, ...withResult(path, seen.calls[0]!, 'It is -7.') })
    expect(seenIn(await again.text()).report).toMatchObject({ ran: false })
  })

  test('a pending question belongs to its own conversation, because every model counts its calls from the start', async () => {
    const both = JSON.stringify([
      { name: ours, arguments: { question: 'Is it cold?' } },
      { name: 'get_weather', arguments: { city: 'Oslo' } },
    ])
    const service = await startScripted([[{ do: 'answer', calls: both }, answer('Seven.')]])
    const tools = [tool, clientTool[path]]
    const [made] = seenIn(await (await service.post(path, { ...body, tools })).text()).calls
    const elsewhere = withResult(path, made!, 'It is -7.', 'What about another one?')
    const other = seenIn(await (await service.post(path, { ...body, tools, ...elsewhere })).text())
    expect(other.report).toMatchObject({ ran: false, reason: 'not_called' })
    const own = await service.post(path, { ...body, tools, ...withResult(path, made!, 'It is -7.') })
    expect(seenIn(await own.text()).report).toMatchObject({ ran: true, reason: 'deferred' })
  })

  test("a dropped question next to the caller's calls is not asked", async () => {
    const both = JSON.stringify([
      { name: 'get_weather', arguments: { city: 'Oslo' } },
      { name: ours, arguments: { question: 'Is it cold?' } },
    ])
    const service = await startScripted([[{ do: 'answer', calls: both }, answer(reply)]])
    const tools = [{ ...tool, parameters: { mixed: 'drop' } }, clientTool[path]]
    const seen = seenIn(await (await service.post(path, { ...body, tools })).text())
    expect(seen.calls.map(({ name }) => name)).toEqual(['get_weather'])
    const second = await service.post(path, { ...body, tools, ...withResult(path, seen.calls[0]!, 'It is -7.') })
    expect(seenIn(await second.text()).text).toBe(reply)
    expect(requestsOf(service)).toEqual([2, 0, 0])
  })

  test('a model that keeps calling the tool is limited to four runs, and the reply ends in text', async () => {
    const endless: ScriptStep[] = Array.from({ length: 6 }, (_, index) => call(`And number ${index}?`))
    const profiles = {
      [frontier]: { backends: ['alpha'] },
      'svc-router/fusion': { backends: ['beta', 'gamma'] },
    }
    const service = await startScripted([endless], { settings: { profiles } })
    const tools = [{ ...tool, parameters: { max_runs: 2 } }]
    const response = await service.post(path, { ...body, tools })
    const text = await response.text()
    expect(response.status, text).toBe(200)
    const seen = seenIn(text)
    // The model called the tool although its last turn did not offer it, so the best answer of the others replaces it.
    expect(seen.text).toContain('simulated answer')
    expect(seen.report).toMatchObject({ ran: true, runs: 2 })
    expect(text).not.toContain(ours)
    const sent = bodiesOf(service, 0).map((one) => JSON.parse(one) as JsonObject)
    expect(sent).toHaveLength(4)
    expect(sent.at(-1)).toMatchObject({ tool_choice: 'none' })
    expect(JSON.stringify(sent.at(-1))).toContain(String.raw`{\"status\":\"error\",\"error\":\"limit\"}`)
  })

  test('a client that disconnects aborts every sub-call of a run within 100 ms and is charged once', async () => {
    const silent: ScriptStep = { do: 'silence', repeat: true }
    const service = await startScripted([[call('How many?'), silent], [silent], [silent]])
    const event = await disconnectDuring(service, { path, body })
    expect(event).toMatchObject({ outcome: 'client_closed', attempts: 4, charged: 1 })
  })

  test("a client that disconnects before the model's first content aborts that call equally fast", async () => {
    const service = await startScripted([[{ do: 'silence', repeat: true }]])
    const event = await disconnectDuring(service, { path, body }, [service.providers[0]!])
    expect(event).toMatchObject({ outcome: 'client_closed', attempts: 1, charged: 1 })
    expect(service.providers.map((provider) => provider.counts().requests)).toEqual([1, 0, 0])
  })

  test('contradictory parameters are rejected before any backend is asked, and cost nothing', async () => {
    const service = await startScripted([])
    const refusals: readonly (readonly [JsonObject, string, Record<string, string>?])[] = [
      [{ tools: [tool, renamed(clientTool[path])] }, 'reserved_tool_name'],
      [{ tools: [{ ...tool, parameters: { pannel_size: 3 } }] }, 'panel_size'],
      [{ tools: [{ ...tool, parameters: { analysis_models: ['nobody'] } }] }, 'analysis_models'],
      [{ tools: [{ ...tool, parameters: { max_cost_usd: 1 } }] }, 'max_cost_usd'],
      [{ tools: [clientTool[path]], tool_choice: tool }, 'tool_choice'],
      [{}, 'cannot be nested', { 'x-svc-router-fusion-depth': '1' }],
    ]
    for (const [extra, said, headers] of refusals) {
      const response = await service.post(path, { ...body, ...extra }, headers)
      const text = await response.text()
      expect(response.status, text).toBe(400)
      expect(text).toContain(said)
      expect(response.headers.get('x-quota-used')).toBe('0')
    }
    expect(requestsOf(service)).toEqual([0, 0, 0])
  })

  test('without the fusion tool, a tool of the caller may have the name of its function (contract 16.3)', async () => {
    const service = await startScripted([[{ do: 'answer', text: 'Yes.' }]])
    const response = await service.post(path, { ...body, tools: [renamed(clientTool[path])] })
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('Yes.')])
  })
})

function renamed(declared: JsonObject): JsonObject {
  return JSON.parse(JSON.stringify(declared).replace('get_weather', ours)) as JsonObject
}

/** The conversation, continued with the result of that call. */
function withResult(path: Path, { id }: { readonly id: string }, result: string, asked = 'How many?'): JsonObject {
  const args = JSON.stringify({ city: 'Oslo' })
  if (path === '/chat/completions') {
    const made = { id, type: 'function', function: { name: 'get_weather', arguments: args } }
    return {
      messages: [
        { role: 'user', content: asked },
        { role: 'assistant', content: null, tool_calls: [made] },
        { role: 'tool', tool_call_id: id, content: result },
      ],
    }
  }
  if (path === '/responses') {
    return {
      input: [
        { role: 'user', content: asked },
        { type: 'function_call', call_id: id, name: 'get_weather', arguments: args },
        { type: 'function_call_output', call_id: id, output: result },
      ],
    }
  }
  return {
    messages: [
      { role: 'user', content: asked },
      { role: 'assistant', content: [{ type: 'tool_use', id, name: 'get_weather', input: { city: 'Oslo' } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: result }] },
    ],
  }
}

describe.each(asked.filter(({ body }) => body.stream))('$name', ({ path, body }) => {
  test('something arrives within 250 ms, and keep-alives follow during silence', async () => {
    const silent: ScriptStep = { do: 'silence', repeat: true }
    const busy = await startScripted([[silent], [silent], [silent]])
    using held = new HeldTime()
    const waitedMs: number[] = []
    // The best of three tries counts, so that other load on the machine does not fail the test.
    for (let round = 0; round < 3; round++) {
      const begunMs = performance.now()
      const reader = (await busy.post(path, body)).body!.getReader()
      await reader.read()
      const firstMs = performance.now()
      waitedMs.push(firstMs - begunMs - held.within(begunMs, firstMs))
      await reader.cancel()
    }
    expect(Math.min(...waitedMs)).toBeLessThan(250)
    await busy.stop()
    const waiting = await startScripted([[call('How many?'), silent], [silent], [silent]], {
      settings: { keep_alive: '100ms' },
    })
    expect(await keptAliveText(await waiting.post(path, body))).toContain('3 models were asked.')
  })

  test('text before a run arrives while the run is in progress', async () => {
    const silent: ScriptStep = { do: 'silence', repeat: true }
    const service = await startScripted([
      [call('How many?', { text: 'Let me ask around.' }), silent],
      [silent],
      [silent],
    ])
    const response = await service.post(path, body)
    const decoder = new TextDecoder()
    let text = ''
    for await (const bytes of response.body!) {
      text += decoder.decode(bytes, { stream: true })
      if (text.includes('around.')) break
    }
    expect(text).not.toContain(ours)
  })

  test('if the model breaks off during its reply, the stream breaks with one error and is charged', async () => {
    const cut: ScriptStep = { do: 'cut', afterEvents: 6, by: 'rst' }
    const service = await startScripted([[...scripts[0]!.slice(0, 3), cut], scripts[1]!, scripts[2]!])
    const response = await service.post(path, body)
    const text = await response.text()
    expect(text).toContain('upstream_broken')
    expect(text).not.toMatch(/response\.completed|"finish_reason":"stop"|message_stop/)
    expect(text.match(/"upstream_broken"/g)!.length).toBeLessThanOrEqual(3)
    expect(await recordOf(service, response.headers.get('x-request-id'))).toMatchObject({
      charged: 1,
      errorCode: 'upstream_broken',
    })
  })
})

test('a repeated question is answered from the cache, and a third time ends the calls', async () => {
  const profiles = { [frontier]: { backends: ['alpha'] }, 'svc-router/fusion': { backends: ['beta', 'gamma'] } }
  const again = (): ScriptStep => call('How  many?')
  const service = await startScripted([[call('How many?'), again(), again(), answer(reply)]], {
    settings: { profiles },
  })
  const tools = [{ ...tool, parameters: { max_runs: 2, panel_size: 2 } }]
  const seen = seenIn(await (await service.chat({ tools })).text())
  expect(seen).toMatchObject({ text: reply, report: { ran: true, runs: 1 } })
  const sent = bodiesOf(service, 0).map((body) => JSON.parse(body) as { tool_choice?: string; messages: JsonObject[] })
  expect(sent.map(({ tool_choice: choice }) => choice)).toEqual([undefined, undefined, undefined, 'none'])
  const results = sent.at(-1)!.messages.filter(({ role }) => role === 'tool')
  expect(new Set(results.map(({ content }) => content)).size).toBe(1)
  expect(results).toHaveLength(3)
})

test('the calls of one turn run together, at most three; a call without a question gets an error', async () => {
  const made = ['One?', 'Two?', '', 'Three?', 'Four?'].map((question) => ({ name: ours, arguments: { question } }))
  const service = await startScripted([
    [{ do: 'answer', calls: JSON.stringify(made) }, answer('Alpha.'), answer(judged), answer(reply)],
  ])
  expect(seenIn(await (await service.chat({ tools: [tool] })).text())).toMatchObject({
    text: reply,
    report: { runs: 1 },
  })
  const [toBeta] = bodiesOf(service, 1)
  expect(toBeta).toContain(String.raw`1. One?\n2. Two?\n3. Three?`)
  expect(toBeta).not.toContain('Four?')
  const { messages } = JSON.parse(bodiesOf(service, 0).at(-1)!) as { messages: { role: string; content: string }[] }
  const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => content)
  expect(results[0]).toContain('answered independently')
  expect(results.slice(1)).toEqual([
    expect.stringContaining('asked together') as string,
    '{"status":"error","failure_reason":"no_question"}',
    expect.stringContaining('asked together') as string,
    '{"status":"error","error":"limit"}',
  ])
})

test("a run uses the caller's time limit, and the reply comes after it", async () => {
  const silent: ScriptStep = { do: 'silence', repeat: true }
  const profiles = { [frontier]: { backends: ['alpha'] }, 'svc-router/fusion': { backends: ['beta', 'gamma'] } }
  const service = await startScripted([[call('How many?'), answer(reply)], [silent], [silent]], {
    settings: { profiles },
  })
  const tools = [{ ...tool, parameters: { max_latency_ms: 5_000 } }]
  const begunMs = performance.now()
  const seen = seenIn(await (await service.chat({ tools })).text())
  expect(performance.now() - begunMs).toBeLessThan(5_000)
  expect(seen).toMatchObject({ text: reply, report: { ran: true, failure_reason: 'deadline' } })
})

test('with an isolated view the panel reads only the question and none of the conversation', async () => {
  const service = await startScripted(scripts)
  const tools = [{ ...tool, parameters: { context: 'question' } }]
  const messages = [{ role: 'user', content: 'My secret is plum.' }]
  await (await service.chat({ tools, messages })).text()
  const [toBeta] = bodiesOf(service, 1)
  expect(toBeta).toContain('How many?')
  expect(toBeta).not.toContain('plum')
})

test('members and models of every format take part, and reasoning returns to the model that issued it', async () => {
  // If another member is called as judge or to repair its reply, it fails, so alpha judges.
  const unable = [answer('I cannot say.'), answer('I cannot say.')]
  const onlyAlphaJudges = [scripts[0]!, ...scripts.slice(1).map((steps) => [...steps, ...unable])]
  for (const formats of [
    ['openai-responses', 'anthropic-messages', 'gemini'],
    ['anthropic-messages', 'gemini', 'openai-responses'],
    ['gemini', 'openai-responses', 'anthropic-messages'],
  ] as const) {
    const service = await startScripted(onlyAlphaJudges, { formats })
    for (const stream of [true, false]) {
      for (const [index, steps] of onlyAlphaJudges.entries()) service.providers[index]!.script(steps)
      const response = await service.chat({ tools: [tool], reasoning_effort: 'high', stream })
      const text = await response.text()
      expect(joined(seenIn(text).text), `${formats[0]} ${text}`).toBe(`Let me ask around.${reply}`)
      expect(text).not.toContain(ours)
      const last = bodiesOf(service, 0).at(-1)!
      expect(last).toContain('answered independently')
      if (formats[0] === 'openai-responses') expect(last).toContain('"encrypted_content"')
      if (formats[0] === 'anthropic-messages') expect(last).toContain('"signature"')
    }
    await service.stop()
  }
})

test('a slow reader receives all of a long reply after a run', async () => {
  const length = 400_000
  const service = await startScripted([
    [...scripts[0]!.slice(0, 3), { do: 'answer', length }],
    scripts[1]!,
    scripts[2]!,
  ])
  const response = await service.chat({ tools: [tool], stream: true })
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (let next = await reader.read(), count = 0; !next.done; next = await reader.read(), count++) {
    text += decoder.decode(next.value, { stream: true })
    if (count < 10) await new Promise((resolve) => setTimeout(resolve, 40))
  }
  expect(joined(seenIn(text).text)).toHaveLength(length + 'Let me ask around.'.length)
})
