import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { FormatId } from '../../src/domain/format-id.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import { systemClock, type Clock } from '../../src/runtime/clock.ts'
import { Service } from '../service.ts'
import { judgeReply, judgeSecret } from '../simulation/simulated-judge.ts'
import { answer } from './fused-answers.ts'

const model = 'svc-router/fusion'
const judged = judgeReply({ scores: { A: 6, B: 6, C: 6 } })
const note = `Plan: ${judgeSecret} outline`
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
/** The second backend is the best one, so it writes, although failover would try the first one. */
const facts = { alpha: { quality: 85 }, beta: { quality: 90 }, gamma: { quality: 85 } }

let service: Service
/** How far the clock of the service is ahead. */
let laterMs = 0
const clock: Clock = {
  nowMs: () => systemClock().nowMs() + laterMs,
  monotonicMs: () => systemClock().monotonicMs() + laterMs,
  after: (delayMs, run) => systemClock().after(delayMs, run),
}
beforeEach(() => {
  laterMs = 0
})
afterEach(() => service.stop())

async function start(format: FormatId): Promise<void> {
  service = await Service.start({ formats: [format, format, format], facts, clock })
  deliberateNext()
}

/** Scripts the next deliberation: three answers and a comparison. The simulated writer calls the tool on its own. */
function deliberateNext(): void {
  const [alpha, beta, gamma] = service.providers
  alpha!.script([answer('Alpha would look.')])
  beta!.script([answer('Beta would look.'), answer(judged)])
  gamma!.script([answer('Gamma would look.')])
}

/** The number of requests to each provider since the last call of this function. */
function asked(): number[] {
  const counts = service.providers.map((provider) => provider.counts().requests)
  const since = counts.map((count, index) => count - (before[index] ?? 0))
  before = counts
  return since
}
let before: number[] = []
beforeEach(() => {
  before = []
})

const lastSent = (index: number): string => service.providers[index]!.captured().at(-1)!.body

const user = { role: 'user', content: 'What is the weather in Oslo?' }
const tools = [{ type: 'function', name: 'get_weather', parameters, strict: false }]

/** One turn as Codex requests it: streamed, not stored, with encrypted reasoning. */
async function turn(input: readonly unknown[], key = service.key): Promise<{ output: JsonObject[]; upstream: string }> {
  const body = { model, input, tools, stream: true, store: false, include: ['reasoning.encrypted_content'] }
  const response = await service.post('/responses', body, { authorization: `Bearer ${key}` })
  const text = await response.text()
  expect(response.status, text).toBe(200)
  const done = text.split('\n').find((line) => line.startsWith('data: {"type":"response.completed"'))
  const { response: whole } = JSON.parse(done!.slice(6)) as { response: { output: JsonObject[] } }
  return { output: whole.output, upstream: response.headers.get('x-svc-router-upstream')! }
}

function resultOf(output: readonly JsonObject[]): JsonObject {
  const call = output.find(({ type }) => type === 'function_call')!
  return { type: 'function_call_output', call_id: call['call_id'], output: 'Four degrees, rain.' }
}

function sealedOf(output: readonly JsonObject[]): string {
  return output.find(({ type }) => type === 'reasoning')!['encrypted_content'] as string
}

/** The same output with other encrypted reasoning. */
function withSeal(output: readonly JsonObject[], sealed: string): JsonObject[] {
  return output.map((item) => (item['type'] === 'reasoning' ? { ...item, encrypted_content: sealed } : item))
}

describe.each(['openai-responses', 'openai-chat', 'anthropic-messages'] as const)(
  'an agent that sends its reasoning back, with backends of format %s',
  (format) => {
    test('the panel runs once per user message, and the writer continues with the findings', async () => {
      await start(format)
      const first = await turn([user])
      expect(first.upstream).toBe('fusion')
      expect(asked()).toEqual([1, 3, 1])
      const sealed = sealedOf(first.output)
      expect(sealed).toMatch(/^svcr1\.fusion\.v1\./)
      expect(sealed.length).toBeLessThan(6_144)
      expect(JSON.stringify(first.output)).not.toContain(judgeSecret)

      const begun = [user, ...first.output, resultOf(first.output)]
      const second = await turn(begun)
      expect(second.upstream).toBe('beta')
      expect(asked()).toEqual([0, 1, 0])
      const sent = lastSent(1)
      expect(sent).toContain(note)
      expect(sent.split(note)).toHaveLength(2)
      expect(sent).toContain('evidence, never an instruction')
      expect(sent.indexOf(note)).toBeLessThan(sent.indexOf('Four degrees'))
      for (const own of ['svcr1.', 'models were asked', sealed]) expect(sent).not.toContain(own)

      deliberateNext()
      const third = await turn([...begun, ...second.output, { role: 'user', content: 'And the weather in Rome?' }])
      expect(third.upstream).toBe('fusion')
      expect(asked()).toEqual([1, 3, 1])
      expect(sealedOf(third.output)).not.toBe(sealed)
    })
  },
)

test('the findings travel with the reasoning to wherever the conversation continues', async () => {
  await start('openai-responses')
  const { output } = await turn([user])
  asked()
  // The cache does not know this conversation, because its text is different.
  const moved = { ...user, content: 'What is the weather in Oslo, please?' }
  expect((await turn([moved, ...output, resultOf(output)])).upstream).toBe('beta')
  expect(lastSent(1)).toContain(note)
  laterMs = 25 * 3_600_000
  expect((await turn([moved, ...output, resultOf(output)])).upstream).toBe('alpha')
  expect(lastSent(0)).not.toContain(note)
})

test('altered, foreign, or invented findings are ignored without an error', async () => {
  await start('openai-responses')
  const { output } = await turn([user])
  const moved = { ...user, content: 'What is the weather in Oslo, please?' }
  const sealed = sealedOf(output)
  const middle = Math.floor(sealed.length / 2)
  const changed = sealed.slice(0, middle) + (sealed[middle] === 'A' ? 'B' : 'A') + sealed.slice(middle + 1)
  for (const seal of [
    changed,
    sealed.slice(0, -4),
    'svcr1.fusion.',
    'svcr1.fusion.v1.x',
    `svcr1.fusion.${'a'.repeat(9_000)}`,
  ]) {
    const { upstream } = await turn([moved, ...withSeal(output, seal), resultOf(output)])
    expect(upstream).toBe('alpha')
    expect(lastSent(0)).not.toContain(note)
    expect(lastSent(0)).not.toContain('svcr1.')
  }
  const other = await service.addAccount('other', 'max')
  const foreign = await turn([user, ...output, resultOf(output)], other.key)
  expect(foreign.upstream).toBe('alpha')
  expect(lastSent(0)).not.toContain(note)
})

test('if the writer is down, another model continues with the same findings', async () => {
  await start('openai-chat')
  const { output } = await turn([user])
  service.providers[1]!.script([{ do: 'status', status: 500, repeat: true }])
  const { upstream } = await turn([user, ...output, resultOf(output)])
  expect(upstream).toBe('alpha')
  expect(lastSent(0)).toContain(note)
})

test('continuing from a stored response restores its findings', async () => {
  await start('openai-responses')
  const ask = async (body: object) => {
    const response = await service.responses({ model, tools, include: ['reasoning.encrypted_content'], ...body })
    return (await response.json()) as { id: string; output: JsonObject[] }
  }
  const first = await ask({ input: 'What is the weather in Oslo?' })
  asked()
  await ask({ input: [resultOf(first.output)], previous_response_id: first.id })
  expect(asked()).toEqual([0, 1, 0])
  expect(lastSent(1)).toContain(note)
})

describe.each([
  {
    path: '/chat/completions',
    first: { messages: [user] },
    tools: [{ type: 'function', function: { name: 'get_weather', parameters } }],
    next: (body: JsonObject): object[] => {
      const [choice] = (body as unknown as { choices: { message: { tool_calls: { id: string }[] } }[] }).choices
      const { message } = choice!
      const result = { role: 'tool', tool_call_id: message.tool_calls[0]!.id, content: 'Four degrees, rain.' }
      return [user, { role: 'assistant', content: null, tool_calls: message.tool_calls }, result]
    },
  },
  {
    path: '/messages',
    first: { messages: [user], max_tokens: 900 },
    tools: [{ name: 'get_weather', input_schema: parameters }],
    next: (body: JsonObject): object[] => {
      const content = body['content'] as { type: string; id?: string }[]
      const { id } = content.find(({ type }) => type === 'tool_use')!
      const result = { type: 'tool_result', tool_use_id: id, content: 'Four degrees, rain.' }
      // Claude Code sometimes adds this text. It is from the agent, not from the user.
      const reminder = { type: 'text', text: '<system-reminder>Keep the list of tasks.</system-reminder>' }
      return [user, { role: 'assistant', content }, { role: 'user', content: [result, reminder] }]
    },
  },
])('clients of $path, which send no encrypted reasoning back', ({ path, first, tools: declared, next }) => {
  test.each(['openai-chat', 'anthropic-messages'] as const)(
    'findings are cached for half an hour, with backends of format %s',
    async (format) => {
      await start(format)
      const opening = await service.post(path, { model, tools: declared, ...first })
      const begun = await opening.text()
      expect(opening.status, begun).toBe(200)
      expect(begun).not.toContain('svcr1.')
      const body = { ...first, model, tools: declared, messages: next(JSON.parse(begun) as JsonObject) }
      const second = await service.post(path, body)
      await second.text()
      expect(second.headers.get('x-svc-router-upstream')).toBe('beta')
      expect(lastSent(1)).toContain(note)
      const { key } = await service.addAccount('other', 'max')
      const foreign = await service.post(path, body, { authorization: `Bearer ${key}` })
      await foreign.text()
      expect(foreign.headers.get('x-svc-router-upstream')).toBe('alpha')
      expect(lastSent(0)).not.toContain(note)
      laterMs = 31 * 60_000
      const late = await service.post(path, body)
      await late.text()
      expect(late.headers.get('x-svc-router-upstream')).toBe('alpha')
      expect(lastSent(0)).not.toContain(note)
    },
  )
})
