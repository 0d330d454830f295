import { beforeEach, describe, expect, test } from 'vitest'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { embeddingsProfile as model, withEmbeddings } from '../embeddings-service.ts'
import { errorOf, expectUsage } from '../refusals.ts'
import type { Service } from '../service.ts'
import { shareServices } from '../shared-service.ts'
import { readAnswer, type Answer } from '../wire.ts'

const share = shareServices()
let service: Service
beforeEach(async () => {
  service = await share(withEmbeddings())
})

interface Embeddings {
  readonly data: readonly { readonly index: number; readonly embedding: string | readonly number[] }[]
  readonly model: string
  readonly usage: { readonly prompt_tokens: number }
}

async function embed(extra: Record<string, unknown> = {}, headers: Record<string, string> = {}): Promise<Answer> {
  return readAnswer(await service.post('/embeddings', { model, input: 'Hello', ...extra }, headers))
}

function read({ text }: Answer): Embeddings {
  return JSON.parse(text) as Embeddings
}

async function recordOf({ headers }: Answer) {
  const id = headers.get('x-request-id') ?? ''
  await expect.poll(async () => (await service.store.findRequest(id))?.state).toBe('done')
  return (await service.store.findRequest(id))!
}

describe('an answer', () => {
  test('an answer names the profile and its backend, says that it is simulated, and counts one request and one unit', async () => {
    const answer = await embed()
    expect(answer.status, answer.text).toBe(200)
    const { data, model: named, usage } = read(answer)
    expect(data).toMatchObject([{ object: 'embedding', index: 0 }])
    expect(named).toBe(model)
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'x-svc-router-upstream': 'vectors-a',
      'x-svc-router-retry-count': '0',
    })
    expect(answer.text).toContain('"simulated":true')
    expect(expectUsage(answer.headers)).toMatchObject({ 'x-quota-used': 1, 'x-ratelimit-remaining': 599 })
    expect(await recordOf(answer)).toMatchObject({
      format: 'openai-embeddings',
      profile: model,
      stream: false,
      charged: 1,
      usage: { inputTokens: usage.prompt_tokens, outputTokens: 0, source: 'counted' },
      attempts: [{ backend: 'vectors-a', outcome: 'answered' }],
    })
  })

  test('an answer is relayed: only the model changes, in both directions', async () => {
    const body = `{ "input" : ["a", "b\\u00e9"],"model":"${model}", "dimensions": 4, "encoding_format":"base64","user":"x", "unheard_of": [1.50] }`
    const answer = await readAnswer(await service.post('/embeddings', body))
    const { path, body: sent } = service.providers[0]!.captured()[0]!
    expect(path).toBe('/v1/embeddings')
    expect(JSON.parse(sent)).toEqual({ ...(JSON.parse(body) as object), model: 'vectors-1' })
    expect(sent).toContain('"b\\u00e9"')
    expect(sent).toContain('[1.50]')
    const direct = await fetch(`${service.providers[0]!.baseUrl}/embeddings`, { method: 'POST', body: sent })
    expect(answer.text).toBe((await direct.text()).replace('"model":"vectors-1"', `"model":"${model}"`))
  })

  test('base64 and numbers encode the same vectors, every time', async () => {
    const numbers = read(await embed({ input: ['one', 'two'], encoding_format: 'float' })).data
    const packed = read(await embed({ input: ['one', 'two'], encoding_format: 'base64' })).data
    expect(numbers.map(({ index }) => index)).toEqual([0, 1])
    expect(packed.map(({ embedding }) => unpack(embedding as string))).toEqual(
      numbers.map(({ embedding }) => embedding),
    )
    expect(numbers[0]!.embedding).not.toEqual(numbers[1]!.embedding)
  })

  test('many long vectors arrive complete', async () => {
    const input = Array.from({ length: 200 }, (_, index) => `text ${index}`)
    const { data } = read(await embed({ input, dimensions: 1024, encoding_format: 'base64' }))
    expect(data).toHaveLength(200)
    expect(unpack(data[199]!.embedding as string)).toHaveLength(1024)
  })

  test.each([
    ['a list of tokens', [1, 2, 3], 1],
    ['lists of tokens', [[1, 2], [3]], 2],
  ])('the input may be %s', async (_, input, count) => {
    expect(read(await embed({ input })).data).toHaveLength(count)
  })
})

/** Failures of the first backend before its answer (contract 7.3). */
const failures: readonly (readonly [string, ScriptStep])[] = [
  ['401', { do: 'status', status: 401 }],
  ['429', { do: 'status', status: 429 }],
  ['503', { do: 'status', status: 503 }],
  ['a reset', { do: 'reset', repeat: true }],
  ['silence', { do: 'silence' }],
  ['half an answer', { do: 'cut' }],
  ['an answer without vectors', { do: 'empty' }],
  ['an error in a 200', { do: 'broken_first_event', with: 'error' }],
  ['a web page', { do: 'html' }],
]

test.each(failures)('if the first backend gives %s, the next one answers with the same vectors', async (_, step) => {
  const before = read(await embed()).data
  service.providers[0]!.script([step])
  const answer = await embed()
  expect(answer.status, answer.text).toBe(200)
  expect(answer.headers.get('x-svc-router-retry-count')).toBe('1')
  expect(answer.headers.get('x-svc-router-upstream')).toBe('vectors-b')
  expect(JSON.parse(service.providers[1]!.captured()[0]!.body)).toMatchObject({ model: 'org/vectors-1' })
  expect(read(answer).model).toBe(model)
  expect(read(answer).data).toEqual(before)
  expect((await recordOf(answer)).charged).toBe(1)
})

describe('a rejection', () => {
  test('if no backend answers, the error is 503 and the month is not charged', async () => {
    for (const provider of service.providers) provider.script([{ do: 'status', status: 503 }])
    const answer = await embed()
    expect(answer.status).toBe(503)
    expect(errorOf(answer)).toMatchObject({ code: 'server_is_overloaded' })
    expect(expectUsage(answer.headers)).toMatchObject({ 'x-quota-used': 0, 'x-ratelimit-remaining': 599 })
  })

  test('a content rejection by the provider is passed on, and no other backend is asked', async () => {
    service.providers[0]!.script([{ do: 'status', status: 400 }])
    const answer = await embed()
    expect(answer.status).toBe(400)
    expect(errorOf(answer)).toMatchObject({ code: 'content_rejected' })
    expect(service.providers[1]!.counts().requests).toBe(0)
  })

  test.each([
    ['no input', { input: undefined }, 400, 'invalid_request', 'input'],
    ['input of a wrong type', { input: { text: 'x' } }, 400, 'invalid_request', 'input'],
    ['an empty list', { input: [] }, 400, 'invalid_request', 'input'],
    ['no model', { model: undefined }, 400, 'invalid_request', 'model'],
    ['an unknown profile', { model: 'svc-router/embedings' }, 404, 'model_not_found', 'model'],
    ['a profile for conversations', { model: 'svc-router/frontier' }, 400, 'invalid_request', 'model'],
  ] as const)('%s gets an error, and is neither admitted nor sent', async (_, extra, status, code, param) => {
    const answer = await embed(extra)
    expect(answer.status).toBe(status)
    expect(errorOf(answer)).toMatchObject({ code, param })
    expect(expectUsage(answer.headers)).toMatchObject({ 'x-quota-used': 0, 'x-ratelimit-remaining': 600 })
    expect(service.providers.map((provider) => provider.counts().requests)).toEqual([0, 0])
  })

  test('the error names the right endpoint or profile', async () => {
    expect((await embed({ model: 'svc-router/frontier' })).text).toContain(`Profiles that support them: ${model}.`)
    for (const send of [() => service.chat({ model }), () => service.responses({ model })]) {
      const answer = await readAnswer(await send())
      expect(answer.status).toBe(400)
      expect(errorOf(answer)).toMatchObject({ code: 'invalid_request', param: 'model' })
      expect(answer.text).toContain('Send the request to /v1/embeddings.')
    }
  })

  test('a missing key, an inactive key, and an exhausted minute or month get the same errors as elsewhere', async () => {
    expect((await embed({}, { authorization: '' })).status).toBe(401)
    service = await share(
      withEmbeddings({
        plans: {
          max: { name: 'Max', requests_per_minute: 9, requests_per_month: 9 },
          tiny: { name: 'Tiny', requests_per_minute: 9, requests_per_month: 1 },
          slow: { name: 'Slow', requests_per_minute: 1, requests_per_month: 9 },
        },
      }),
    )
    for (const [plan, status, code] of [
      ['tiny', 402, 'insufficient_quota'],
      ['slow', 429, 'rate_limit_exceeded'],
    ] as const) {
      const { key } = await service.addAccount(plan, plan)
      const headers = { authorization: `Bearer ${key}` }
      expect((await embed({}, headers)).status).toBe(200)
      const refused = await embed({}, headers)
      expect(refused.status).toBe(status)
      expect(errorOf(refused)).toMatchObject({ code })
    }
  })

  test('a premium profile on a lower plan gets 403 before any backend is asked', async () => {
    service = await share(
      withEmbeddings({
        profiles: { [model]: { backends: ['vectors-a'], premium: true } },
      }),
    )
    const { key } = await service.addAccount('free', 'free')
    const answer = await embed({}, { authorization: `Bearer ${key}` })
    expect(answer.status).toBe(403)
    expect(errorOf(answer)).toMatchObject({ code: 'plan_required' })
    expect(service.providers[0]!.counts().requests).toBe(0)
  })
})

test('a profile counts as many units as it is configured to', async () => {
  service = await share(
    withEmbeddings({
      profiles: { [model]: { backends: ['vectors-a'], quota_units: 3 } },
    }),
  )
  expect(expectUsage((await embed()).headers)).toMatchObject({ 'x-quota-used': 3 })
})

function unpack(base64: string): number[] {
  const bytes = Buffer.from(base64, 'base64')
  return Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4))
}
