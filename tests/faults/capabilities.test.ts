import type { IncomingMessage, ServerResponse } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { addUpstream } from '../../src/accounts/upstreams.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import { Service } from '../service.ts'
import { sendJson, startScriptedUpstream, type ScriptedUpstream } from './scripted-upstream.ts'

const messages = [{ role: 'user', content: 'Hi' }]
const pictures = [
  { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }] },
]
const answer = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
})

function refuse(response: ServerResponse, status: number, message: string, type = 'invalid_request_error'): void {
  const body = JSON.stringify({ error: { message, type, param: null, code: null } })
  response.writeHead(status, { 'content-type': 'application/json' }).end(body)
}

describe('servers with limited capabilities', () => {
  let first: ScriptedUpstream
  let second: ScriptedUpstream
  let service: Service

  beforeEach(async () => {
    first = await startScriptedUpstream()
    second = await startScriptedUpstream()
    second.answer = (_request, response) => sendJson(response, answer)
  })
  afterEach(async () => {
    await service.stop()
    await first.close()
    await second.close()
  })

  async function start(preset: string, fallback: boolean): Promise<void> {
    const provider = (upstream: ScriptedUpstream, name: string) => ({ preset: name, base_url: upstream.baseUrl })
    service = await Service.start({
      formats: [],
      settings: {
        providers: { a: provider(first, preset), b: provider(second, 'custom') },
        backends: {
          a: { provider: 'a', model: 'm' },
          ...(fallback ? { b: { provider: 'b', model: 'm' } } : {}),
        },
      },
    })
  }

  const ask = (body: JsonObject): Promise<Response> =>
    service.post('/chat/completions', { model: 'svc-router/frontier', messages, ...body })

  test('a vendor with two endpoints gets stop sequences at the one that supports them', async () => {
    await start('ollama', false)
    const baseUrl = first.baseUrl
    const draft = { provider: 'openai', model: 'm', baseUrl, format: null, authHeader: null, credential: undefined }
    await addUpstream(service.accountsDeps, service.account.id, draft, () => '')
    const paths: (string | undefined)[] = []
    first.answer = (request: IncomingMessage, response) => {
      paths.push(request.url)
      sendJson(response, answer)
    }
    const isOwn = async (): Promise<boolean> => (await ask({})).headers.get('x-svc-router-upstream') !== 'a'
    await expect.poll(isOwn, { timeout: 2_000 }).toBe(true)
    first.bodies.length = paths.length = 0
    for (const body of [{ stop: ['END'] }, { n: 2 }, { max_tokens: 7 }]) expect((await ask(body)).status).toBe(200)
    expect(paths).toEqual(Array.from({ length: 3 }, () => '/v1/chat/completions'))
    expect(JSON.parse(first.bodies[0]!)).toMatchObject({ stop: ['END'] })
    expect(JSON.parse(first.bodies[2]!)).toMatchObject({ max_completion_tokens: 7 })
  })

  test('a field that a server rejects is left out, and servers receive UUIDs as request IDs', async () => {
    await start('ollama', false)
    const ids: unknown[] = []
    first.answer = (request, response) => {
      ids.push(request.headers['x-request-id'])
      if (first.bodies.at(-1)!.includes('reasoning_effort')) refuse(response, 400, '"m" does not support thinking')
      else sendJson(response, answer)
    }
    for (let round = 0; round < 3; round += 1) expect((await ask({ reasoning_effort: 'high' })).status).toBe(200)
    expect(first.bodies).toHaveLength(4)
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  })

  test('images that a server cannot read go to another server, and text still goes to the first', async () => {
    await start('llama-cpp', true)
    first.answer = (_request, response) => {
      if (first.bodies.at(-1)!.includes('image_url'))
        refuse(response, 500, 'image input is not supported - hint: provide the mmproj', 'server_error')
      else sendJson(response, answer)
    }
    for (let round = 0; round < 8; round += 1) {
      const response = await ask({ messages: pictures })
      expect([response.status, response.headers.get('x-svc-router-upstream')]).toEqual([200, 'b'])
    }
    expect((await ask({})).headers.get('x-svc-router-upstream')).toBe('a')
    expect(first.bodies).toHaveLength(2)
  })

  test('without another server the caller learns what is unsupported, without any text of the server', async () => {
    await start('llama-cpp', false)
    first.answer = (_request, response) =>
      refuse(response, 500, 'image input is not supported - hint: secret-canary', 'server_error')
    const response = await ask({ messages: pictures })
    const text = await response.text()
    expect([response.status, JSON.parse(text)]).toMatchObject([
      400,
      {
        error: { code: 'unsupported_parameter', param: 'messages', message: expect.stringContaining('accepts images') },
      },
    ])
    expect(text).not.toContain('canary')
  })

  test('a prompt that is too long for one server goes to the next, whose context window is unknown', async () => {
    await start('vllm', true)
    first.answer = (_request, response) =>
      refuse(response, 400, "This model's maximum context length is 16 tokens.", 'BadRequestError')
    expect((await ask({})).headers.get('x-svc-router-upstream')).toBe('b')
  })
})
