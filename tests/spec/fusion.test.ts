import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/domain/json.ts'
import { progressAfterMs } from '../../src/gateway/fusion/fused-answer.ts'
import { answerAs } from '../../src/simulation/providers/model.ts'
import { readChatPrompt } from '../../src/simulation/providers/prompt.ts'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { connect, majors } from '../clients/openai-clients.ts'
import { HeldTime } from '../held-time.ts'
import type { Service } from '../service.ts'
import { judgeReply, judgeSecret } from '../simulation/simulated-judge.ts'
import {
  answer,
  eventsOf,
  keptAliveText,
  disconnectDuring,
  recordOf,
  saidIn,
  scriptedServices,
  withoutProgress,
} from './fused-answers.ts'

const startScripted = scriptedServices()

const model = 'svc-router/fusion'
const judged = judgeReply({ scores: { A: 6, B: 6, C: 6 } })
const written = 'Written from all three of them.'
/** The calls to the three backends: each is a member, and the first one is also judge and writer. */
const scripts: readonly (readonly ScriptStep[])[] = [
  [answer('Alpha says forty.'), answer(judged), answer(written)],
  [answer('Beta says fifty.')],
  [answer('Gamma says sixty.')],
]
const down: ScriptStep = { do: 'status', status: 500, repeat: true }

const bodies = {
  '/chat/completions': { model, messages: [{ role: 'user', content: 'How many?' }] },
  '/responses': { model, input: 'How many?' },
  '/messages': { model, max_tokens: 900, messages: [{ role: 'user', content: 'How many?' }] },
} as const
const asked = Object.entries(bodies).flatMap(([path, body]) => [
  { name: `${path}, whole`, path, body: { ...body, stream: false } },
  { name: `${path}, streamed`, path, body: { ...body, stream: true } },
])

const used = ({ store, account }: Service): Promise<number> =>
  store.usedUnits(account.id, new Date().toISOString().slice(0, 7))

describe.each(asked)('$name', ({ path, body }) => {
  test('the answer combines three members, is charged once, and shows none of the panel', async () => {
    const service = await startScripted(scripts)
    const response = await service.post(path, body)
    const text = await response.text()
    expect(response.status, text).toBe(200)
    expect(saidIn(text)).toBe(written)
    expect(text).toContain(`"model":"${model}"`)
    expect(response.headers.get('x-svc-router-upstream')).toBe('fusion')
    expect(response.headers.get('x-svc-router-retry-count')).toBe('0')
    expect(response.headers.get('x-quota-used')).toBe('1')
    for (const secret of ['model-of-', judgeSecret, '⟦', 'Beta says', 'svc-router:fusion'])
      expect(text).not.toContain(secret)
    expect(service.providers.map((provider) => provider.counts().requests)).toEqual([3, 1, 1])
    const record = await recordOf(service, response.headers.get('x-request-id'))
    expect(record).toMatchObject({ profile: model, charged: 1, units: 1 })
    expect(record.attempts.map(({ backend, outcome }) => `${backend} ${outcome}`).toSorted()).toEqual([
      'alpha answered',
      'alpha answered',
      'alpha answered',
      'beta answered',
      'gamma answered',
    ])
    expect(await service.store.usedUnits(service.account.id, new Date().toISOString().slice(0, 7))).toBe(1)
  })

  test('the answer succeeds with one or two members down', async () => {
    const service = await startScripted([scripts[0]!, [down], scripts[2]!])
    const one = await service.post(path, body)
    const text = await one.text()
    expect(one.status, text).toBe(200)
    expect(saidIn(text)).not.toBe('')
    expect(one.headers.get('x-svc-router-retry-count')).toBe('0')
    const [alpha, beta, gamma] = service.providers
    alpha!.script([answer('Alpha alone.'), answer('Alpha alone.'), answer('Alpha alone.')])
    beta!.script([down])
    gamma!.script([down])
    const two = await service.post(path, body)
    expect(saidIn(await two.text())).toBe('Alpha alone.')
    const record = await recordOf(service, two.headers.get('x-request-id'))
    expect(record.attempts.filter(({ backend }) => backend !== 'alpha').every(({ status }) => status === 500)).toBe(
      true,
    )
    expect(await used(service)).toBe(2)
  })

  test('the request is rejected free of charge if no member answers', async () => {
    // Even on a slow machine, a stream that has not opened yet can be rejected with a status.
    const service = await startScripted([[down], [down], [down]], { clock: withoutProgress() })
    const response = await service.post(path, body)
    expect(response.status, await response.text()).toBe(503)
    expect(response.headers.get('x-svc-router-retry-count')).toBe('0')
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await used(service)).toBe(0)
  })

  test('the answer succeeds if every judge produces nonsense', async () => {
    const nonsense: ScriptStep[] = [{ do: 'answer', text: 'It is all fine.', repeat: true }]
    const service = await startScripted([
      [answer('Alpha says forty.'), ...nonsense],
      [answer('Beta says fifty.'), ...nonsense],
      scripts[2]!,
    ])
    const response = await service.post(path, body)
    expect(saidIn(await response.text())).toBe('It is all fine.')
    expect(await recordOf(service, response.headers.get('x-request-id'))).toMatchObject({ charged: 1 })
  })

  test('a plan without fusion gets 403 before any backend is asked', async () => {
    const service = await startScripted([])
    const { key } = await service.addAccount('frugal', 'free')
    const response = await service.post(path, body, { authorization: `Bearer ${key}` })
    expect(response.status).toBe(403)
    expect(await response.text()).toContain('plan_required')
    expect(service.providers.map((provider) => provider.counts().requests)).toEqual([0, 0, 0])
  })

  test('a client that disconnects aborts every sub-call within 100 ms and is charged once', async () => {
    const service = await startScripted(Array.from({ length: 3 }, () => [{ do: 'silence', repeat: true }] as const))
    const event = await disconnectDuring(service, { path, body })
    expect(event).toMatchObject({ outcome: 'client_closed', attempts: 3, charged: 1 })
  })
})

describe.each(asked.filter(({ body }) => body.stream))('$name', ({ path, body }) => {
  test('something arrives within 250 ms, however long the members take', async () => {
    const service = await startScripted(Array.from({ length: 3 }, () => [{ do: 'silence', repeat: true }] as const))
    using held = new HeldTime()
    const waitedMs: number[] = []
    // The best of three tries counts, so that other load on the machine does not fail the test.
    for (let round = 0; round < 3; round++) {
      const begunMs = performance.now()
      const response = await service.post(path, body)
      const reader = response.body!.getReader()
      const first = await reader.read()
      const firstMs = performance.now()
      waitedMs.push(firstMs - begunMs - held.within(begunMs, firstMs))
      expect(new TextDecoder().decode(first.value)).toContain('3 models were asked.')
      expect(response.headers.get('x-svc-router-upstream')).toBe('fusion')
      await reader.cancel()
    }
    expect(Math.min(...waitedMs)).toBeLessThan(250)
  })

  test('the stream gets keep-alives while the members are silent', async () => {
    const service = await startScripted(
      Array.from({ length: 3 }, () => [{ do: 'silence', repeat: true }] as const),
      {
        settings: { keep_alive: '100ms' },
      },
    )
    expect(await keptAliveText(await service.post(path, body))).toContain('3 models were asked.')
  })

  test('if the writer breaks off during its answer, the stream breaks with an error and is charged', async () => {
    const cut: ScriptStep = { do: 'cut', afterEvents: 6, by: 'rst' }
    const service = await startScripted([[answer('Alpha says forty.'), answer(judged), cut], scripts[1]!, scripts[2]!])
    const response = await service.post(path, body)
    const text = await response.text()
    expect(response.status).toBe(200)
    expect(text).toContain('upstream_broken')
    expect(text).not.toMatch(/response\.completed|"finish_reason":"stop"|message_stop/)
    expect(await recordOf(service, response.headers.get('x-request-id'))).toMatchObject({
      charged: 1,
      errorCode: 'upstream_broken',
    })
  })
})

test("a writer that falls silent during its answer is abandoned at the operator's limit", async () => {
  const stall: ScriptStep = { do: 'stall', afterEvents: 6 }
  const scripted = [[answer('Alpha says forty.'), answer(judged), stall], scripts[1]!, scripts[2]!]
  const service = await startScripted(scripted, { timeouts: { idle: '300ms' } })
  const response = await service.chat({ model, stream: true })
  expect(await response.text()).toContain('upstream_broken')
  const record = await recordOf(service, response.headers.get('x-request-id'))
  expect(record.attempts.at(-1)).toMatchObject({ backend: 'alpha', outcome: 'timeout' })
})

test('a slow reader may pause the writer for longer than a writer may be silent', async () => {
  const length = 1_500_000
  const scripted = [
    [answer('Alpha says forty.'), answer(judged), { do: 'answer' as const, length }],
    scripts[1]!,
    scripts[2]!,
  ]
  const service = await startScripted(scripted, { timeouts: { idle: '1s' } })
  const response = await service.chat({ model, stream: true })
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  let text = decoder.decode((await reader.read()).value, { stream: true })
  await new Promise((resolve) => setTimeout(resolve, 2_500))
  for (let next = await reader.read(); !next.done; next = await reader.read())
    text += decoder.decode(next.value, { stream: true })
  expect(saidIn(text)).toHaveLength(length)
})

test('a stream that opened early reports that no member answered, and costs nothing', async () => {
  // Longer than the time until a stream opens, and started later, so the timers run in this order on any machine.
  const limit = `${progressAfterMs + 100}ms`
  const timeouts = { connect: '500ms', first_content: limit, whole_answer: limit, idle: '600ms' }
  const service = await startScripted(
    Array.from({ length: 3 }, () => [{ do: 'silence', repeat: true }] as const),
    { timeouts },
  )
  const response = await service.responses({ model, stream: true })
  const text = await response.text()
  expect(response.status).toBe(200)
  expect(eventsOf(text).at(-1)).toMatchObject({ type: 'response.failed' })
  const numbers = eventsOf(text).map((event) => event['sequence_number'])
  expect(numbers).toEqual(numbers.map((_, index) => index))
  expect(await recordOf(service, response.headers.get('x-request-id'))).toMatchObject({ charged: 0 })
})

test('usage is the sum of all sub-calls, in the answer and in the record', async () => {
  const service = await startScripted(scripts)
  const response = await service.chat({ model })
  const { usage } = (await response.json()) as { usage: { prompt_tokens: number; completion_tokens: number } }
  const calls = service.providers.flatMap((provider, index) =>
    provider.captured().map(({ body }, nth) => {
      return answerAs(provider.name, readChatPrompt(JSON.parse(body) as JsonObject), scripts[index]![nth]!.text)
    }),
  )
  expect(calls).toHaveLength(5)
  const inputTokens = calls.reduce((sum, call) => sum + call.inputTokens, 0)
  const outputTokens = calls.reduce((sum, call) => sum + call.outputTokens, 0)
  expect(usage).toMatchObject({ prompt_tokens: inputTokens, completion_tokens: outputTokens })
  const record = await recordOf(service, response.headers.get('x-request-id'))
  expect(record.usage).toMatchObject({ inputTokens, outputTokens, source: 'counted' })
})

test('a slow reader receives all of a long answer', async () => {
  const length = 400_000
  const long: ScriptStep = { do: 'answer', length }
  const service = await startScripted([[answer('Alpha says forty.'), answer(judged), long], scripts[1]!, scripts[2]!])
  const response = await service.chat({ model, stream: true })
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (let next = await reader.read(), count = 0; !next.done; next = await reader.read(), count++) {
    text += decoder.decode(next.value, { stream: true })
    if (count < 10) await new Promise((resolve) => setTimeout(resolve, 40))
  }
  expect(saidIn(text)).toHaveLength(length)
  expect(await recordOf(service, response.headers.get('x-request-id'))).toMatchObject({ charged: 1, state: 'done' })
})

test('a tool result goes to one model, without a panel', async () => {
  const service = await startScripted([])
  const call = { id: 'call_1', type: 'function', function: { name: 'count', arguments: '{}' } }
  const messages = [
    { role: 'user', content: 'How many?' },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'call_1', content: '42' },
  ]
  const tools = [{ type: 'function', function: { name: 'count', parameters: { type: 'object', properties: {} } } }]
  const response = await service.chat({ model, messages, tools })
  expect(await response.text()).toContain('The tool answered')
  expect(response.headers.get('x-svc-router-upstream')).toBe('alpha')
  expect(service.providers.map((provider) => provider.counts().requests)).toEqual([1, 0, 0])
})

test("the writer may call the caller's tools", async () => {
  const service = await startScripted([[answer('Alpha.'), answer(judged)], [answer('Beta.')], [answer('Gamma.')]])
  const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
  const tools = [{ type: 'function', function: { name: 'get_weather', parameters } }]
  const response = await service.chat({
    model,
    tools,
    messages: [{ role: 'user', content: 'The weather in Oslo?' }],
    tool_choice: 'required',
  })
  const body = (await response.json()) as { choices: { message: { tool_calls?: unknown[] }; finish_reason: string }[] }
  expect(body.choices[0]).toMatchObject({
    finish_reason: 'tool_calls',
    message: { tool_calls: [{ function: { name: 'get_weather' } }] },
  })
  const bodies = service.providers
    .flatMap((provider) => provider.captured())
    .filter(({ body: sent }) => sent.includes('"tools":['))
  expect(bodies).toHaveLength(1)
})

test('members of other formats take part, and one fusion cannot contain another', async () => {
  const service = await startScripted(scripts, { formats: ['openai-chat', 'openai-responses', 'anthropic-messages'] })
  const response = await service.chat({ model })
  expect(saidIn(await response.text())).toBe(written)
  const depths = service.providers.flatMap((one) =>
    one.captured().map(({ headers }) => headers['x-svc-router-fusion-depth']),
  )
  expect(depths).toEqual(['1', '1', '1', '1', '1'])
  const nested = await service.chat({ model }, { 'x-svc-router-fusion-depth': '1' })
  expect(nested.status).toBe(400)
  const plain = await service.chat({}, { 'x-svc-router-fusion-depth': '1' })
  expect(plain.status).toBe(200)
  expect(await used(service)).toBe(2)
})

test('a request that a fused answer cannot satisfy is rejected before any backend is asked', async () => {
  const service = await startScripted([])
  for (const extra of [{ n: 2 }, { logprobs: true }]) expect((await service.chat({ model, ...extra })).status).toBe(400)
  expect(service.providers.map((provider) => provider.counts().requests)).toEqual([0, 0, 0])
})

test('a configured profile uses its own backends and units, and no other backend is asked', async () => {
  const profiles = { [model]: { backends: ['beta', 'gamma'], quota_units: 5 } }
  const service = await startScripted([], { settings: { profiles } })
  const response = await service.chat({ model })
  await response.text()
  expect(response.headers.get('x-quota-used')).toBe('5')
  expect(service.providers[0]!.counts().requests).toBe(0)
  expect(service.providers[1]!.counts().requests).toBeGreaterThan(0)
})

test("an account's own provider takes part", async () => {
  const service = await startScripted([])
  await service.connectOwn('made-up-own-credential')
  const response = await service.chat({ model })
  await response.text()
  const sent = service.providers[0]!.captured().map(({ headers }) => headers['authorization'])
  expect(sent).toContain('Bearer made-up-own-credential')
})

test('fusion is listed for everyone, and available to plans that include it', async () => {
  const service = await startScripted([])
  const listed = await fetch(`${service.baseUrl}/models`, {
    headers: { authorization: `Bearer ${service.key}`, 'user-agent': 'tests/1' },
  }).then((response) => response.json() as Promise<{ data: { id: string }[] }>)
  expect(listed.data.find(({ id }) => id === model)).toMatchObject({ premium: true, entitled: true, quota_units: 1 })
  for (const path of ['/model-catalog', '/pricing']) {
    const shown = (await (await fetch(`${service.origin}${path}`)).json()) as { profiles: { id: string }[] }
    expect(
      shown.profiles.find(({ id }) => id === model),
      path,
    ).toMatchObject({ premium: true, quota_units: 1 })
  }
})

describe.each(majors)('$name', ({ OpenAI }) => {
  test('chat and responses, streamed and not, and a continued stored response each take one request', async () => {
    const service = await startScripted([])
    const { client, traffic } = connect(OpenAI, service)
    const messages = [{ role: 'user' as const, content: 'How many?' }]
    const whole = await client.chat.completions.create({ model, messages })
    expect(whole.choices[0]!.message.content).toContain('simulated')
    const chat = await client.chat.completions.stream({ model, messages }).finalContent()
    expect(chat).toContain('simulated')
    const first = await client.responses.create({ model, input: 'My name is Ada.' })
    expect(first).toMatchObject({ status: 'completed', store: true, model })
    const stream = client.responses.stream({ model, input: 'Who am I?', previous_response_id: first.id })
    const second = await stream.finalResponse()
    expect(second.output_text).toContain('simulated')
    expect(second.previous_response_id).toBe(first.id)
    expect(service.providers[2]!.captured().at(-1)!.body).toContain('My name is Ada.')
    const third = await client.responses.create({
      model: 'svc-router/frontier',
      input: 'And?',
      previous_response_id: second.id,
    })
    expect(third.status).toBe('completed')
    expect(traffic.answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  })
})
