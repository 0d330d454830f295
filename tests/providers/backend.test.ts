import { beforeEach, describe, expect, test } from 'vitest'
import type { UpstreamError } from '../../src/domain/upstream.ts'
import { vendors } from '../../src/providers/registry.ts'
import { defaultTimeouts } from '../../src/providers/timeouts.ts'
import { uuidOf } from '../../src/runtime/ids.ts'
import { Secret } from '../../src/runtime/secret.ts'
import {
  bugs,
  madeUpCredential,
  openBackend,
  openPools,
  record,
  run,
  serveHttp,
  serveTcp,
  simulate,
  sleep,
  until,
} from './support.ts'

beforeEach(() => {
  bugs.length = 0
})

const answer = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}'

describe('requests', () => {
  test('only our own headers, the exact body, and its length reach the provider', async () => {
    let seen = ''
    const { baseUrl } = await serveTcp((socket) => {
      socket.on('data', (chunk) => {
        seen += chunk.toString()
        if (seen.endsWith('"ü"}')) socket.write(answer)
      })
    })
    const backend = openBackend(openPools(), baseUrl, { credential: madeUpCredential })
    const { steps } = await run(backend, '{"a":"ü"}')
    expect(steps).toEqual(['head', 'data', 'end'])
    const [head, body] = seen.split('\r\n\r\n')
    expect(body).toBe('{"a":"ü"}')
    const [line, ...headers] = head!.split('\r\n')
    expect(line).toBe('POST /v1/chat/completions HTTP/1.1')
    expect(headers.toSorted()).toEqual(
      [
        'accept-encoding: identity',
        'accept: application/json, text/event-stream',
        'authorization: Bearer made-up-credential-0001',
        'connection: keep-alive',
        'content-length: 10',
        'content-type: application/json',
        `host: ${new URL(baseUrl).host}`,
        'user-agent: svc-router/0.0.0-test',
        `x-request-id: ${uuidOf('req_test')}`,
      ].toSorted(),
    )
  })

  test('a vendor header carries the bare credential, bytes are sent unchanged, and the base URL’s query is kept', async () => {
    const provider = await serveHttp((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        response.end(
          JSON.stringify({
            url: request.url,
            key: request.headers['api-key'],
            auth: request.headers.authorization ?? null,
            body: Buffer.concat(chunks).toString('hex'),
          }),
        )
      })
    })
    const backend = openBackend(openPools(), `${provider.baseUrl}/?api-version=preview`, {
      format: 'openai-responses',
      authHeader: 'api-key',
      credential: madeUpCredential,
    })
    const bytes = new Uint8Array([0, 1, 2, 255, 7]).subarray(1, 4)
    const { text } = await run(backend, bytes)
    expect(JSON.parse(text)).toEqual({
      url: '/v1/responses?api-version=preview',
      key: 'made-up-credential-0001',
      auth: null,
      body: '0102ff',
    })
  })

  test('vendor headers are sent with every request, and a request’s own headers only with that request', async () => {
    const seen: unknown[] = []
    const provider = await serveHttp(({ headers }, response) => {
      seen.push([headers['anthropic-version'], headers['anthropic-beta'], headers['x-request-id']])
      response.end('{}')
    })
    const backend = openBackend(openPools(), provider.baseUrl, {
      format: 'anthropic-messages',
      fixedHeaders: vendors.anthropic.fixedHeaders,
    })
    for (const headers of [['anthropic-beta', 'a-1,b-2'], undefined]) {
      await new Promise<void>((resolve, reject) => {
        const listener = { onHead() {}, onData() {}, onEnd: resolve, onError: reject }
        backend.call({ body: '{}', stream: false, requestId: 'req_test', headers }, listener)
      })
    }
    expect(seen).toEqual([
      ['2023-06-01', 'a-1,b-2', uuidOf('req_test')],
      ['2023-06-01', undefined, uuidOf('req_test')],
    ])
  })

  test('a credential or header that could inject another header is rejected when the backend is created', () => {
    const pools = openPools()
    for (const credential of ['a\r\nx-evil: 1', 'a b', 'ü', '', 'x'.repeat(9000)]) {
      expect(() => openBackend(pools, 'http://127.0.0.1:1', { credential: new Secret(credential) })).toThrow(TypeError)
    }
    for (const authHeader of ['host', 'content-length', 'x y', 'a:b', '']) {
      expect(() => openBackend(pools, 'http://127.0.0.1:1', { credential: madeUpCredential, authHeader })).toThrow(
        TypeError,
      )
    }
    for (const baseUrl of ['nonsense', 'ftp://127.0.0.1', 'http://user:word@127.0.0.1', 'http://127.0.0.1/#x']) {
      expect(() => openBackend(pools, baseUrl)).toThrow(TypeError)
    }
  })

  test('backends share connections if they have the same credential, and never otherwise', async () => {
    const used: Record<string, Set<number>> = {}
    const { baseUrl } = await serveHttp((request, response) => {
      request.resume()
      ;(used[request.headers.authorization ?? ''] ??= new Set()).add(request.socket.remotePort!)
      response.end('{}')
    })
    const pools = openPools()
    for (const word of ['one', 'two', 'one', 'two', 'one']) {
      await run(openBackend(pools, baseUrl, { credential: new Secret(word) }))
    }
    expect(used['Bearer one']!.size).toBe(1)
    expect(used['Bearer two']!.size).toBe(1)
    expect(used['Bearer one']).not.toEqual(used['Bearer two'])
  })
})

describe('events of a call', () => {
  test('status, content type, Retry-After, and the sanitized request ID are reported, then data, then the end', async () => {
    const { baseUrl } = await serveTcp((socket) => {
      socket.on('data', () =>
        socket.write(
          'HTTP/1.1 429 Slow down\r\nContent-Type: Application/JSON; charset=utf-8\r\nRetry-After: 7\r\n' +
            `apim-request-id: \u00ff\tabc\u00fc${'x'.repeat(300)}\r\nset-cookie: a=b\r\ncontent-length: 2\r\n\r\n{}`,
          'latin1',
        ),
      )
    })
    const { head, steps } = await run(openBackend(openPools(), baseUrl))
    expect(steps).toEqual(['head', 'data', 'end'])
    expect(head).toEqual({
      status: 429,
      contentType: 'application/json; charset=utf-8',
      retryAfterMs: 7000,
      requestId: `abc${'x'.repeat(125)}`,
    })
  })

  test('a redirect is reported and not followed', async () => {
    let requests = 0
    const { baseUrl } = await serveHttp((request, response) => {
      requests += 1
      request.resume()
      response.writeHead(307, { location: '/elsewhere' }).end()
    })
    const { head, steps } = await run(openBackend(openPools(), baseUrl))
    expect([head?.status, steps, requests]).toEqual([307, ['head', 'end'], 1])
  })

  test('an interim 103 is skipped', async () => {
    const { baseUrl } = await serveTcp((socket) => {
      socket.on('data', () => socket.write(`HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${answer}`))
    })
    const { head, steps } = await run(openBackend(openPools(), baseUrl))
    expect([head?.status, steps]).toEqual([200, ['head', 'data', 'end']])
  })

  test.each([
    ['a head larger than 16 KiB', `HTTP/1.1 200 OK\r\nx-big: ${'x'.repeat(20_000)}\r\n\r\n`, 'broken'],
    ['bytes that are not HTTP', '220 smtp.example.com ready\r\n', 'broken'],
    ['a body shorter than its content-length', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{}', 'reset'],
    ['a truncated chunked body', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel', 'reset'],
  ])('%s fails the call once', async (_name, bytes, outcome) => {
    const { baseUrl } = await serveTcp((socket) => {
      socket.once('data', () => socket.end(bytes))
    })
    const { steps, error } = await run(openBackend(openPools(), baseUrl))
    expect(error?.outcome).toBe(outcome)
    expect(steps.filter((step) => step === 'error' || step === 'end')).toEqual(['error'])
    expect(bugs).toEqual([])
  })

  test('an exception in a listener ends the call and is reported as a bug, and the next call is unaffected', async () => {
    const provider = await simulate()
    const backend = openBackend(openPools(), provider.baseUrl)
    const outcomes: string[] = []
    const thrown = new TypeError('made up')
    await new Promise<void>((resolve) => {
      backend.call(
        { body: '{}', stream: false, requestId: 'req_test' },
        {
          onHead() {},
          onData() {
            throw thrown
          },
          onEnd: () => outcomes.push('end'),
          onError(error) {
            outcomes.push(error.outcome)
            resolve()
          },
        },
      )
    })
    expect(outcomes).toEqual(['broken'])
    expect(bugs).toEqual([thrown])
    expect((await run(backend)).steps).toEqual(['head', 'data', 'end'])
  })
})

describe('a request that must not be sent anymore when it has a connection', () => {
  const request = { body: '{}', stream: false, requestId: 'req_test' } as const

  test.each([
    ['at once', false, 'not_sent'],
    ['later', sleep(20).then(() => false), 'not_sent'],
    ['not at all: it may be sent after all', sleep(20).then(() => true), 'end'],
  ] as const)('fails, and returns its connection: %s', async (_, maySend, ended) => {
    const mayStillSend = (): boolean | Promise<boolean> => maySend
    let arrived = 0
    const { baseUrl } = await serveHttp((incoming, response) => {
      arrived += 1
      incoming.resume()
      response.end('{}')
    })
    const pools = openPools({ maxConnections: 1 })
    const backend = openBackend(pools, baseUrl)
    await run(backend)
    let hasReturned = false
    const end = await new Promise<string>((resolve) => {
      const onError = ({ outcome }: UpstreamError): void => resolve(hasReturned ? outcome : 'too early')
      backend.call(request, { onHead() {}, onData() {}, onEnd: () => resolve('end'), onError, mayStillSend })
      hasReturned = true
    })
    expect([end, arrived]).toEqual([ended, ended === 'end' ? 2 : 1])
    // The only connection can be had again.
    expect((await run(backend)).steps).toEqual(['head', 'data', 'end'])
  })

  test('is sent over a fresh connection if the one that it had is lost while it waits', async () => {
    let arrived = 0
    const { baseUrl, sockets } = await serveHttp((incoming, response) => {
      arrived += 1
      incoming.resume()
      response.end('{}')
    })
    const backend = openBackend(openPools(), baseUrl)
    await run(backend)
    let wasLost = false
    const end = await new Promise<string>((resolve) => {
      const mayStillSend = async (): Promise<boolean> => {
        if (!wasLost) for (const socket of sockets) socket.resetAndDestroy()
        wasLost = true
        await sleep(50)
        return true
      }
      const onError = ({ outcome }: UpstreamError): void => resolve(outcome)
      backend.call(request, { onHead() {}, onData() {}, onEnd: () => resolve('end'), onError, mayStillSend })
    })
    expect([end, arrived]).toEqual(['end', 2])
  })
})

describe('failing connections', () => {
  test('a refused connection is unreachable, which is reported only after call() has returned', async () => {
    const { baseUrl, server } = await serveHttp(() => {})
    await new Promise((resolve) => server.close(resolve))
    const backend = openBackend(openPools(), baseUrl)
    const recording = record(backend)
    expect(recording.steps).toEqual([])
    await recording.ended
    expect([recording.steps, recording.error?.outcome]).toEqual([['error'], 'unreachable'])
  })

  test('a name that does not resolve is unreachable', async () => {
    const lookup = (
      _host: string,
      _options: unknown,
      callback: (error: NodeJS.ErrnoException, address: string) => void,
    ): void => callback(Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' }), '')
    const { error } = await run(openBackend(openPools({ lookup }), 'http://nowhere.invalid'))
    expect(error?.outcome).toBe('unreachable')
  })

  test('resolving a name is abandoned after connectMs', async () => {
    const backend = openBackend(openPools({ lookup: () => {} }), 'http://nowhere.invalid', {
      timeouts: { ...defaultTimeouts(false), connectMs: 150 },
    })
    const startedAtMs = performance.now()
    const { error } = await run(backend)
    expect(error?.outcome).toBe('timeout')
    expect(performance.now() - startedAtMs).toBeGreaterThan(140)
    expect(performance.now() - startedAtMs).toBeLessThan(1000)
  })

  test('a TLS handshake that the server never answers is abandoned after connectMs', async () => {
    const { port, sockets } = await serveTcp((socket) => socket.resume())
    const pools = openPools()
    const { error, call } = await run(
      openBackend(pools, `https://127.0.0.1:${port}`, { timeouts: { ...defaultTimeouts(false), connectMs: 150 } }),
    )
    expect([error?.outcome, call.isSent]).toEqual(['timeout', false])
    await until(() => sockets.size === 0)
    expect(pools.counts().connections).toBe(0)
  })

  test('a server that closes during the TLS handshake is unreachable', async () => {
    const { port } = await serveTcp((socket) => socket.end())
    const { error } = await run(openBackend(openPools(), `https://127.0.0.1:${port}`))
    expect(error?.outcome).toBe('unreachable')
  })

  test('a reset of a new connection is a reset, and the request is not sent again', async () => {
    let requests = 0
    const { baseUrl } = await serveTcp((socket) => {
      socket.once('data', () => {
        requests += 1
        socket.resetAndDestroy()
      })
    })
    const { error, steps, call } = await run(openBackend(openPools(), baseUrl))
    expect([error?.outcome, steps, requests, call.isSent]).toEqual(['reset', ['error'], 1, true])
  })

  test.each([
    ['RST', true],
    ['FIN', false],
  ])(
    'a request on a reused connection that is closed by %s before any byte is sent again once, on a new connection',
    async (_name, hard) => {
      let connections = 0
      const { baseUrl } = await serveTcp((socket) => {
        const number = (connections += 1)
        let requests = 0
        socket.on('data', () => {
          requests += 1
          if (number === 1 && requests === 2) {
            if (hard) socket.resetAndDestroy()
            else socket.end()
          } else socket.write(answer)
        })
      })
      const backend = openBackend(openPools(), baseUrl)
      expect((await run(backend)).steps).toEqual(['head', 'data', 'end'])
      const second = await run(backend)
      expect(second.steps).toEqual(['head', 'data', 'end'])
      expect(connections).toBe(2)
    },
  )

  test('a request is sent again only once: if the new connection fails too, the call fails', async () => {
    let connections = 0
    let requests = 0
    const { baseUrl } = await serveTcp((socket) => {
      connections += 1
      socket.on('data', () => {
        requests += 1
        if (requests === 1) socket.write(answer)
        else socket.resetAndDestroy()
      })
    })
    const backend = openBackend(openPools(), baseUrl)
    await run(backend)
    const { error, steps } = await run(backend)
    expect([error?.outcome, steps, connections, requests]).toEqual(['reset', ['error'], 2, 3])
  })

  test('a request is not sent again if the reused connection is lost long after it was sent', async () => {
    let requests = 0
    const { baseUrl } = await serveTcp((socket) => {
      socket.on('data', () => {
        requests += 1
        if (requests === 1) socket.write(answer)
        else setTimeout(() => socket.resetAndDestroy(), 1_300)
      })
    })
    const backend = openBackend(openPools(), baseUrl)
    await run(backend)
    const { error, steps } = await run(backend)
    expect([error?.outcome, steps, requests]).toEqual(['reset', ['error'], 2])
  })

  test('a request is not sent again if the reused connection fails after a byte of the answer', async () => {
    let requests = 0
    const { baseUrl } = await serveTcp((socket) => {
      socket.on('data', () => {
        requests += 1
        if (requests === 1) socket.write(answer)
        else {
          socket.write('HTTP/1.1 2')
          setTimeout(() => socket.resetAndDestroy(), 30)
        }
      })
    })
    const backend = openBackend(openPools(), baseUrl)
    await run(backend)
    const { error } = await run(backend)
    expect([error?.outcome, requests]).toEqual(['reset', 2])
  })

  test('idle connections that the provider closed are not reused: 50 calls succeed if it closes after each answer', async () => {
    const { baseUrl } = await serveTcp((socket) => {
      socket.on('data', () => {
        socket.write(answer)
        setTimeout(() => socket.destroy(), 1)
      })
    })
    const pools = openPools()
    const backend = openBackend(pools, baseUrl)
    for (let round = 0; round < 50; round++) {
      expect((await run(backend)).steps).toEqual(['head', 'data', 'end'])
      if (round % 3 === 0) await sleep(2)
    }
    await until(() => pools.counts().connections === 0)
  })
})

describe('abort, pause, and resume', () => {
  test('an abort reaches the provider within 100 ms, no event follows, and the next call succeeds', async () => {
    const provider = await simulate({ tokenDelayMs: 5 })
    const backend = openBackend(openPools(), provider.baseUrl)
    provider.script([{ do: 'answer', words: 10_000 }])
    const recording = record(backend, JSON.stringify({ stream: true, messages: [] }), true)
    await recording.firstData()
    const stepCount = recording.steps.length
    const abortedAtMs = performance.timeOrigin + performance.now()
    recording.call.abort()
    recording.call.abort()
    const bytes = recording.bytes
    await until(() => provider.counts().aborted === 1)
    expect(provider.counts().abortedAtMs[0]! - abortedAtMs).toBeLessThan(100)
    await sleep(30)
    expect([recording.steps.length, recording.bytes]).toEqual([stepCount, bytes])
    expect((await run(backend)).steps).toEqual(['head', 'data', 'end'])
  })

  test('aborting before the headers, in onHead, and in onData leaves nothing open', async () => {
    const provider = await simulate()
    const pools = openPools()
    const backend = openBackend(pools, provider.baseUrl)
    provider.script([{ do: 'silence' }])
    const silent = record(backend)
    await until(() => provider.counts().open === 1)
    silent.call.abort()
    expect(silent.call.isSent).toBe(true)
    for (const where of ['onHead', 'onData'] as const) {
      provider.script([{ do: 'stall', afterEvents: 2 }])
      await new Promise<void>((resolve) => {
        const call = backend.call(
          { body: '{"stream":true}', stream: true, requestId: 'req_test' },
          {
            onHead: () => where === 'onHead' && stop(),
            onData: () => where === 'onData' && stop(),
            onEnd: () => expect.unreachable(),
            onError: () => expect.unreachable(),
          },
        )
        const stop = (): void => {
          call.abort()
          resolve()
        }
      })
    }
    await until(() => provider.counts().open === 0)
    expect(silent.steps).toEqual([])
    expect(provider.counts().aborted).toBe(3)
    expect(pools.counts().open).toBe(0)
    expect(bugs).toEqual([])
  })

  test('aborting immediately, while connecting, sends no request and keeps the connection for the next call', async () => {
    const provider = await simulate()
    const pools = openPools()
    const backend = openBackend(pools, provider.baseUrl)
    const recording = record(backend)
    recording.call.abort()
    await until(() => pools.counts().open === 0)
    expect([recording.call.isSent, provider.counts().requests]).toEqual([false, 0])
    await run(backend)
    expect([provider.counts().requests, provider.counts().connections, recording.steps]).toEqual([1, 1, []])
  })

  test('pausing stops reading, which slows the provider down; resuming reads to the last byte', async () => {
    const total = 64 * 1024 * 1024 - 1024
    let written = 0
    const chunk = Buffer.alloc(64 * 1024, 'x')
    const { baseUrl } = await serveHttp((request, response) => {
      request.resume()
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const more = (): void => {
        while (written < total) {
          const part = chunk.subarray(0, Math.min(chunk.length, total - written))
          written += part.length
          if (!response.write(part)) return void response.once('drain', more)
        }
        response.end()
      }
      more()
    })
    const recording = record(openBackend(openPools(), baseUrl), '{}', true)
    await recording.firstData()
    recording.call.pause()
    await sleep(300)
    const readWhilePaused = recording.bytes
    const writtenWhilePaused = written
    await sleep(200)
    expect(recording.bytes).toBe(readWhilePaused)
    expect(written).toBe(writtenWhilePaused)
    expect(written).toBeLessThan(total / 2)
    recording.call.resume()
    recording.call.pause()
    recording.call.resume()
    await recording.ended
    expect([recording.steps, recording.bytes]).toEqual([['head', 'data', 'end'], total])
  })

  test('an answer larger than 64 MiB is aborted', async () => {
    const { baseUrl } = await serveHttp((request, response) => {
      request.resume()
      const chunk = Buffer.alloc(1024 * 1024)
      const more = (): void => {
        while (!response.destroyed && response.write(chunk));
        if (!response.destroyed) response.once('drain', more)
      }
      more()
    })
    const recording = record(openBackend(openPools(), baseUrl))
    const chunks = recording.chunks
    const watch = setInterval(() => chunks.splice(0), 5)
    await recording.ended
    clearInterval(watch)
    expect(recording.error?.outcome).toBe('broken')
    expect(recording.bytes).toBeLessThanOrEqual(64 * 1024 * 1024)
  })

  test('600 calls that are aborted, paused, and resumed at different moments leave nothing open', async () => {
    const provider = await simulate()
    const pools = openPools({ maxConnections: 16, maxWaiting: 600, waitMs: 20_000 })
    const backend = openBackend(pools, provider.baseUrl)
    provider.script([{ do: 'answer', words: 200, repeat: true }])
    const recordings = Array.from({ length: 600 }, () => record(backend, '{"stream":true}', true))
    // The same moments in every run: a small linear congruential sequence.
    let seed = 7
    const below = (limit: number): number => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % limit
    const aborted = new Set<number>()
    await Promise.all(
      recordings.map(async (recording, index) => {
        if (below(3) === 0) recording.call.pause()
        for (let turn = below(6); turn > 0; turn--) await new Promise((resolve) => setImmediate(resolve))
        recording.call.resume()
        if (below(2) === 0) {
          await sleep(below(60))
          if (recording.steps.at(-1) === 'end') return
          recording.call.abort()
          aborted.add(index)
        } else await recording.ended
      }),
    )
    await until(() => pools.counts().open === 0 && provider.counts().open === 0)
    const wrong = recordings.filter(
      ({ steps, text }, index) =>
        !aborted.has(index) && (steps.join() !== 'head,data,end' || !text.endsWith('[DONE]\n\n')),
    )
    expect(wrong).toEqual([])
    expect(
      recordings.filter(({ steps }, index) => aborted.has(index) && (steps.includes('end') || steps.includes('error'))),
    ).toEqual([])
    expect(aborted.size).toBeGreaterThan(50)
    expect(bugs).toEqual([])
    expect(pools.counts().connections).toBeLessThanOrEqual(16)
  })
})

test.each([
  ['openai-responses', 'all models of one credential'],
  ['anthropic-messages', 'all models of one credential'],
  ['gemini', 'one model'],
] as const)('encrypted reasoning in %s belongs to %s', (format, issuer) => {
  const pools = openPools()
  const issuerOf = (model: string, credential = madeUpCredential): string =>
    openBackend(pools, 'http://127.0.0.1:9/v1', { format, model, credential }).issuer
  expect(issuerOf('a')).toBe(issuerOf('a'))
  expect(issuerOf('a') === issuerOf('b')).toBe(issuer !== 'one model')
  expect(issuerOf('a', new Secret('made-up-credential-0002'))).not.toBe(issuerOf('a'))
})

test('each ID has one UUID, in the form that every server accepts', () => {
  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
  expect(uuidOf('req_1')).toMatch(uuid)
  expect(uuidOf('req_1')).toBe(uuidOf('req_1'))
  expect(uuidOf('req_1')).not.toBe(uuidOf('req_2'))
})

test('the UUIDs of IDs that differ in one character have nothing in common', () => {
  const base = 'req_0Vc3mLYi0013Xn1CwlaRoZsD'
  const bitsOf = (id: string): bigint => BigInt(`0x${uuidOf(id).replaceAll('-', '')}`)
  const seen = new Set([bitsOf(base)])
  for (let at = 4; at < base.length; at++) {
    for (const letter of '0123456789ABCDEFabcdef') {
      if (base[at] === letter) continue
      const bits = bitsOf(`${base.slice(0, at)}${letter}${base.slice(at + 1)}`)
      seen.add(bits)
      const changed = (bits ^ bitsOf(base)).toString(2).replaceAll('0', '').length
      // Of 122 bits, half change: fewer than 30 or more than 92 is less likely than one in ten million.
      expect(changed).toBeGreaterThan(30)
      expect(changed).toBeLessThan(92)
    }
  }
  expect(seen.size).toBeGreaterThan(500)
})
