import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openEventStream, sendJson, startScriptedUpstream, type ScriptedUpstream } from '../faults/scripted-upstream.ts'
import { Service } from '../service.ts'
import { shareService } from '../shared-service.ts'

const share = shareService({ formats: ['openai-chat'] })
let service: Service

const ask = (body: object): Promise<Response> =>
  service.post('/completions', { model: 'svc-router/frontier', prompt: 'Once upon a time', ...body })

interface Completion {
  readonly object: string
  readonly model: string
  readonly choices: readonly { readonly text: string; readonly finish_reason: string | null }[]
  readonly usage: { readonly total_tokens: number }
  readonly error: { readonly code: string; readonly param: string | null }
}

const read = async (response: Response): Promise<Completion> => (await response.json()) as Completion

function chunksOf(text: string): Completion[] {
  return text
    .split('\n\n')
    .filter((event) => event.startsWith('data: {'))
    .map((event) => JSON.parse(event.slice('data: '.length)) as Completion)
}

describe('translated, if no backend has the endpoint', () => {
  beforeEach(async () => {
    service = await share()
  })

  test('a prompt becomes a user message, and the answer is a text completion', async () => {
    const response = await ask({ max_tokens: 40, stop: 'END' })
    const body = await read(response)
    expect(response.status).toBe(200)
    expect(body).toMatchObject({ object: 'text_completion', model: 'svc-router/frontier' })
    expect(body.choices).toEqual([
      { text: expect.stringMatching(/.+/), index: 0, logprobs: null, finish_reason: 'stop' },
    ])
    expect(body.usage.total_tokens).toBeGreaterThan(0)
    const [sent] = service.providers[0]!.captured()
    expect(JSON.parse(sent!.body)).toMatchObject({
      messages: [{ role: 'user', content: 'Once upon a time' }],
      stop: ['END'],
    })
  })

  test('a stream has the same text in chunks, usage if requested, and an end', async () => {
    const whole = await read(await ask({}))
    const text = await (await ask({ stream: true, stream_options: { include_usage: true } })).text()
    const chunks = chunksOf(text)
    expect(chunks.map(({ choices }) => choices[0]?.text ?? '').join('')).toBe(whole.choices[0]?.text)
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('stop')
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: whole.usage })
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  })

  test.each([
    ['suffix', { suffix: 'The end.' }],
    ['echo', { echo: true }],
    ['best_of', { best_of: 3 }],
    ['logprobs', { logprobs: 2 }],
    ['prompt', { prompt: ['One', 'Two'] }],
    ['prompt', { prompt: [1, 2, 3] }],
  ])('%s cannot be expressed as chat: the error names it, and nothing is charged', async (param, fields) => {
    const response = await ask(fields)
    const { error } = await read(response)
    expect({ status: response.status, code: error.code, param: error.param }).toEqual({
      status: 400,
      code: 'unsupported_parameter',
      param,
    })
    expect(response.headers.get('x-quota-used')).toBe('0')
  })

  test.each([
    ['a number', 5],
    ['an empty list', []],
    ['an object in a list', [{}]],
    ['a list of 200 texts', Array(200).fill('x')],
  ])('%s is not a prompt', async (_, prompt) => {
    const response = await ask({ prompt })
    const { error } = await read(response)
    expect([response.status, error.code, error.param]).toEqual([400, 'invalid_request', 'prompt'])
  })
})

describe('relayed, if a backend has the endpoint', () => {
  let upstream: ScriptedUpstream
  let paths: string[]

  beforeEach(async () => {
    paths = []
    upstream = await startScriptedUpstream()
    service = await Service.start({
      formats: [],
      settings: {
        providers: { local: { preset: 'vllm', base_url: upstream.baseUrl } },
        backends: { local: { provider: 'local', model: 'base-model' } },
        profiles: { 'svc-router/frontier': { backends: ['local'] } },
      },
    })
  })
  afterEach(async () => {
    await service.stop()
    await upstream.close()
  })

  const choice = (text: string, reason: string | null, index = 0): object => ({
    index,
    text,
    logprobs: { tokens: [text], token_logprobs: [-0.1] },
    finish_reason: reason,
  })

  test('every field of the endpoint is passed on, in both directions', async () => {
    upstream.answer = (request, response) => {
      paths.push(request.url ?? '')
      const choices = [choice('A', 'stop'), choice('B', 'length', 1)]
      const usage = { prompt_tokens: 2, completion_tokens: 2, total_tokens: 4 }
      sendJson(
        response,
        JSON.stringify({ id: 'cmpl-1', object: 'text_completion', model: 'base-model', choices, usage }),
      )
    }
    const fields = { prompt: ['One', 'Two'], echo: true, logprobs: 1, suffix: 'end', best_of: 2 }
    const body = await read(await ask(fields))
    expect(paths).toEqual(['/v1/completions'])
    expect(JSON.parse(upstream.bodies[0]!)).toEqual({ model: 'base-model', ...fields, stream: false })
    expect(body.model).toBe('svc-router/frontier')
    expect(body.choices).toEqual([choice('A', 'stop'), choice('B', 'length', 1)])
  })

  test('a stream ends when all prompts are answered, and breaks if one is not', async () => {
    const send = (choices: readonly object[]): string =>
      `data: ${JSON.stringify({ id: 'cmpl-1', object: 'text_completion', model: 'base-model', choices })}\n\n`
    const events = [send([choice('A', null)]), send([choice('B', null, 1)]), send([choice('', 'stop')])]
    const last = send([choice('', 'stop', 1)])
    for (const [rest, end] of [
      [[last, 'data: [DONE]\n\n'], '[DONE]'],
      [[], 'upstream_broken'],
    ] as const) {
      upstream.answer = (_request, response) => {
        openEventStream(response)
        response.end([...events, ...rest].join(''))
      }
      const text = await (await ask({ prompt: ['One', 'Two'], stream: true })).text()
      const chunks = chunksOf(text)
      expect(chunks.slice(0, 2).map(({ model, choices }) => [model, choices[0]?.text])).toEqual([
        ['svc-router/frontier', 'A'],
        ['svc-router/frontier', 'B'],
      ])
      if (end === '[DONE]') expect(chunks.filter(({ error }) => error !== undefined)).toEqual([])
      else expect(chunks.at(-1)?.error.code).toBe(end)
    }
  })

  test('chat uses the chat endpoint of the same backend', async () => {
    upstream.answer = (request, response) => {
      paths.push(request.url ?? '')
      const message = { role: 'assistant', content: 'Hello' }
      sendJson(
        response,
        JSON.stringify({ object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }] }),
      )
    }
    expect((await service.chat()).status).toBe(200)
    expect(paths).toEqual(['/v1/chat/completions'])
  })

  test('a server without the endpoint is asked for chat, then and afterwards', async () => {
    upstream.answer = (request, response) => {
      paths.push(request.url ?? '')
      if (request.url === '/v1/completions') {
        response.writeHead(404, { 'content-type': 'application/json' }).end('{"detail":"Not Found"}')
        return
      }
      const message = { role: 'assistant', content: 'there lived a router' }
      sendJson(
        response,
        JSON.stringify({ object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }] }),
      )
    }
    for (let count = 0; count < 2; count++) {
      const body = await read(await ask({}))
      expect(body.choices?.[0]?.text).toBe('there lived a router')
    }
    expect(paths).toEqual(['/v1/completions', '/v1/chat/completions', '/v1/chat/completions'])
  })
})
