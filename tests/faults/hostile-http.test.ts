import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { errorOf } from '../refusals.ts'
import type { Service } from '../service.ts'
import { Wire } from '../wire.ts'
import { head, HostileService, keyPlace, slowLimitMs, whole } from './hostile-service.ts'

let hostile: HostileService
let service: Service

beforeAll(async () => {
  hostile = await HostileService.start()
  service = hostile.service
})
afterAll(() => service.stop())
afterEach(() => hostile.expectUnharmed())

describe('invalid HTTP, and HTTP that two parsers could read differently', () => {
  const get = (path: string, headers = ''): string =>
    `GET ${path} HTTP/1.1\r\nhost: x\r\nuser-agent: t/1\r\nauthorization: Bearer ${keyPlace}\r\n${headers}\r\n`
  const post = (headers: string, body: string): string => `${head(headers)}${body}`
  const json = '{"model":"svc-router/frontier","messages":[{"role":"user","content":"Hi"}]}'
  const chunked = `${json.length.toString(16)}\r\n${json}\r\n0\r\n\r\n`

  test.each([
    ['garbage', 'hello there\r\n\r\n'],
    ['binary', '\u0000\u0001\u0002\u00ff\r\n\r\n'],
    ['a TLS greeting', '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['HTTP/0.9', 'GET /v1/models\r\n\r\n'],
    ['HTTP/3.0 in words', 'GET /v1/models HTTP/3.0\r\nhost: x\r\n\r\n'],
    ['no host', 'GET /v1/models HTTP/1.1\r\nuser-agent: t/1\r\nauthorization: Bearer ${keyPlace}\r\n\r\n'],
    ['two hosts', get('/v1/models', 'host: y\r\n')],
    ['two keys', get('/v1/models', 'authorization: Bearer other\r\n')],
    ['two equal keys', get('/v1/models', 'Authorization: Bearer ${keyPlace}\r\n')],
    ['two content types', post(`content-type: text/plain\r\ncontent-length: ${json.length}\r\n`, json)],
    ['two lengths', post(`content-length: ${json.length}\r\ncontent-length: 5\r\n`, json)],
    ['two equal lengths', post(`content-length: ${json.length}\r\ncontent-length: ${json.length}\r\n`, json)],
    ['a list of lengths', post(`content-length: ${json.length}, ${json.length}\r\n`, json)],
    ['a length with a sign', post(`content-length: +${json.length}\r\n`, json)],
    ['a length below zero', post('content-length: -1\r\n', json)],
    ['a length in hex', post('content-length: 0x10\r\n', json)],
    ['a length beyond all numbers', post('content-length: 99999999999999999999999\r\n', json)],
    ['a length and chunks', post(`content-length: ${json.length}\r\ntransfer-encoding: chunked\r\n`, chunked)],
    ['chunks and a length', post(`transfer-encoding: chunked\r\ncontent-length: 5\r\n`, chunked)],
    ['chunks that are not last', post('transfer-encoding: chunked, identity\r\n', chunked)],
    ['an unknown encoding', post('transfer-encoding: xchunked\r\n', chunked)],
    ['an encoding with a tab', post('transfer-encoding:\u000bchunked\r\n', chunked)],
    ['two encodings', post('transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n', chunked)],
    ['gzip in chunks', post('transfer-encoding: gzip, chunked\r\n', chunked)],
    ['a chunk of no size', post('transfer-encoding: chunked\r\n', 'zz\r\n{}\r\n0\r\n\r\n')],
    ['a chunk beyond all numbers', post('transfer-encoding: chunked\r\n', 'fffffffffffffffff\r\n{}\r\n0\r\n\r\n')],
    ['a chunk without its end', post('transfer-encoding: chunked\r\n', '2\r\n{}xx0\r\n\r\n')],
    [
      'a chunk extension of 20 KB',
      post('transfer-encoding: chunked\r\n', `2;${'a'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`),
    ],
    ['NUL in a header', get('/v1/models', 'x-a: a\u0000b\r\n')],
    ['CR in a header', get('/v1/models', 'x-a: a\rb: c\r\n')],
    ['a folded header', get('/v1/models', 'x-a: a\r\n b\r\n')],
    ['a space before the colon', get('/v1/models', 'x-a : b\r\n')],
    ['a header without a name', get('/v1/models', ': b\r\n')],
    ['a header without a colon', get('/v1/models', 'x-a\r\n')],
    ['bare line feeds', 'GET /v1/models HTTP/1.1\nhost: x\nuser-agent: t/1\n\n'],
    ['a header of 100 KB', get('/v1/models', `x-a: ${'a'.repeat(100_000)}\r\n`)],
    ['a name of 100 KB', get('/v1/models', `${'a'.repeat(100_000)}: b\r\n`)],
    ['1,000 headers', get('/v1/models', Array.from({ length: 1_000 }, (_, index) => `x-${index}: a\r\n`).join(''))],
    ['a path of 100 KB', get(`/v1/${'a'.repeat(100_000)}`)],
    ['a path with a space', get('/v1/mod els')],
    ['a path with NUL', get('/v1/mod\u0000els')],
    ['an unknown method', get('/v1/models').replace('GET', 'FROBNICATE')],
    ['a method in small letters', get('/v1/models').replace('GET', 'get')],
    ['CONNECT', 'CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n'],
    ['TRACE', get('/v1/models').replace('GET', 'TRACE')],
    [
      'trailers that never end',
      post('transfer-encoding: chunked\r\n', `2\r\n{}\r\n0\r\n${'x-a: b\r\n'.repeat(10_000)}\r\n`),
    ],
    ['an upgrade to nothing', get('/v1/models', 'connection: upgrade\r\nupgrade: websocket\r\ncontent-length: 5\r\n')],
  ])('%s gets a clear 4xx or a closed connection', async (_name, bytes) => {
    const wire = await Wire.open(service.origin)
    await wire.write(hostile.sign(bytes))
    const answer = await wire.answerOrEnd(slowLimitMs)
    if (answer !== undefined) {
      expect(answer.status).toBeGreaterThanOrEqual(400)
      expect(answer.status).toBeLessThan(500)
      expect(['client', 'edge']).toContain(errorOf(answer).source)
      expect(answer.headers.get('x-request-id')).toMatch(/^req_/)
      expect(errorOf(answer).request_id).toBe(answer.headers.get('x-request-id'))
    }
    wire.destroy()
  })

  test.each([
    '//v1/models',
    '/v1//models',
    '/v1/models/',
    '/v1/../v1/models',
    '/v1/./models',
    '/v1%2fmodels',
    '/v1/%6dodels',
    '/v1/models%00',
    '/v1/models;a=b',
    '/v1/models#a',
    '/V1/models',
    'http://user:pass@example.com/v1/models',
    '/pricing/../v1/models',
    '/v1\\models',
    '/model-catalog/../v1/models',
  ])('the path %s is not normalized: it gets 404 with a key, never 200', async (path) => {
    const wire = await Wire.open(service.origin)
    await wire.write(hostile.sign(get(path)))
    const answer = await wire.answerOrEnd()
    expect([400, 404]).toContain(answer?.status)
    wire.destroy()
  })

  test.each(['100-continue', '200-maybe'])('a request that expects %s is answered', async (expected) => {
    const wire = await Wire.open(service.origin)
    await wire.write(hostile.sign(post(`expect: ${expected}\r\ncontent-length: ${json.length}\r\n`, json)))
    const first = await wire.answer()
    expect(first.status).toBe(expected === '100-continue' ? 100 : 200)
    if (first.status === 100) expect((await wire.answer()).status).toBe(200)
    wire.destroy()
  })

  test('the Host header has no effect', async () => {
    for (const host of ['localhost:4000/#@x', 'evil.example', '[::1]:80', 'x/../../pricing', '']) {
      const wire = await Wire.open(service.origin)
      await wire.write(`GET /v1/models HTTP/1.1\r\nhost: ${host}\r\nuser-agent: t/1\r\n\r\n`)
      const answer = await wire.answer()
      expect([400, 401]).toContain(answer.status)
      expect(answer.text).not.toContain('evil')
      wire.destroy()
    }
  })
})

describe('several requests on one connection', () => {
  test('20 pipelined requests are answered in order', async () => {
    const wire = await Wire.open(service.origin)
    const paths = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? '/health' : '/v1/nothing'))
    await wire.write(
      paths
        .map(
          (path) =>
            `GET ${path} HTTP/1.1\r\nhost: x\r\nuser-agent: t/1\r\nauthorization: Bearer ${service.key}\r\n\r\n`,
        )
        .join(''),
    )
    for (const path of paths) expect((await wire.answer()).status).toBe(path === '/health' ? 200 : 404)
    wire.destroy()
  })

  test('5 pipelined model requests, streamed and not, are each answered', async () => {
    const wire = await Wire.open(service.origin)
    await wire.write(hostile.sign([0, 1, 2, 3, 4].map((index) => whole({ stream: index % 2 === 0 })).join('')))
    for (const index of [0, 1, 2, 3, 4]) {
      const answer = await wire.answer()
      expect(answer.status).toBe(200)
      expect(answer.text.includes('data: [DONE]')).toBe(index % 2 === 0)
    }
    wire.destroy()
  })

  test('invalid HTTP after a request never becomes part of its answer', async () => {
    service.providers[0]!.script([{ do: 'answer', words: 50, tokenDelayMs: 10 }])
    const wire = await Wire.open(service.origin)
    await wire.write(hostile.sign(whole({ stream: true })))
    await wire.has('data: ')
    await wire.write('this is no HTTP\r\n\r\n')
    await wire.ended(slowLimitMs)
    expect(wire.bytes.match(/HTTP\/1\.1 /g)).toHaveLength(1)
    wire.destroy()
  })
})
