import Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { embeddingsProfile, startEmbeddingsService } from '../embeddings-service.ts'
import { Service } from '../service.ts'
import { collect, connect, majors } from './openai-clients.ts'

const frontier = 'svc-router/frontier'

let service: Service
beforeAll(async () => {
  service = await startEmbeddingsService()
})
afterAll(() => service.stop())

describe.each(majors)('$name', ({ OpenAI }) => {
  test('models.list returns every profile', async () => {
    const { client, traffic } = connect(OpenAI, service)
    const models = await collect(client.models.list())
    expect(models.map(({ id }) => id)).toEqual([frontier, 'svc-router/fusion', embeddingsProfile])
    expect(models[0]).toMatchObject({
      object: 'model',
      created: expect.any(Number) as number,
      owned_by: 'svc-router',
      quota_units: 1,
    })
    expect(traffic.sent).toHaveLength(1)
  })

  test('models.retrieve returns one, whose name has a slash', async () => {
    const { client, traffic } = connect(OpenAI, service)
    const [listed] = await collect(client.models.list())
    expect(await client.models.retrieve(frontier)).toEqual(listed)
    expect(traffic.sent[1]!.path).toBe('/v1/models/svc-router%2Ffrontier')
  })

  test('models.retrieve of a mistyped name gets a 404 after one request, with the right name', async () => {
    const { client, traffic } = connect(OpenAI, service)
    const error = await client.models.retrieve('svc-router/fronteir').catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(OpenAI.NotFoundError)
    expect(error).toMatchObject({ status: 404, code: 'model_not_found' })
    expect((error as Error).message).toContain('Did you mean "svc-router/frontier"?')
    expect(traffic.sent).toHaveLength(1)
  })

  test('an inactive key gets a 401 before anything is listed', async () => {
    const { client } = connect(OpenAI, service, { apiKey: 'sk_svc_mistyped' })
    await expect(collect(client.models.list())).rejects.toMatchObject({ status: 401, code: 'key_malformed' })
  })
})

describe('@anthropic-ai/sdk', () => {
  const client = (): Anthropic =>
    new Anthropic({ baseURL: service.origin, authToken: service.key, apiKey: null, maxRetries: 0 })

  test('models.list reads the same list, with the fields that it supports', async () => {
    const models = await collect(client().models.list())
    expect(models.map(({ id, type, display_name: name }) => [id, type, name])).toEqual([
      [frontier, 'model', 'svc-router frontier'],
      ['svc-router/fusion', 'model', 'svc-router fusion'],
      [embeddingsProfile, 'model', 'svc-router embeddings'],
    ])
    expect(Number.isNaN(Date.parse(models[0]!.created_at))).toBe(false)
  })

  test('models.retrieve returns one of them', async () => {
    expect(await client().models.retrieve(frontier)).toMatchObject({ id: frontier, type: 'model' })
  })
})
