import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { Service } from '../service.ts'
import { judgeReply } from '../simulation/simulated-judge.ts'
import { answer } from '../spec/fused-answers.ts'
import { counted, entrances } from './ai-clients.ts'
import { connect, majors } from './openai-clients.ts'

const model = 'svc-router/fusion'
const scripts: readonly (readonly ScriptStep[])[] = [
  [answer('Alpha says forty.'), answer(judgeReply({ scores: { A: 6, B: 6, C: 6 } })), answer('Written.')],
  [answer('Beta says fifty.')],
  [answer('Gamma says sixty.')],
]

interface Part {
  readonly role: string
  readonly status: string
  readonly in: number
  readonly cached: number
  readonly out: number
  readonly reasoning: number
  readonly ms: number
}

/** Asserts a breakdown of usage; `input` and `output` are the totals that the client reports. */
function expectBreakdown(usage: unknown, input: number | undefined, output: number | undefined): void {
  const { requests, breakdown } = (usage as { svc_router: { requests: number; breakdown: Part[] } }).svc_router
  expect(breakdown.map(({ role }) => role).toSorted()).toEqual(['judge', 'panel', 'panel', 'panel', 'synthesis'])
  expect(requests).toBe(5)
  for (const part of breakdown)
    expect(Object.keys(part)).toEqual(['role', 'in', 'cached', 'out', 'reasoning', 'ms', 'status'])
  expect(breakdown.reduce((sum, part) => sum + part.in, 0)).toBe(input)
  expect(breakdown.reduce((sum, part) => sum + part.out, 0)).toBe(output)
  expect(breakdown.every(({ status }) => status === 'answered')).toBe(true)
}

let service: Service
beforeAll(async () => {
  service = await Service.start()
})
afterAll(() => service.stop())
beforeEach(() => {
  for (const [index, steps] of scripts.entries()) service.providers[index]!.script(steps)
})

describe.each(majors)('$name accepts usage with its breakdown', ({ OpenAI }) => {
  const messages = [{ role: 'user' as const, content: 'How many?' }]

  test('in a chat completion', async () => {
    const { client, traffic } = connect(OpenAI, service)
    const { usage } = await client.chat.completions.create({ model, messages })
    expectBreakdown(usage, usage?.prompt_tokens, usage?.completion_tokens)
    expect(traffic.answers).toHaveLength(1)
  })

  test('in a streamed chat completion', async () => {
    const { client } = connect(OpenAI, service)
    const stream = client.chat.completions.stream({ model, messages, stream_options: { include_usage: true } })
    const usage = await stream.totalUsage()
    const whole = (await stream.finalChatCompletion()).usage
    expectBreakdown(whole, usage.prompt_tokens, usage.completion_tokens)
    expect(await stream.finalContent()).toBe('Written.')
  })

  test('in a response', async () => {
    const { client } = connect(OpenAI, service)
    const { usage } = await client.responses.create({ model, input: 'How many?' })
    expectBreakdown(usage, usage?.input_tokens, usage?.output_tokens)
  })

  test('in a streamed response, and in the same response when it is retrieved', async () => {
    const { client } = connect(OpenAI, service)
    const { id, usage, output_text } = await client.responses.stream({ model, input: 'How many?' }).finalResponse()
    expectBreakdown(usage, usage?.input_tokens, usage?.output_tokens)
    expect(output_text).toBe('Written.')
    const kept = await client.responses.retrieve(id)
    expect(kept.usage).toEqual(usage)
  })
})

describe.each(entrances)('$name accepts usage with its breakdown', ({ ai, model: open, name }) => {
  /** Its chat provider passes on only the counts that it supports. */
  const check = (usage: { raw?: unknown; inputTokens: number | undefined; outputTokens: number | undefined }): void => {
    if (!name.endsWith('.chat')) return expectBreakdown(usage.raw, usage.inputTokens, usage.outputTokens)
    expect(usage.raw).not.toHaveProperty('svc_router')
    expect(usage.inputTokens).toBeGreaterThan(1_000)
    expect(usage.outputTokens).toBeGreaterThan(100)
  }

  test('in a non-streaming answer', async () => {
    const { text, usage } = await ai.generateText({
      model: open(counted(service).settings, model),
      prompt: 'How many?',
    })
    expect(text).toBe('Written.')
    check(usage)
  })

  test('in a streamed answer', async () => {
    const { text, usage } = ai.streamText({ model: open(counted(service).settings, model), prompt: 'How many?' })
    expect(await text).toBe('Written.')
    check(await usage)
  })
})
