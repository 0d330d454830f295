import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorOf } from '../refusals.ts'
import { Service } from '../service.ts'
import { readAnswer, Wire, type Answer } from '../wire.ts'

const messages = [{ role: 'user', content: 'Hello' }]
const chat = { model: 'svc-router/frontier', messages }
const page = 'https://app.example.com'

let service: Service
beforeAll(async () => {
  service = await Service.start({
    formats: ['openai-chat'],
    settings: {
      cors: { origins: [page] },
      profiles: {
        'team/a-b': { backends: ['alpha'] },
        'team-a/b': { backends: ['alpha'] },
        'team/one': { backends: ['alpha'] },
      },
    },
  })
})
afterAll(() => service.stop())

describe('targets and methods', () => {
  test.each([
    ['http://elsewhere.example/v1/models', 200],
    ['HTTPS://elsewhere.example:99/v1/models?a=b', 200],
    ['http://elsewhere.example', 404],
    ['http://elsewhere.example?x=/v1/models', 404],
    ['/v1/models?next=http://x/health', 200],
    ['ftp://elsewhere.example/v1/models', 404],
  ])('only the path of the target %s counts: %i', async (target, status) => {
    expect((await ask(`GET ${target} HTTP/1.1`)).status).toBe(status)
  })

  test.each([
    ['/v1/chat/completions', 'POST, OPTIONS'],
    ['/v1/models', 'GET, HEAD, OPTIONS'],
    ['/v1/responses/resp_0123456789', 'GET, DELETE, HEAD, OPTIONS'],
    ['/', 'HEAD, OPTIONS'],
    ['/nothing', 'OPTIONS'],
    ['*', 'GET, POST, DELETE, HEAD, OPTIONS'],
  ])('OPTIONS %s needs neither a key nor a User-Agent, and allows %s', async (target, allowed) => {
    const answer = await raw(`OPTIONS ${target} HTTP/1.1\r\nhost: x\r\n\r\n`)
    expect([answer.status, answer.headers.get('allow')]).toEqual([204, allowed])
    expect(answer.headers.get('access-control-allow-origin')).toBeNull()
  })

  test.each([
    ['/', 'HEAD, OPTIONS', 'HEAD'],
    ['/v1/models', 'GET, HEAD, OPTIONS', 'GET'],
    ['/nothing', 'OPTIONS', 'OPTIONS'],
  ])('TRACE %s is a 405 with the allowed methods', async (target, allow, named) => {
    const answer = await raw(`TRACE ${target} HTTP/1.1\r\nhost: x\r\n\r\n`)
    expect([answer.status, errorOf(answer).code]).toEqual([405, 'method_not_allowed'])
    expect(answer.headers.get('allow')).toBe(allow)
    expect(errorOf(answer).message).toBe(`TRACE is not allowed here. Use ${named}.`)
  })
})

describe('endpoints of vendors that this service does not have', () => {
  test.each([
    ['/v1/moderations', 'Moderations'],
    ['/v1/files', 'Files'],
    ['/v1/files/file-1/content', 'Files'],
    ['/v1/batches', 'Batches'],
    ['/v1/images/generations', 'Images'],
    ['/v1/audio/speech', 'Audio'],
    ['/v1/rerank', 'Reranking'],
    ['/v2/rerank', 'Reranking'],
    ['/v1/assistants', 'Assistants'],
    ['/v1/fine_tuning/jobs', 'Fine-tuning'],
    ['/v1/vector_stores', 'Vector stores'],
    ['/v1/realtime/sessions', 'Realtime'],
    ['/v1/messages/batches', 'Message batches'],
    ['/api/chat', 'Ollama'],
  ])('the error for %s names it', async (path, name) => {
    const answer = await ask(`POST ${path} HTTP/1.1`)
    expect([answer.status, errorOf(answer).code]).toEqual([404, 'not_found'])
    expect(errorOf(answer).message).toContain(name)
    expect(errorOf(answer).message).toContain('Not supported: ')
    expect(errorOf(answer).message).not.toContain('There is nothing at this path')
  })

  test.each(['/v1/filesystem', '/v1/v1/models', '/models', '/v1/nothing'])(
    'the error for %s names the base URL',
    async (path) => {
      expect(errorOf(await ask(`GET ${path} HTTP/1.1`)).message).toContain(`base URL of the API is ${service.origin}`)
    },
  )
})

describe('pages from other origins', () => {
  const preflight = (origin: string): string =>
    `OPTIONS /v1/chat/completions HTTP/1.1\r\nhost: x\r\norigin: ${origin}\r\naccess-control-request-method: POST\r\naccess-control-request-headers: authorization, content-type, x-stainless-os\r\n\r\n`

  test('a configured origin is allowed: a preflight without a key, and then requests with one', async () => {
    const { status, headers } = await raw(preflight(page))
    expect(status).toBe(204)
    expect(headers.get('access-control-allow-origin')).toBe(page)
    expect(headers.get('access-control-allow-methods')).toContain('POST')
    expect(headers.get('access-control-allow-headers')).toBe('authorization, content-type, x-stainless-os')
    expect(headers.get('vary')).toBe('Origin')
    for (const stream of [false, true]) {
      const answer = await service.chat({ stream }, { origin: page })
      await answer.text()
      expect(answer.headers.get('access-control-allow-origin')).toBe(page)
      const exposed = answer.headers.get('access-control-expose-headers')?.split(', ')
      for (const name of ['X-Request-Id', 'X-Svc-Router-Cost', 'X-Svc-Router-Max-Output-Tokens'])
        expect(exposed).toContain(name)
      expect(answer.headers.get('vary')).toBe('Origin')
    }
    const refused = await service.post('/chat/completions', chat, { origin: page, authorization: 'Bearer none' })
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, page])
  })

  test.each(['https://app.example.com.evil.example', 'http://app.example.com', 'null'])(
    'the origin %s is not allowed',
    async (origin) => {
      const { status, headers } = await raw(preflight(origin))
      expect(status).toBe(204)
      for (const [name] of headers) expect(name).not.toContain('access-control')
      expect(headers.get('vary')).toBe('Origin')
    },
  )

  test('invalid header names are not echoed', async () => {
    const { headers } = await raw(preflight(page).replace('x-stainless-os', '<script>'))
    expect(headers.get('access-control-allow-headers')).toBeNull()
  })
})

describe('compressed bodies', () => {
  const text = JSON.stringify({ ...chat, user: 'compressed'.repeat(1_000) })
  const codings = [
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['deflate', deflateSync],
    // The default quality takes ten times as long.
    ['br', (body: string | Buffer) => brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } })],
    ['zstd', zstdCompressSync],
  ] as const

  test.each(codings)('%s is decompressed', async (coding, compress) => {
    const answer = await send(compress(text), coding)
    expect(answer.status, answer.text).toBe(200)
  })

  test.each(codings)('%s that is malformed, truncated, or mislabeled is a 400', async (coding, compress) => {
    const whole = compress(text)
    for (const bytes of [Buffer.from(text), whole.subarray(0, whole.length - 4), Buffer.alloc(0)]) {
      const answer = await send(bytes, coding)
      expect(answer.status, answer.text).toBe(400)
    }
  })

  test.each(codings)(
    '%s that unpacks to more than the body limit, or to a hundred times its size, is rejected',
    async (coding, compress) => {
      const ofSpaces = (bytes: number): Buffer => compress(JSON.stringify({ ...chat, user: ' '.repeat(bytes) }))
      const bomb = await send(ofSpaces(16 * 1024 * 1024), coding)
      expect([400, 413]).toContain(bomb.status)
      for (const bytes of [4 * 1024 * 1024, 256 * 1024]) {
        const dense = await send(ofSpaces(bytes), coding)
        expect(dense.status).toBe(400)
        expect(errorOf(dense).message).toContain('100 to 1')
      }
    },
  )

  test.each(['compress', 'gzip, br', 'gzip, gzip', 'aws-chunked'])('%s is a 415', async (coding) => {
    expect((await send(gzipSync(text), coding)).status).toBe(415)
  })
})

describe('members whose names differ from checked ones only in case (contract 2.26)', () => {
  test.each([
    [{ Model: 'expensive' }, 'Model'],
    [{ MODEL: 'expensive' }, 'MODEL'],
    [{ Stream: true }, 'Stream'],
    [{ maX_tokens: 5 }, 'maX_tokens'],
    [{ ſtream: true }, 'stream'],
    [{ Store: true }, 'Store'],
  ])('%j is a 400 that names it', async (extra, param) => {
    const answer = await readAnswer(await service.post('/chat/completions', { ...chat, ...extra }))
    expect([answer.status, errorOf(answer).code]).toEqual([400, 'invalid_request'])
    expect((JSON.parse(answer.text) as { error: { param: string } }).error.param).toBe(param)
  })

  test('similar names are accepted, and so are equal names in nested objects', async () => {
    const answer = await service.chat({ Custom: 1, 'X-Model': 2, metadata: { Model: 'x' } })
    expect(answer.status).toBe(200)
  })
})

test('sending a User-Agent twice is allowed', async () => {
  expect((await ask('GET /v1/models HTTP/1.1', 'user-agent: other/1\r\n')).status).toBe(200)
})

describe('aliases of profiles without a slash (contract 2.30)', () => {
  test.each(['svc-router-frontier', 'svc-router-fusion', 'team-one'])(
    '%s works, and answers contain the alias',
    async (model) => {
      const answer = (await (await service.chat({ model })).json()) as { model: string }
      expect(answer.model).toBe(model)
      const stream = await (await service.chat({ model, stream: true })).text()
      expect(stream).toContain(`"model":"${model}"`)
      expect(stream).not.toContain('svc-router/')
      const entry = await get(`/models/${model}`)
      expect(JSON.parse(entry.text)).toMatchObject({ id: model, object: 'model' })
    },
  )

  test('an alias that matches two profiles is unknown', async () => {
    expect((await service.chat({ model: 'team-a-b' })).status).toBe(404)
    expect((await get('/models/team-a-b')).status).toBe(404)
  })

  test('an alias of a premium profile is rejected on a lower plan, like the profile', async () => {
    const { key } = await service.addAccount('on free', 'free')
    const answer = await readAnswer(
      await service.post(
        '/chat/completions',
        { ...chat, model: 'svc-router-fusion' },
        { authorization: `Bearer ${key}` },
      ),
    )
    expect([answer.status, errorOf(answer).code]).toEqual([403, 'plan_required'])
  })

  test('a key that is limited to one profile is limited by alias, too', async () => {
    const { key } = await service.addLimitedKey({ profiles: ['team/one'] })
    const limited = { authorization: `Bearer ${key.reveal()}` }
    expect((await service.chat({ model: 'svc-router-frontier' }, limited)).status).toBe(403)
    expect((await service.chat({ model: 'team-one' }, limited)).status).toBe(200)
  })
})

async function raw(bytes: string): Promise<Answer> {
  const wire = await Wire.open(service.origin)
  await wire.write(bytes)
  const answer = await wire.answer()
  wire.destroy()
  return answer
}

function ask(line: string, more = ''): Promise<Answer> {
  return raw(
    `${line}\r\nhost: x\r\nuser-agent: t/1\r\nauthorization: Bearer ${service.key}\r\n${more}content-length: 0\r\n\r\n`,
  )
}

async function get(path: string): Promise<Answer> {
  const headers = { authorization: `Bearer ${service.key}`, 'user-agent': 't/1' }
  return readAnswer(await fetch(`${service.baseUrl}${path}`, { headers }))
}

async function send(body: Buffer, coding: string): Promise<Answer> {
  const headers = {
    authorization: `Bearer ${service.key}`,
    'user-agent': 't/1',
    'content-type': 'application/json',
    'content-encoding': coding,
  }
  return readAnswer(
    await fetch(`${service.baseUrl}/chat/completions`, { method: 'POST', headers, body: new Uint8Array(body) }),
  )
}
