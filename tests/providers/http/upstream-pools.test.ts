import { createServer as createTlsServer } from 'node:https'
import { performance } from 'node:perf_hooks'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isPublicAddress } from '../../../src/providers/http/public-address.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import { makeCertificate } from '../certificate.ts'
import { listen, openBackend, openPools, record, run, serveHttp, serveTcp, simulate, sleep, until } from '../support.ts'

/** The text of a non-streaming or streamed chat answer. */
function textIn(text: string): string {
  const pieces = text.startsWith('{') ? [text] : text.split('\n\n').map((event) => event.slice('data: '.length))
  return pieces
    .filter((piece) => piece.startsWith('{'))
    .map((piece) => {
      const [choice] = (
        JSON.parse(piece) as { choices: { message?: { content: string }; delta?: { content?: string } }[] }
      ).choices
      return choice?.message?.content ?? choice?.delta?.content ?? ''
    })
    .join('')
}

describe('the limit on connections', () => {
  test('1,000 concurrent calls all succeed over at most 64 connections', async () => {
    const provider = await simulate()
    const pools = openPools({ maxConnections: 64, maxWaiting: 1000, waitMs: 20_000 })
    const backend = openBackend(pools, provider.baseUrl)
    const bodies = Array.from({ length: 1000 }, (_, index) =>
      JSON.stringify({
        model: 'm',
        stream: index % 2 === 0,
        messages: [{ role: 'user', content: `number ${index}.` }],
      }),
    )
    const recordings = await Promise.all(bodies.map((body) => run(backend, body)))
    expect(recordings.filter(({ steps }) => steps.join() !== 'head,data,end')).toEqual([])
    expect(recordings.filter(({ text }, index) => !textIn(text).includes(`You said: "number ${index}."`))).toEqual([])
    expect(provider.counts()).toMatchObject({ requests: 1000, connections: 64, open: 0 })
    expect(pools.counts().open).toBe(0)
  })

  test('calls beyond the queue fail immediately, calls that wait too long fail, and aborted calls leave the queue', async () => {
    const provider = await simulate()
    provider.script([{ do: 'silence', repeat: true }])
    const pools = openPools({ maxConnections: 1, maxWaiting: 2, waitMs: 120 })
    const backend = openBackend(pools, provider.baseUrl)
    const running = record(backend)
    const startedAtMs = performance.now()
    const waits = record(backend)
    const leaves = record(backend)
    const refused = await run(backend)
    expect(refused.error).toMatchObject({ outcome: 'not_sent', blames: 'gateway' })
    expect(performance.now() - startedAtMs).toBeLessThan(100)
    leaves.call.abort()
    await waits.ended
    expect(waits.error?.outcome).toBe('not_sent')
    expect(performance.now() - startedAtMs).toBeGreaterThan(110)
    expect([leaves.steps, running.steps, pools.counts().open]).toEqual([[], [], 1])
    provider.script([])
    const next = run(backend)
    running.call.abort()
    expect((await next).steps).toEqual(['head', 'data', 'end'])
  })

  test('the most recently used connection is used next, so that the others can expire', async () => {
    const ports: number[] = []
    const { baseUrl } = await serveHttp((request, response) => {
      request.resume()
      ports.push(request.socket.remotePort!)
      setTimeout(() => response.end('{}'), 10)
    })
    const backend = openBackend(openPools(), baseUrl)
    await Promise.all([run(backend), run(backend), run(backend)])
    ports.length = 0
    for (let round = 0; round < 5; round++) await run(backend)
    expect(new Set(ports).size).toBe(1)
  })

  test('a connection that the provider closes is removed, and its slot is free', async () => {
    const { baseUrl, sockets } = await serveHttp((request, response) => {
      request.resume()
      response.end('{}')
    })
    const pools = openPools()
    const backend = openBackend(pools, baseUrl)
    await run(backend)
    expect(pools.counts().connections).toBe(1)
    for (const socket of sockets) socket.destroy()
    await until(() => pools.counts().connections === 0)
    expect((await run(backend)).steps).toEqual(['head', 'data', 'end'])
  })
})

describe('a large body', () => {
  const body = Buffer.from(JSON.stringify({ messages: [{ role: 'user', content: 'x'.repeat(16 * 1024 * 1024) }] }))

  test('is flushed if the provider reads it before it answers', async () => {
    const { baseUrl } = await serveHttp((request, response) => {
      request.resume().on('end', () => response.end('{}'))
    })
    const { steps, call } = await run(openBackend(openPools(), baseUrl), body)
    expect([steps, call.isFlushed]).toEqual([['head', 'data', 'end'], true])
  })

  test('is not flushed if the provider answers first', async () => {
    const { baseUrl } = await serveHttp((request, response) => {
      request.pause()
      response.end('{}')
    })
    const { steps, call } = await run(openBackend(openPools(), baseUrl), body)
    expect([steps, call.isFlushed]).toEqual([['head', 'data', 'end'], false])
  })
})

describe('the limit on the connections of all pools together', () => {
  const open = (pools: ReturnType<typeof openPools>, baseUrl: string, word: string): ReturnType<typeof openBackend> =>
    openBackend(pools, baseUrl, { credential: new Secret(word) })

  test('holds for calls with any number of credentials, and a call that ends serves one that waits elsewhere', async () => {
    const provider = await simulate()
    provider.script([{ do: 'silence', repeat: true }])
    const pools = openPools({ maxConnections: 4, maxTotal: 5, waitMs: 20_000 })
    const backends = Array.from({ length: 6 }, (_, index) => open(pools, provider.baseUrl, `word-${index}`))
    const calls = backends.flatMap((backend) => [record(backend), record(backend)])
    await until(() => provider.counts().open === 5)
    expect(pools.counts()).toEqual({ pools: 6, connections: 5, places: 5, open: 12, waiting: 7 })
    provider.script([])
    for (const { call } of calls.slice(0, 5)) call.abort()
    await Promise.all(calls.slice(5).map(({ ended }) => ended))
    expect(calls.slice(5).filter(({ steps }) => steps.join() !== 'head,data,end')).toEqual([])
    expect(provider.counts().connections).toBeLessThanOrEqual(5 + 7)
    expect(pools.counts()).toMatchObject({ open: 0 })
    expect(pools.counts().connections).toBeLessThanOrEqual(5)
  })

  test('is no reason to refuse a call while a connection is idle', async () => {
    const provider = await simulate()
    const pools = openPools({ maxConnections: 2, maxTotal: 2, waitMs: 100 })
    for (const word of ['first', 'second', 'third', 'first']) {
      expect((await run(open(pools, provider.baseUrl, word))).steps).toEqual(['head', 'data', 'end'])
    }
    expect(pools.counts()).toEqual({ pools: 3, connections: 2, places: 2, open: 0, waiting: 0 })
  })

  test('leaves a place for others when one provider never answers', async () => {
    const [silent, provider] = [await simulate(), await simulate()]
    silent.script([{ do: 'silence', repeat: true }])
    const pools = openPools({ maxConnections: 4, maxTotal: 5, waitMs: 20_000 })
    const hanging = open(pools, silent.baseUrl, 'silent')
    const calls = Array.from({ length: 8 }, () => record(hanging))
    await until(() => silent.counts().open === 4)
    expect((await run(open(pools, provider.baseUrl, 'other'))).steps).toEqual(['head', 'data', 'end'])
    for (const { call } of calls) call.abort()
  })

  test('gives a free place to a pool that waits, even one with more connections', async () => {
    const [silent, provider] = [await simulate(), await simulate()]
    silent.script([{ do: 'silence', repeat: true }])
    provider.script([{ do: 'answer', words: 20, tokenDelayMs: 5 }])
    const pools = openPools({ maxConnections: 4, maxTotal: 3, waitMs: 20_000 })
    const answered = record(open(pools, provider.baseUrl, 'answered'), '{"stream":true}', true)
    await until(() => provider.counts().open === 1)
    const hanging = open(pools, silent.baseUrl, 'silent')
    const calls = Array.from({ length: 3 }, () => record(hanging))
    await until(() => silent.counts().open === 2)
    await answered.ended
    await until(() => silent.counts().open === 3)
    for (const { call } of calls) call.abort()
  })

  test('lets a pool with fewer connections go first when another has a queue', async () => {
    const provider = await simulate()
    provider.script([{ do: 'answer', words: 20, tokenDelayMs: 5, repeat: true }])
    const pools = openPools({ maxConnections: 2, maxTotal: 2, waitMs: 20_000 })
    const ended: string[] = []
    const start = (word: string) => {
      const call = record(open(pools, provider.baseUrl, word), '{"stream":true}', true)
      return call.ended.then(() => ended.push(word))
    }
    const calls = Array.from({ length: 8 }, () => start('many'))
    await Promise.all([...calls, start('one')])
    expect(ended.indexOf('one')).toBeLessThan(5)
  })
})

describe('the limit on pools', () => {
  test('the least recently used pool is evicted; its running call finishes, and its backend still works', async () => {
    const provider = await simulate()
    const pools = openPools({ maxPools: 3 })
    const backendOf = (word: string): ReturnType<typeof openBackend> =>
      openBackend(pools, provider.baseUrl, { credential: new Secret(word) })
    provider.script([{ do: 'answer', words: 50, tokenDelayMs: 5 }])
    const oldest = backendOf('oldest')
    const running = record(oldest, '{"stream":true}', true)
    await running.firstData()
    for (let index = 0; index < 20; index++) {
      expect((await run(backendOf(`other-${index}`))).steps).toEqual(['head', 'data', 'end'])
    }
    expect(pools.counts().pools).toBe(4)
    await running.ended
    expect(running.steps).toEqual(['head', 'data', 'end'])
    expect(running.text).toContain('[DONE]')
    expect(pools.counts()).toEqual({ pools: 3, connections: 3, places: 3, open: 0, waiting: 0 })
    expect((await run(oldest)).steps).toEqual(['head', 'data', 'end'])
    expect(pools.counts().pools).toBe(3)
  })
})

describe('closing', () => {
  test('close waits for running calls and rejects new ones', async () => {
    const provider = await simulate()
    const pools = openPools()
    const backend = openBackend(pools, provider.baseUrl)
    provider.script([{ do: 'answer', words: 20, tokenDelayMs: 10 }])
    const running = record(backend, '{"stream":true}', true)
    await running.firstData()
    const closing = pools.close(5_000)
    const refused = await run(backend)
    expect([refused.steps, refused.error?.outcome]).toEqual([['error'], 'not_sent'])
    await closing
    expect(running.steps).toEqual(['head', 'data', 'end'])
    expect(pools.counts()).toEqual({ pools: 0, connections: 0, places: 0, open: 0, waiting: 0 })
  })

  test('close aborts calls that run longer than the limit, with an error for each', async () => {
    const provider = await simulate()
    provider.script([{ do: 'stall', afterEvents: 1 }, { do: 'silence' }, { do: 'silence' }])
    const pools = openPools({ maxConnections: 2 })
    const backend = openBackend(pools, provider.baseUrl)
    const calls = [record(backend, '{"stream":true}', true), record(backend), record(backend)]
    await until(() => provider.counts().open === 2)
    const startedAtMs = performance.now()
    await pools.close(80)
    expect(performance.now() - startedAtMs).toBeLessThan(1_000)
    await Promise.all(calls.map((call) => call.ended))
    expect(calls.map((call) => call.steps.filter((step) => step === 'error' || step === 'end'))).toEqual([
      ['error'],
      ['error'],
      ['error'],
    ])
    await until(() => provider.counts().open === 0)
    expect(pools.counts()).toEqual({ pools: 0, connections: 0, places: 0, open: 0, waiting: 0 })
  })

  test('close returns immediately if nothing is open', async () => {
    await openPools().close(10_000)
  })
})

describe('TLS', () => {
  test('an untrusted certificate is rejected, and with a trusted one for the name the session is resumed', async () => {
    const { cert, key } = makeCertificate()
    const resumed: boolean[] = []
    const server = createTlsServer({ cert, key }, (request, response) => {
      request.resume()
      resumed.push((request.socket as unknown as { isSessionReused(): boolean }).isSessionReused())
      response.setHeader('connection', 'close')
      response.end('{}')
    })
    const port = await listen(server)
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    const untrusted = await run(openBackend(openPools(), `https://localhost:${port}`))
    expect(untrusted.error?.outcome).toBe('unreachable')
    const pools = openPools({ ca: cert })
    expect((await run(openBackend(pools, `https://127.0.0.1:${port}`))).error?.outcome).toBe('unreachable')
    const backend = openBackend(pools, `https://localhost:${port}`)
    expect((await run(backend)).steps).toEqual(['head', 'data', 'end'])
    await sleep(20)
    expect((await run(backend)).steps).toEqual(['head', 'data', 'end'])
    expect(resumed).toEqual([false, true])
  })
})

describe('publicOnly', () => {
  test.each([
    'http://127.0.0.1:',
    'http://[::1]:',
    'http://[::ffff:127.0.0.1]:',
    'http://localhost:',
    'http://0x7f.1:',
    'http://2130706433:',
  ])('%s is unreachable and no connection is opened', async (start) => {
    let connections = 0
    const { port } = await serveTcp(() => (connections += 1))
    const { error } = await run(openBackend(openPools(), `${start}${port}`, { publicOnly: true }))
    await sleep(20)
    expect([error?.outcome, connections]).toEqual(['unreachable', 0])
  })

  test.each(['http', 'https'])('a name that is rebound to loopback gets no byte over %s', async (protocol) => {
    const seen: Buffer[] = []
    let connections = 0
    const { port } = await serveTcp((socket) => {
      connections += 1
      socket.on('data', (chunk: Buffer) => seen.push(chunk))
    })
    const lookup = (
      _host: string,
      _options: unknown,
      callback: (error: null, addresses: { address: string; family: number }[]) => void,
    ): void => callback(null, [{ address: '127.0.0.1', family: 4 }])
    const pools = openPools({ lookup })
    const { error } = await run(openBackend(pools, `${protocol}://provider.example:${port}`, { publicOnly: true }))
    await sleep(30)
    expect([error?.outcome, connections, seen]).toEqual(['unreachable', 1, []])
  })

  test('only publicly reachable addresses are public', () => {
    const forbidden = [
      '0.0.0.0',
      '10.1.2.3',
      '100.64.0.1',
      '100.100.100.200',
      '127.0.0.1',
      '127.255.255.255',
      '168.63.129.16',
      '169.254.169.254',
      '172.16.0.1',
      '172.31.255.255',
      '192.0.0.192',
      '192.168.1.1',
      '198.18.0.1',
      '224.0.0.1',
      '255.255.255.255',
      '::',
      '::1',
      '::ffff:10.0.0.1',
      '::ffff:169.254.169.254',
      '::ffff:7f00:1',
      '::127.0.0.1',
      '64:ff9b::7f00:1',
      'fe80::1',
      'fc00::1',
      'fd00:ec2::254',
      'ff02::1',
      '2001::1',
      '2001:db8::1',
      '2002:7f00:1::1',
      '100::1',
      '',
      'localhost',
      '1.2.3',
      '127.0.0.1%lo',
    ]
    const allowed = [
      '1.1.1.1',
      '8.8.8.8',
      '172.32.0.1',
      '100.128.0.1',
      '169.253.0.1',
      '::ffff:8.8.8.8',
      '2606:4700::1111',
      '2a00:1450::1',
    ]
    expect(forbidden.filter(isPublicAddress)).toEqual([])
    expect(allowed.filter((address) => !isPublicAddress(address))).toEqual([])
  })
})

describe('idle connections', () => {
  test('a connection is not used in the last second before its peer closes it', async () => {
    let nowMs = Date.UTC(2026, 10, 20)
    const clock = { ...systemClock(), monotonicMs: () => nowMs }
    let opened = 0
    const { baseUrl } = await serveTcp((socket) => {
      opened += 1
      socket.on('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\n{}')
      })
    })
    const pools = openPools({ clock })
    const backend = openBackend(pools, baseUrl)
    await run(backend)
    nowMs += 3_999
    await run(backend)
    expect(opened).toBe(1)
    nowMs += 4_000
    expect((await run(backend)).steps).toEqual(['head', 'data', 'end'])
    expect([opened, pools.counts().connections]).toEqual([2, 1])
  })

  test('if a peer sends data without a request, the connection is closed and the data dropped', async () => {
    let opened = 0
    const { baseUrl } = await serveTcp((socket) => {
      const number = (opened += 1)
      socket.on('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n${number}`)
        if (number === 1) setTimeout(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nX'), 20)
      })
    })
    const pools = openPools()
    const backend = openBackend(pools, baseUrl)
    expect((await run(backend)).text).toBe('1')
    await until(() => pools.counts().connections === 0)
    expect((await run(backend)).text).toBe('2')
  })

  test('if an answer arrives before the whole request was sent, the connection is not reused', async () => {
    let opened = 0
    const { baseUrl } = await serveTcp((socket) => {
      opened += 1
      socket.once('data', () => {
        socket.pause()
        socket.write('HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\n{}')
      })
    })
    const pools = openPools()
    const backend = openBackend(pools, baseUrl)
    const { head } = await run(backend, 'x'.repeat(8 * 1024 * 1024))
    expect([head?.status, opened, pools.counts().connections]).toEqual([413, 1, 0])
  })
})
