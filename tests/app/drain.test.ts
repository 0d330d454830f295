import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { RequestRecord } from '../../src/domain/requests.ts'
import {
  openEventStream,
  type ScriptedUpstream,
  settingsFor,
  startScriptedUpstream,
} from '../faults/scripted-upstream.ts'
import { Service } from '../service.ts'

let upstream: ScriptedUpstream
let service: Service
/** The answer of the backend, which ends it without its usage and leaves it open. */
let answer: ServerResponse

const send = (event: object): boolean => answer.write(`data: ${JSON.stringify({ id: 'c', model: 'm', ...event })}\n\n`)

beforeEach(async () => {
  upstream = await startScriptedUpstream()
  upstream.answer = (_, response) => {
    answer = response
    openEventStream(response)
    send({ choices: [{ index: 0, delta: { content: 'Hi.' }, finish_reason: null }] })
    send({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
  }
  service = await Service.start({
    formats: ['openai-chat'],
    settings: settingsFor(upstream, 'openai-chat'),
  })
})
afterEach(async () => {
  await service.stop()
  await upstream.close()
})

/** Stops the service once its client has the whole answer and has closed its connection. Resolves with the record. */
async function recordAfter(duringStop: () => void): Promise<RequestRecord | undefined> {
  const authorization = `Bearer ${service.key}`
  const headers = { authorization, 'content-type': 'application/json', 'user-agent': 'test/1', connection: 'close' }
  const asked = request(`${service.baseUrl}/chat/completions`, { method: 'POST', agent: false, headers })
  const messages = [{ role: 'user', content: 'Hi' }]
  asked.end(JSON.stringify({ model: 'svc-router/frontier', stream: true, messages }))
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  expect((await response.toArray()).join('')).toContain('[DONE]')
  const stopped = service.app.stop()
  duringStop()
  await stopped
  return service.store.findRequest(String(response.headers['x-request-id']))
}

test('a stop waits a second for the usage of an answer that its client has received', async () => {
  const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 }
  const record = await recordAfter(() => setTimeout(() => send({ choices: [], usage }), 300))
  expect(record).toMatchObject({
    state: 'done',
    charged: 1,
    usage: { inputTokens: 3, outputTokens: 4, source: 'counted' },
  })
})

test('if the usage does not come, a stop records the answer with an estimate', async () => {
  const record = await recordAfter(() => {})
  expect(record).toMatchObject({ state: 'done', charged: 1, usage: { source: 'estimated' } })
})
