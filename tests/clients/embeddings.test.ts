import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { linksFor } from '../../src/domain/links.ts'
import { embeddingsProfile as model, startEmbeddingsService } from '../embeddings-service.ts'
import { Service } from '../service.ts'
import { counted, entrances } from './ai-clients.ts'
import { connect, majors } from './openai-clients.ts'

const texts = ['The cat sleeps.', 'The dog runs.', 'The cat sleeps.']

let service: Service
beforeAll(async () => {
  service = await startEmbeddingsService()
})
afterAll(() => service.stop())
afterEach(() => {
  for (const provider of service.providers) provider.script([])
})

/** Asserts three vectors, of which the first and the last are equal. */
function expectVectors(vectors: readonly (readonly number[])[], dimensions: number): void {
  expect(vectors.map((vector) => vector.length)).toEqual([dimensions, dimensions, dimensions])
  expect(vectors[0]).toEqual(vectors[2])
  expect(vectors[0]).not.toEqual(vectors[1])
  for (const vector of vectors) expect(Math.hypot(...vector)).toBeCloseTo(1)
}

describe.each(majors)('$name', ({ OpenAI }) => {
  test('embeddings.create, which requests base64 and decodes it, returns one vector for each text', async () => {
    const { client } = connect(OpenAI, service)
    const { data, response } = await client.embeddings.create({ model, input: texts, dimensions: 16 }).withResponse()
    expectVectors(
      data.data.map(({ embedding }) => embedding),
      16,
    )
    expect(data.model).toBe(model)
    expect(data.usage.prompt_tokens).toBeGreaterThan(0)
    expect(response.headers.get('x-svc-router-upstream')).toBe('vectors-a')
    expect(service.providers[0]!.captured().at(-1)!.body).toContain('"encoding_format":"base64"')
  })

  test('numbers and base64 give the same vectors', async () => {
    const { client } = connect(OpenAI, service)
    const packed = await client.embeddings.create({ model, input: texts })
    const plain = await client.embeddings.create({ model, input: texts, encoding_format: 'float' })
    expect(packed.data.map(({ embedding }) => embedding)).toEqual(plain.data.map(({ embedding }) => embedding))
  })

  test('a failover is invisible to the client', async () => {
    const { client, traffic } = connect(OpenAI, service)
    const before = await client.embeddings.create({ model, input: texts })
    service.providers[0]!.script([{ do: 'status', status: 503 }])
    const { data, response } = await client.embeddings.create({ model, input: texts }).withResponse()
    expect(data.data).toEqual(before.data)
    expect(response.headers.get('x-svc-router-retry-count')).toBe('1')
    expect(traffic.sent).toHaveLength(2)
  })

  test('a rejection shows our message after one request', async () => {
    const { client, traffic } = connect(OpenAI, service, { apiKey: 'sk_svc_mistyped' })
    const error = await client.embeddings.create({ model, input: 'x' }).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(OpenAI.AuthenticationError)
    expect((error as Error).message.endsWith(linksFor(service.config.appUrl).accountUrl)).toBe(true)
    expect(traffic.sent).toHaveLength(1)
  })
})

describe.each(entrances.filter(({ embedding }) => embedding !== undefined))('$name', ({ ai, embedding }) => {
  test('embed returns a vector and its usage', async () => {
    const one = await ai.embed({ model: embedding!(counted(service).settings, model), value: texts[0]! })
    expect(one.embedding).toHaveLength(8)
    expect(one.usage.tokens).toBeGreaterThan(0)
  })

  test('embedMany returns one vector for each text', async () => {
    const { settings, traffic } = counted(service)
    const { embeddings } = await ai.embedMany({ model: embedding!(settings, model), values: texts })
    expectVectors(embeddings, 8)
    expect(traffic.sent.map(({ path }) => path)).toEqual(['/v1/embeddings'])
  })

  test('a rejection shows our message after one request', async () => {
    const { settings, traffic } = counted(service)
    const asked = ai.embed({ model: embedding!(settings, 'svc-router/frontier'), value: 'x' })
    const error = await asked.then(
      () => undefined,
      (reason: unknown) => reason,
    )
    if (!ai.APICallError.isInstance(error)) throw new Error('not refused at once', { cause: error })
    expect(error.message).toBe(
      `"svc-router/frontier" does not support embeddings. Profiles that support them: ${model}.`,
    )
    expect(traffic.sent).toHaveLength(1)
  })
})
