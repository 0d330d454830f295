import { describe, expect, test } from 'vitest'
import type { FormatId } from '../../src/domain/format-id.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { seenIn } from '../seen-answer.ts'
import { judgeReply } from '../simulation/simulated-judge.ts'
import { answer, eventsOf, scriptedServices } from './fused-answers.ts'

const startScripted = scriptedServices()

const frontier = 'svc-router/frontier'
const fusion = 'svc-router/fusion'
const tool = { type: 'svc-router:fusion' }
const ours = 'svc_router_fusion'
const reply = 'It is cold.'
const stray = JSON.stringify([{ name: ours, arguments: { question: 'Is it cold?' } }])
const call: ScriptStep = { do: 'answer', calls: stray }

const args = JSON.stringify({ city: 'Oslo' })
const parameters = { type: 'object', properties: { city: { type: 'string' } } }
/** Requests that end with the result of a client's tool. */
const bodies = {
  '/chat/completions': {
    messages: [
      { role: 'user', content: 'Is it cold?' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: args } }],
      },
      { role: 'tool', tool_call_id: 'call_1', content: '-7' },
    ],
    tools: [{ type: 'function', function: { name: 'get_weather', parameters } }],
  },
  '/responses': {
    input: [
      { role: 'user', content: 'Is it cold?' },
      { type: 'function_call', call_id: 'call_1', name: 'get_weather', arguments: args },
      { type: 'function_call_output', call_id: 'call_1', output: '-7' },
    ],
    tools: [{ type: 'function', name: 'get_weather', parameters }],
  },
  '/messages': {
    max_tokens: 900,
    messages: [
      { role: 'user', content: 'Is it cold?' },
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: 'call_1', name: 'get_weather', input: { city: 'Oslo' } }],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: '-7' }] },
    ],
    tools: [{ name: 'get_weather', input_schema: parameters }],
  },
} as const
type Path = keyof typeof bodies
const formatOf: Readonly<Record<Path, FormatId>> = {
  '/chat/completions': 'openai-chat',
  '/responses': 'openai-responses',
  '/messages': 'anthropic-messages',
}
const none: Readonly<Record<Path, JsonObject | string>> = {
  '/chat/completions': 'none',
  '/responses': 'none',
  '/messages': { type: 'none' },
}
const paths = Object.keys(bodies) as Path[]
/** Backends of the client's format, which are relayed, and one backend of another format. */
const lanes: readonly (readonly [Path, FormatId])[] = [
  ...paths.map((path) => [path, formatOf[path]] as const),
  ['/messages', 'openai-chat'],
]
const forms = lanes.flatMap(([path, format]) => [false, true].map((stream) => ({ path, format, stream })))

describe.each(forms)('$path of $format, streamed: $stream', ({ path, format, stream }) => {
  const formats = [format, format, format]
  const onAlias = { model: fusion, ...bodies[path], stream }
  const notAllowed = {
    model: frontier,
    ...bodies[path],
    stream,
    tools: [...bodies[path].tools, tool],
    tool_choice: none[path],
  }
  const turns: readonly (readonly [string, JsonObject, string])[] = [
    ['a turn with results of tools', onAlias, 'tool_loop'],
    ['a tool that may not be called', notAllowed, 'not_allowed'],
  ]

  test.each(turns)('%s reports that the panel did not run, and why', async (_, body, reason) => {
    const service = await startScripted([[answer(reply)]], { formats })
    for (const extra of path === '/chat/completions' ? [{}, { stream_options: { include_usage: true } }] : [{}]) {
      service.providers[0]!.script([answer(reply)])
      const response = await service.post(path, { ...body, ...extra })
      const text = await response.text()
      expect(response.status, text).toBe(200)
      expect(response.headers.get('x-svc-router-upstream')).toBe('alpha')
      const seen = seenIn(text)
      expect(seen).toMatchObject({ text: reply, report: { ran: false, reason } })
      expect(text.match(/"svc_router":/g), text).toHaveLength(1)
      if (stream && path === '/responses') {
        const numbers = eventsOf(text).map((event) => event['sequence_number'])
        expect(numbers).toEqual(numbers.map((_number, index) => index))
      }
    }
  })

  test.each(turns)(
    'with %s, a model that calls our function unprompted has failed, and the next one answers',
    async (_, body) => {
      const service = await startScripted([[call], [answer(reply)]], { formats })
      const response = await service.post(path, body)
      const text = await response.text()
      expect(response.status, text).toBe(200)
      expect(text).not.toContain(ours)
      expect(seenIn(text)).toMatchObject({ text: reply, calls: [] })
      expect(response.headers.get('x-svc-router-retry-count')).toBe('1')
    },
  )

  test.each(turns)(
    'with %s and no other model left, the request is rejected and the call is never shown',
    async (_, body) => {
      const service = await startScripted([[call], [call], [call]], { formats })
      const response = await service.post(path, body)
      expect(response.status).toBe(503)
      expect(await response.text()).not.toContain(ours)
      expect(response.headers.get('x-quota-used')).toBe('0')
    },
  )

  test.each(turns)('with %s, a call after text breaks the answer and is never shown', async (_, body) => {
    const step: ScriptStep = { do: 'answer', text: 'Let me ask around.', calls: stray, tokenDelayMs: 20 }
    const service = await startScripted([[step], [answer(reply)]], { formats })
    const response = await service.post(path, body)
    const text = await response.text()
    expect(text).not.toContain(ours)
    if (stream) {
      expect(text).toContain('upstream_broken')
      expect(text).not.toMatch(/response\.completed|"finish_reason":"(?:stop|tool_calls)"|message_stop/)
    } else expect(seenIn(text).text).toBe(reply)
  })

  test("a caller's own function of that name belongs to the caller if the tool is not attached", async () => {
    const service = await startScripted([[call]], { formats })
    const named = JSON.parse(JSON.stringify(onAlias).replaceAll('get_weather', ours)) as JsonObject
    const response = await service.post(path, named)
    expect(seenIn(await response.text()).calls.map(({ name }) => name)).toEqual([ours])
  })

  test("a writer of the alias that calls the function has failed, and the members' answers become the reply", async () => {
    const judged = judgeReply({ scores: { A: 6, B: 6, C: 6 } })
    const service = await startScripted(
      [
        [answer('Alpha.'), answer(judged), call],
        [answer('Beta.'), call],
        [answer('Gamma.'), call],
      ],
      { formats },
    )
    const asked = { role: 'user', content: 'Is it cold?' }
    const turn = path === '/responses' ? { input: [asked] } : { messages: [asked] }
    const response = await service.post(path, { ...onAlias, ...turn })
    const text = await response.text()
    expect(text).not.toContain(ours)
    const seen = seenIn(text)
    expect(seen.text, text).toMatch(/^(?:Alpha|Beta|Gamma)\.$/)
    expect(seen.calls).toEqual([])
  })
})

test('a short answer of the alias comes from one model and says so', async () => {
  const service = await startScripted([[answer(reply)]])
  const response = await service.chat({ model: fusion, max_tokens: 16 })
  expect(seenIn(await response.text()).report).toEqual({ ran: false, reason: 'short_answer' })
})

test('if several choices are requested, none may call the function', async () => {
  const service = await startScripted([[call], [answer(reply)]])
  const response = await service.chat({ n: 2, tools: [tool], tool_choice: 'none' })
  const text = await response.text()
  expect(text).not.toContain(ours)
  expect(seenIn(text)).toMatchObject({ text: `${reply}${reply}` })
})

test('a plain request contains nothing about fusion', async () => {
  const service = await startScripted([[answer(reply)], [answer(reply)]])
  for (const stream of [false, true]) expect(await (await service.chat({ stream })).text()).not.toContain('svc_router')
})
