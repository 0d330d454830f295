import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { errorOf } from '../refusals.ts'
import type { Service } from '../service.ts'
import { Wire } from '../wire.ts'
import { head, HostileService, MiB, slowLimitMs, whole } from './hostile-service.ts'

let hostile: HostileService
let service: Service

beforeAll(async () => {
  hostile = await HostileService.start()
  service = hostile.service
})
afterAll(() => service.stop())
afterEach(() => hostile.expectUnharmed())

describe('bodies of 64 MB', () => {
  const large = 64 * MiB
  const piece = Buffer.alloc(MiB, 'a')

  test('a declared length gets a 413 that a client can read even if it sends the whole body first', async () => {
    const wire = await Wire.open(service.origin)
    await wire.write(hostile.sign(head(`content-length: ${large}\r\n`)))
    for (let sent = 0; sent < large; sent += MiB) await wire.write(piece)
    await expectTooLarge(wire)
    // The connection remains usable.
    await wire.write(`GET /health HTTP/1.1\r\nhost: x\r\n\r\n`)
    expect((await wire.answer()).status).toBe(200)
    wire.destroy()
  })

  test('a declared length gets 413 at once, before the client sends the body', async () => {
    const wire = await Wire.open(service.origin)
    await wire.write(hostile.sign(head(`content-length: ${large}\r\n`)))
    await expectTooLarge(wire)
    wire.destroy()
  })

  test('a chunked body gets a readable 413', async () => {
    const wire = await Wire.open(service.origin)
    await wire.write(hostile.sign(head('transfer-encoding: chunked\r\n')))
    await wire.write(`2\r\n{"\r\n`)
    for (let sent = 0; sent < large; sent += MiB)
      await wire.write(Buffer.concat([Buffer.from(`${MiB.toString(16)}\r\n`), piece, Buffer.from('\r\n')]))
    await wire.write('0\r\n\r\n')
    const answer = await wire.answer()
    // A name that long is rejected before the body is too large.
    expect([400, 413]).toContain(answer.status)
    wire.destroy()
  })

  test('a chunked body with one long string gets a readable 413', async () => {
    const wire = await Wire.open(service.origin)
    await wire.write(hostile.sign(head('transfer-encoding: chunked\r\n')))
    await wire.write(`6\r\n{"a":"\r\n`)
    for (let sent = 0; sent < large; sent += MiB)
      await wire.write(Buffer.concat([Buffer.from(`${MiB.toString(16)}\r\n`), piece, Buffer.from('\r\n')]))
    await wire.write('0\r\n\r\n')
    await expectTooLarge(wire)
    wire.destroy()
  })

  test('a rejected body that never ends is closed', async () => {
    const wire = await Wire.open(service.origin)
    await wire.write(hostile.sign(head('transfer-encoding: chunked\r\n')))
    await wire.write(`6\r\n{"a":"\r\n`)
    const chunk = Buffer.concat([Buffer.from(`${MiB.toString(16)}\r\n`), piece, Buffer.from('\r\n')])
    let sent = 0
    while (!wire.closed && sent < 1024) {
      await wire.write(chunk)
      sent += 1
    }
    expect(sent).toBeLessThan(1024)
    expect(wire.closed).toBe(true)
  })

  test('a request without a key gets a readable 401', async () => {
    const wire = await Wire.open(service.origin)
    await wire.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nuser-agent: t/1\r\ncontent-length: ${large}\r\n\r\n`,
    )
    for (let sent = 0; sent < large; sent += MiB) await wire.write(piece)
    expect((await wire.answer()).status).toBe(401)
    wire.destroy()
  })

  async function expectTooLarge(wire: Wire): Promise<void> {
    const answer = await wire.answer()
    expect(answer.status).toBe(413)
    expect(errorOf(answer)).toMatchObject({ code: 'payload_too_large', message: expect.stringContaining('5 MiB') })
  }
})

describe('slow senders and half-open connections', () => {
  test('headers sent byte by byte get 408 or a closed connection within a bounded time', async () => {
    const wire = await Wire.open(service.origin)
    const startMs = performance.now()
    const dribble = dribbleInto(wire, `GET /v1/models HTTP/1.1\r\nhost: x\r\nx-pad: ${'a'.repeat(1_000)}\r\n\r\n`)
    const answer = await wire.answerOrEnd(slowLimitMs)
    expect(performance.now() - startMs).toBeLessThan(slowLimitMs)
    if (answer !== undefined) expect(errorOf(answer)).toMatchObject({ code: 'request_timeout', retryable: true })
    expect(answer?.status ?? 408).toBe(408)
    await wire.ended()
    wire.destroy()
    await dribble
  })

  test('a body sent byte by byte gets a readable 408 and then a closed connection', async () => {
    const wire = await Wire.open(service.origin)
    await wire.write(hostile.sign(head('content-length: 1000\r\n')))
    const startMs = performance.now()
    const dribble = dribbleInto(wire, `{"model":"${'a'.repeat(990)}`)
    const answer = await wire.answer(slowLimitMs)
    expect(performance.now() - startMs).toBeLessThan(3_000)
    expect(answer.status).toBe(408)
    expect(answer.headers.get('x-should-retry')).toBe('true')
    await wire.ended()
    wire.destroy()
    await dribble
  })

  test('a rejected body that continues byte by byte is closed within a bounded time', async () => {
    const wire = await Wire.open(service.origin)
    await wire.write(hostile.sign(head(`content-length: ${64 * MiB}\r\n`)))
    expect((await wire.answer()).status).toBe(413)
    const dribble = dribbleInto(wire, 'a'.repeat(1_000))
    await wire.ended(slowLimitMs)
    // There is only one answer.
    expect(wire.bytes).toBe('')
    wire.destroy()
    await dribble
  })

  test('a connection without any bytes is closed within a bounded time', async () => {
    const wire = await Wire.open(service.origin)
    await wire.ended(slowLimitMs)
    wire.destroy()
  })

  test.each([
    [
      'a GET',
      () => `GET /v1/models HTTP/1.1\r\nhost: x\r\nuser-agent: t/1\r\nauthorization: Bearer ${service.key}\r\n\r\n`,
    ],
    ['a non-streaming request', () => whole({})],
    ['a streaming request', () => whole({ stream: true })],
  ])('a client that sends %s and then ends its side is answered', async (_name, bytes) => {
    const wire = await Wire.open(service.origin)
    await wire.write(hostile.sign(bytes()))
    wire.finish()
    await wire.ended(slowLimitMs)
    expect(wire.bytes.replaceAll('HTTP/1.1 100 Continue\r\n\r\n', '')).toMatch(/^HTTP\/1\.1 200 /)
    wire.destroy()
  })

  test.each([
    ['half a body', () => head('content-length: 1000\r\n') + '{"model"'],
    ['half a header', () => 'GET /v1/mod'],
  ])('a client that sends %s and then ends its side is disconnected', async (_name, bytes) => {
    const wire = await Wire.open(service.origin)
    await wire.write(hostile.sign(bytes()))
    wire.finish()
    await wire.ended(slowLimitMs)
    wire.destroy()
  })

  test.each([
    ['closes', (wire: Wire) => wire.destroy()],
    ['resets', (wire: Wire) => wire.reset()],
  ])('a client that %s while the backend is silent aborts the backend within 100 ms', async (_name, leave) => {
    service.providers[0]!.script([{ do: 'silence' }])
    const before = service.providers[0]!.counts()
    const wire = await Wire.open(service.origin)
    await wire.write(hostile.sign(whole({ stream: true })))
    await expect.poll(() => service.providers[0]!.counts().requests).toBe(before.requests + 1)
    leave(wire)
    await expect
      .poll(() => service.providers[0]!.counts().aborted, { timeout: 1_000, interval: 10 })
      .toBe(before.aborted + 1)
  })

  test('a client that ends its side during a stream counts as disconnected', async () => {
    service.providers[0]!.script([{ do: 'answer', words: 5_000, tokenDelayMs: 5 }])
    const wire = await Wire.open(service.origin)
    await wire.write(hostile.sign(whole({ stream: true })))
    await expect.poll(() => wire.bytes).toContain('data:')
    wire.finish()
    await wire.ended(slowLimitMs)
    wire.destroy()
  })
})

describe('clients that reset the connection', () => {
  const half = '{"model":"svc-router/frontier","mess'
  test.each([
    ['at once', (): string => '', undefined],
    ['in the headers', (): string => `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nuser-ag`, undefined],
    ['in the body', (): string => head(`content-length: 500\r\n`) + half, undefined],
    ['while the backend is silent', (): string => whole({}), { do: 'silence' }],
    ['while the backend is silent during a stream', (): string => whole({ stream: true }), { do: 'silence' }],
    [
      'in the middle of a stream',
      (): string => whole({ stream: true }),
      { do: 'answer', words: 2_000, tokenDelayMs: 1 },
    ],
    ['after a non-streaming answer', (): string => whole({}), { do: 'answer', length: 1_000_000 }],
    ['after a body that is too large', (): string => head(`content-length: ${64 * MiB}\r\n`) + half, undefined],
  ] as const)('a reset %s leaves nothing open', async (_name, bytes, step) => {
    const rounds = 10
    for (let round = 0; round < rounds; round++) {
      service.providers[0]!.script(step === undefined ? [] : [step])
      const wire = await Wire.open(service.origin)
      await wire.write(hostile.sign(bytes()))
      await new Promise((resolve) => setTimeout(resolve, (round * 17) % 50))
      wire.reset()
      // The current script step must be used or dropped before the next one is set.
      await new Promise((resolve) => setTimeout(resolve, 30))
      service.providers[0]!.script([])
    }
    await expect.poll(() => service.providers[0]!.counts().open, { timeout: 5_000 }).toBe(0)
  })
})

test('200 simultaneous hostile connections do not delay others', async () => {
  const kinds = [
    () => 'garbage\r\n\r\n',
    () => head('content-length: 1000\r\n') + '{"a":',
    () => `GET /v1/models HTTP/1.1\r\nhost: x\r\nx: ${'a'.repeat(100_000)}\r\n\r\n`,
    () => head('content-length: 20000\r\n') + '['.repeat(20_000),
    () => head('transfer-encoding: chunked\r\n') + 'zz\r\n',
    () => 'GET /v1',
  ]
  const wires = await Promise.all(Array.from({ length: 200 }, () => Wire.open(service.origin)))
  const all = wires.map(async (wire, index) => {
    await wire.write(hostile.sign(kinds[index % kinds.length]!()))
    const answer = await wire.answerOrEnd(slowLimitMs)
    expect(answer?.status ?? 400).toBeLessThan(500)
    wire.destroy()
  })
  const startMs = performance.now()
  expect((await service.chat()).status).toBe(200)
  expect(performance.now() - startMs).toBeLessThan(2_000)
  await Promise.all(all)
})

/** Writes a byte every 100 ms until the connection closes. */
async function dribbleInto(wire: Wire, text: string): Promise<void> {
  for (const byte of text) {
    if (wire.closed) return
    await wire.write(byte)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
