import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/domain/json.ts'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { seenIn } from '../seen-answer.ts'
import type { Service } from '../service.ts'
import { judgeReply } from '../simulation/simulated-judge.ts'
import { answer, recordOf, scriptedServices, until } from './fused-answers.ts'

const startScripted = scriptedServices()

const frontier = 'svc-router/frontier'
const fusion = 'svc-router/fusion'
const tool = { type: 'svc-router:fusion' }
const ours = 'svc_router_fusion'
const judged = judgeReply({ scores: { A: 6, B: 6, C: 6 } })
const reply = 'All things weighed: fifty.'
const call: ScriptStep = { do: 'answer', calls: JSON.stringify([{ name: ours, arguments: { question: 'How many?' } }]) }
const down: ScriptStep = { do: 'status', status: 500, repeat: true }

const said = { role: 'user', content: 'How many?' }
const bodies = {
  '/chat/completions': { messages: [said] },
  '/responses': { input: 'How many?' },
  '/messages': { max_tokens: 900, messages: [said] },
} as const
type Path = keyof typeof bodies
const paths = Object.keys(bodies) as Path[]
const forms = paths.flatMap((path) => [false, true].map((stream) => ({ path, stream })))
const requestsOf = ({ providers }: Service): number[] => providers.map((provider) => provider.counts().requests)
const errorOf = async (response: Response): Promise<JsonObject> => {
  const { error } = (await response.json()) as { error: JsonObject }
  return error
}

describe.each(paths)('%s', (path) => {
  const body = bodies[path]

  test.each([fusion, frontier])(
    'a second fusion tool, even an identical one, is rejected by its position: %s',
    async (model) => {
      const service = await startScripted([])
      for (const second of [tool, { ...tool, parameters: { preset: 'fast' } }]) {
        const response = await service.post(path, { model, ...body, tools: [tool, second] })
        expect(response.status).toBe(400)
        expect(await errorOf(response)).toMatchObject({
          param: 'tools[1]',
          message: expect.stringContaining('tools[1]') as string,
        })
      }
      expect(requestsOf(service)).toEqual([0, 0, 0])
    },
  )

  const wrong: readonly (readonly [JsonObject, string])[] = [
    ...['mode', 'preset', 'context', 'result_item', 'mixed'].flatMap((name): [JsonObject, string][] => [
      [{ [name]: 7 }, name],
      [{ [name]: 'nope' }, name],
      [{ [name]: ['auto'] }, name],
    ]),
    ...['panel_size', 'quorum', 'max_runs', 'max_latency_ms', 'max_completion_tokens', 'seed'].flatMap(
      (name): [JsonObject, string][] => [
        [{ [name]: '3' }, name],
        [{ [name]: 1.5 }, name],
        [{ [name]: 1e300 }, name],
        [{ [name]: true }, name],
      ],
    ),
    ...['panel_size', 'quorum', 'max_runs', 'max_latency_ms', 'max_completion_tokens'].map(
      (name): [JsonObject, string] => [{ [name]: 0 }, name],
    ),
    ...['max_cost_usd', 'temperature'].flatMap((name): [JsonObject, string][] => [
      [{ [name]: '1' }, name],
      [{ [name]: -0.1 }, name],
      [{ [name]: 1_001 }, name],
      [{ [name]: {} }, name],
    ]),
    [{ analysis_models: 'alpha' }, 'analysis_models'],
    [{ analysis_models: [] }, 'analysis_models'],
    [{ analysis_models: [7] }, 'analysis_models[0]'],
    [{ analysis_models: Array.from({ length: 9 }, () => 'alpha') }, 'analysis_models'],
    [{ analysis_models: ['nobody'] }, 'analysis_models[0]'],
    [{ model: 7 }, 'model'],
    [{ model: 'nobody' }, 'model'],
    [{ model: '' }, 'model'],
    [{ criteria: 7 }, 'criteria'],
    [{ criteria: 'x'.repeat(2_001) }, 'criteria'],
    [{ reasoning: 'nope' }, 'reasoning'],
    [{ reasoning: 7 }, 'reasoning'],
    [{ reasoning: ['low'] }, 'reasoning'],
    [{ reasoning: { effort: 'nope' } }, 'reasoning.effort'],
    [{ reasoning: { effort: 7 } }, 'reasoning.effort'],
    [{ reasoning: {} }, 'reasoning.effort'],
    [{ include: 'analysis' }, 'include'],
    [{ include: ['prompts'] }, 'include[0]'],
    [{ include: [] }, 'include'],
    [{ pannel_size: 3 }, 'pannel_size'],
    [{ on_quota: 'shrink' }, 'on_quota'],
    [{ tools: [] }, 'tools'],
  ]

  test.each([fusion, frontier])(
    'every parameter that has the wrong type, is out of range, or unknown gets a 400 that names it: %s',
    async (model) => {
      const service = await startScripted([])
      for (const [parameters, param] of wrong) {
        const response = await service.post(path, { model, ...body, tools: [{ ...tool, parameters }] })
        expect(response.status, JSON.stringify(parameters)).toBe(400)
        expect(await errorOf(response), JSON.stringify(parameters)).toMatchObject({
          type: 'invalid_request_error',
          param: `parameters.${param}`,
        })
      }
      for (const parameters of ['fast', 7, ['fast'], true]) {
        const response = await service.post(path, { model, ...body, tools: [{ ...tool, parameters }] })
        expect(response.status).toBe(400)
        expect(await errorOf(response)).toMatchObject({ param: 'parameters' })
      }
      expect(requestsOf(service)).toEqual([0, 0, 0])
    },
  )
})

const schema = { type: 'object', properties: { people: { type: 'integer' } }, required: ['people'] }
const formOf: Readonly<Record<Path, JsonObject>> = {
  '/chat/completions': {
    response_format: { type: 'json_schema', json_schema: { name: 'people', schema } },
  },
  '/responses': { text: { format: { type: 'json_schema', name: 'people', schema } } },
  '/messages': { output_config: { format: { type: 'json_schema', schema } } },
}
const silent = answer('')

describe.each(forms)('$path, streamed: $stream', ({ path, stream }) => {
  const asked = (service: Service, extra: JsonObject): Promise<Response> =>
    service.post(path, { model: frontier, ...bodies[path], stream, tools: [tool], ...extra })

  test('if a form was requested and the model is silent after a fusion run, the next model is asked', async () => {
    const service = await startScripted([
      [call, answer('Alpha says forty.'), answer(judged), silent],
      [answer('Beta says fifty.'), answer('{"people":50}')],
      [answer('Gamma says sixty.'), answer('{"people":50}')],
    ])
    const response = await asked(service, formOf[path])
    const text = await response.text()
    expect(response.status, text).toBe(200)
    expect(JSON.parse(seenIn(text).text)).toEqual({ people: 50 })
  })

  test('if all models are silent, the request fails instead of returning an invented answer', async () => {
    const service = await startScripted([
      [call, answer('Alpha says forty.'), answer(judged), silent],
      [answer('Beta says fifty.'), silent],
      [answer('Gamma says sixty.'), silent],
    ])
    const response = await asked(service, formOf[path])
    const text = await response.text()
    if (response.status === 200) {
      expect(stream, text).toBe(true)
      expect(text).toContain('upstream_broken')
      expect(text).not.toMatch(/response\.completed|"finish_reason":"stop"|message_stop/)
    } else expect(text).toContain('upstream_broken')
  })

  test('a model that is silent after a failed run has failed, too', async () => {
    const fails: ScriptStep = { do: 'status', status: 503 }
    const service = await startScripted([
      [call, fails, silent, answer(reply)],
      [fails, answer(reply)],
      [fails, answer(reply)],
    ])
    const response = await asked(service, {})
    const text = await response.text()
    expect(seenIn(text).text, text).toBe(reply)
  })

  test('a failed run and a failed model cost nothing, even if the run was shown', async () => {
    const profiles = { [frontier]: { backends: ['alpha'] }, [fusion]: { backends: ['beta', 'gamma'] } }
    const service = await startScripted([[call, down], [down], [down]], { settings: { profiles } })
    const response = await asked(service, {})
    const text = await response.text()
    const record = await recordOf(service, response.headers.get('x-request-id'))
    expect(record, text).toMatchObject({ charged: 0 })
    expect(text).toContain('server_is_overloaded')
  })

  test('a run without a free slot does not count: the report gives the reason, and the model may not ask again', async () => {
    const plans = {
      max: { name: 'Max', requests_per_minute: 600, requests_per_month: 1_000, premium: true, fusions_at_once: 1 },
    }
    const profiles = { [frontier]: { backends: ['alpha'] }, [fusion]: { backends: ['beta', 'gamma'] } }
    const waits: ScriptStep = { do: 'silence', repeat: true }
    const service = await startScripted([[call, answer(reply)], [waits], [waits]], { settings: { plans, profiles } })
    const leave = new AbortController()
    const first = service.post('/chat/completions', { model: fusion, messages: [said], stream: true }, {}, leave.signal)
    await until(() => service.providers[1]!.counts().open > 0)
    const response = await asked(service, {})
    const seen = seenIn(await response.text())
    expect(seen).toMatchObject({ text: reply, items: [], report: { ran: false, reason: 'rate_limited' } })
    expect((await recordOf(service, response.headers.get('x-request-id'))).fusions).toBeUndefined()
    leave.abort()
    await first.then((begun) => begun.text()).catch(() => {})
  })
})

describe('counting tokens and compacting', () => {
  const asks = [
    ['/messages/count_tokens', { messages: [said] }],
    ['/responses/input_tokens', { input: 'How many?' }],
    ['/responses/compact', { input: 'How many?' }],
  ] as const
  const refused = [{ model: fusion }, { model: frontier, tools: [tool] }]
  test.each(asks)(
    '%s with the alias or the tool needs the same plan as a request, and asks no backend',
    async (path, body) => {
      const service = await startScripted([])
      const { key } = await service.addAccount('frugal', 'free')
      for (const extra of refused) {
        const response = await service.post(path, { ...body, ...extra }, { authorization: `Bearer ${key}` })
        expect(response.status).toBe(403)
        expect(await response.text()).toContain('plan_required')
        expect((await service.post(path, { ...body, ...extra })).status).toBe(200)
      }
      const plain = await service.post(path, { model: frontier, ...body }, { authorization: `Bearer ${key}` })
      expect(plain.status).toBe(200)
      const unknown = await service.post(path, { model: 'svc-router/nothing', ...body })
      expect(unknown.status).toBe(404)
    },
  )

  test('a token count does not need a model', async () => {
    const service = await startScripted([])
    expect((await service.post('/responses/input_tokens', { input: 'How many?' })).status).toBe(200)
  })
})

describe.each(['/chat/completions', '/responses'] as const)('tool choice on %s', (path) => {
  const inner = { mode: 'required', tools: [tool] }
  const allowed =
    path === '/responses' ? { type: 'allowed_tools', ...inner } : { type: 'allowed_tools', allowed_tools: inner }
  const parameters = { type: 'object', properties: {} }
  const other =
    path === '/responses'
      ? { type: 'function', name: 'get_weather', parameters }
      : { type: 'function', function: { name: 'get_weather', parameters } }

  test('a choice that requires a call and allows only fusion runs the panel first, once', async () => {
    const service = await startScripted([
      [answer('Alpha says forty.'), answer(judged), answer(reply)],
      [answer('Beta says fifty.')],
      [],
    ])
    const tools = [{ ...tool, parameters: { max_runs: 2 } }, other]
    const response = await service.post(path, { model: frontier, ...bodies[path], tools, tool_choice: allowed })
    expect(seenIn(await response.text())).toMatchObject({
      text: reply,
      report: { ran: true, runs: 1, reason: 'forced' },
    })
    expect(JSON.parse(service.providers[0]!.captured().at(-1)!.body)).toMatchObject({ tool_choice: 'auto' })
  })
})

test('max_tool_calls of a response bounds the runs, and 0 prevents them', async () => {
  const other = JSON.stringify([{ name: ours, arguments: { question: 'How few?' } }])
  const second: ScriptStep = { do: 'answer', calls: other }
  const found = [answer('Alpha.'), answer(judged)]
  const tools = [{ ...tool, parameters: { max_runs: 2, mode: 'always' } }]
  const service = await startScripted([[answer(reply)]])
  const never = await service.responses({ tools, max_tool_calls: 0 })
  const body = await never.text()
  expect(seenIn(body)).toMatchObject({ text: reply, report: { ran: false, reason: 'not_allowed' } })
  expect(requestsOf(service)).toEqual([1, 0, 0])
  service.providers[0]!.script([...found, second, answer(reply)])
  const once = await service.responses({ tools, max_tool_calls: 1 })
  const text = await once.text()
  expect(seenIn(text)).toMatchObject({ report: { ran: true, runs: 1 } })
  expect(text).toContain('"max_tool_calls":1')
})

test("a caller that receives a fusion's findings cannot run it again on them", async () => {
  const service = await startScripted([
    [call, answer('Alpha says forty.'), answer(judged), answer(reply)],
    [answer('Beta says fifty.')],
    [answer('Gamma says sixty.')],
  ])
  await (await service.chat({ tools: [tool] })).text()
  const depths = service.providers[0]!.captured().map(({ headers }) => headers['x-svc-router-fusion-depth'])
  expect(depths).toEqual([undefined, '1', '1', '1'])
})
