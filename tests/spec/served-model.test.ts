import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openEventStream, sendJson, startScriptedUpstream, type ScriptedUpstream } from '../faults/scripted-upstream.ts'
import { goodAnswers } from '../gateway/provider-faults.ts'
import { Service } from '../service.ts'

const model = 'maker/model-7'
let upstream: ScriptedUpstream
let service: Service

beforeAll(async () => {
  upstream = await startScriptedUpstream()
  upstream.answer = (_request, response) => {
    const { opening, delta, ending, whole } = goodAnswers['openai-chat']
    if (upstream.bodies.pop()!.includes('"stream":true')) {
      openEventStream(response)
      response.end(opening + delta('one') + delta('two') + delta('three') + ending('stop'))
    } else sendJson(response, whole('stop'))
  }
  service = await Service.start({
    formats: [],
    settings: {
      providers: { odd: { preset: 'custom', base_url: upstream.baseUrl, format: 'openai-chat' } },
      backends: { odd: { provider: 'odd', model } },
      profiles: { 'svc-router/frontier': { backends: ['odd'] }, 'my/open': { backends: ['odd'], reports_model: true } },
    },
  })
})
afterAll(async () => {
  await service.stop()
  await upstream.close()
})

const requests = [
  ['/chat/completions', { messages: [{ role: 'user', content: 'x' }] }],
  ['/responses', { input: 'x', store: false }],
  ['/messages', { max_tokens: 9, messages: [{ role: 'user', content: 'x' }] }],
] as const

describe.each([true, false])('streamed: %s', (stream) => {
  test.each(requests)(
    '%s gives the served model in a header, and in the body if its profile says so',
    async (path, body) => {
      const shown = { 'svc-router/frontier': 'svc-router/frontier', 'my/open': model, 'my-open': model }
      for (const [asked, expected] of Object.entries(shown)) {
        const response = await fetch(`${service.baseUrl}${path}`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${service.key}`,
            'content-type': 'application/json',
            'user-agent': 'test/1',
            'anthropic-version': '2023-06-01',
          },
          body: JSON.stringify({ ...body, model: asked, stream }),
        })
        const text = await response.text()
        expect(response.status, text).toBe(200)
        expect(response.headers.get('x-svc-router-model')).toBe(model)
        const named = new Set(Array.from(text.matchAll(/"model"\s*:\s*"([^"]*)"/g), ([, name]) => name))
        expect([...named]).toEqual([expected])
      }
    },
  )
})
