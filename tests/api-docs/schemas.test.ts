import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { apiOperations } from '../../src/api-docs/operations.ts'
import { startEmbeddingsService } from '../embeddings-service.ts'
import { misfits, type Schema } from '../json-schema.ts'
import type { Service } from '../service.ts'

interface Content {
  readonly 'application/json'?: { readonly schema: Schema; readonly example?: Record<string, unknown> }
}
interface Answer {
  readonly $ref?: string
  readonly content?: Content
}
interface Operation {
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, Answer>>
}
interface Document {
  readonly components: { readonly responses: Readonly<Record<string, Answer>> }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

let service: Service
let document: Document
let conversation: string
let request: string
beforeAll(async () => {
  service = await startEmbeddingsService({
    plans: { max: { name: 'Max', requests_per_minute: 100_000, requests_per_month: 1_000_000, premium: true } },
  })
  document = (await (await fetch(`${service.config.appUrl}/openapi.json`)).json()) as Document
  const made = await post('/v1/conversations', { items: [{ role: 'user', content: 'x', id: 'msg_1' }] })
  conversation = ((await made.json()) as { id: string }).id
  const answer = await service.chat()
  await answer.text()
  request = answer.headers.get('x-request-id')!
})
afterAll(() => service.stop())

const find = (ref: string): Schema =>
  ref
    .slice(2)
    .split('/')
    .reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], document) as Schema

describe('requests', () => {
  const values = [
    null,
    true,
    0,
    -1,
    1,
    1.5,
    '',
    'text',
    [],
    ['text'],
    [1],
    [null],
    [[]],
    {},
    [{}],
    [{ role: 'user', content: 'Hello' }],
  ]
  const named = values.map((value) => JSON.stringify(value))

  test.each(apiOperations.filter(({ body }) => body !== undefined).map((one) => [one.path, one] as const))(
    '%s: the schema accepts exactly what the service accepts',
    async (path, operation) => {
      const { body } = operation
      const schema = operationAt(operation.method, path).requestBody!.content['application/json']!.schema
      const bodies: [string, Record<string, unknown>][] = Object.keys(body!.fields).flatMap((field) => {
        const example = body!.example as Record<string, unknown>
        const { [field]: _, ...without } = example
        return [
          [`${field} left out`, without],
          ...values.map(
            (value, at) =>
              [`${field}: ${named[at]}`, { ...example, [field]: value }] as [string, Record<string, unknown>],
          ),
        ]
      })
      const wrong: string[] = []
      for (const [what, asked] of bodies) {
        const answer = await post(path, asked)
        const code = await codeOf(answer)
        const isTaken = code === undefined || !['invalid_request', 'unsupported_parameter'].includes(code)
        const fits = misfits(schema, asked, find).length === 0
        if (isTaken !== fits) wrong.push(`${what}: ${isTaken ? 'accepted' : 'rejected'} by the service (${code})`)
      }
      expect(wrong).toEqual([])
    },
    60_000,
  )
})

describe('responses', () => {
  test('the 200 response of every operation matches its schema', async () => {
    const stored = (await (await service.responses()).json()) as { id: string }
    const id = stored.id
    const seen = new Set<string>()
    for (const { method, path, body, id: name } of apiOperations) {
      // Canceling never succeeds, and deletion comes last.
      if (name === 'cancelResponse' || name.startsWith('delete') || method === 'head') continue
      await expectFit(method, path, id, body?.example)
      seen.add(name)
    }
    await expectFit('delete', '/v1/responses/{response_id}', id)
    await expectFit('delete', '/v1/conversations/{conversation_id}/items/{item_id}', id)
    await expectFit('delete', '/v1/conversations/{conversation_id}', id)
    expect(seen.size).toBe(apiOperations.length - 5)
  }, 30_000)

  test.each(apiOperations.filter(({ method }) => method !== 'head').map((one) => [one.id, one] as const))(
    '%s: every error response matches its schema',
    async (_, { method, path, access }) => {
      const url = `${service.origin}${path.replace('{model}', 'none').replace('{response_id}', 'resp_0123456789').replace('{conversation_id}', 'conv_0123456789').replace('{request_id}', 'req_0123456789').replace('{item_id}', 'msg_1')}`
      const keyed = { authorization: `Bearer ${service.key}` }
      const asked: readonly (readonly [string, Record<string, string>, string])[] = [
        [method, { 'user-agent': '-' }, '{}'],
        [method, {}, '{}'],
        [method, { authorization: 'Bearer wrong' }, '{}'],
        [method, keyed, '{}'],
        [method, keyed, '{"model":'],
        [method, { ...keyed, 'content-type': 'text/plain' }, 'x'],
        [method, keyed, JSON.stringify({ model: 'none', messages: [], input: 'x' })],
        ['put', keyed, '{}'],
      ]
      let refused = 0
      for (const [verb, headers, body] of asked) {
        const answer = await fetch(url, {
          method: verb.toUpperCase(),
          headers: { 'user-agent': 't/1', 'content-type': 'application/json', ...headers },
          ...(verb !== 'get' && { body }),
        })
        const received: unknown = await answer.json()
        if (answer.ok) continue
        refused += 1
        const { responses } = operationAt(method, path)
        expect(Object.keys(responses), `${answer.status}`).toContain(String(answer.status))
        const { schema } = answerOf(responses[String(answer.status)]!).content!['application/json']!
        expect(misfits(schema, received, find), JSON.stringify(received)).toEqual([])
      }
      expect(refused).toBeGreaterThan(access === 'key' ? 3 : 0)
    },
  )

  test('the schemas reject invalid data', () => {
    const { schema } = operationAt('get', '/v1/models').responses['200']!.content!['application/json']!
    expect(misfits(schema, { object: 'list', data: [{ id: 1 }] }, find)).not.toEqual([])
    expect(misfits({ $ref: '#/components/schemas/Error' }, { error: { type: 'x' } }, find)).not.toEqual([])
  })
})

async function expectFit(method: string, path: string, id: string, example?: object): Promise<void> {
  const url = `${service.origin}${path.replace('{model}', 'svc-router/frontier').replace('{response_id}', id).replace('{conversation_id}', conversation).replace('{request_id}', request).replace('{item_id}', 'msg_1')}`
  const answer = await fetch(url, {
    method: method.toUpperCase(),
    headers: { 'user-agent': 't/1', 'content-type': 'application/json', authorization: `Bearer ${service.key}` },
    ...(example !== undefined && { body: JSON.stringify(example) }),
  })
  const received: unknown = await answer.json()
  expect(answer.status, `${method} ${path} ${JSON.stringify(received)}`).toBe(200)
  const { schema } = operationAt(method, path).responses['200']!.content!['application/json']!
  expect(misfits(schema, received, find), `${method} ${path}`).toEqual([])
}

function answerOf(answer: Answer): Answer {
  if (answer.$ref === undefined) return answer
  const name = answer.$ref.slice(answer.$ref.lastIndexOf('/') + 1)
  return document.components.responses[name]!
}

function operationAt(method: string, path: string): Operation {
  return document.paths[path]![method]!
}

function post(path: string, body: unknown): Promise<Response> {
  return service.post(path.replace('/v1', '').replace('{conversation_id}', conversation), body)
}

async function codeOf(answer: Response): Promise<string | undefined> {
  const text = await answer.text()
  return answer.ok ? undefined : (JSON.parse(text) as { error: { code: string } }).error.code
}
