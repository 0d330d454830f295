import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { brotliCompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { readJson, readJsonBody } from '../../src/http/read-body.ts'
import { GatheredBytes } from '../../src/runtime/gathered-bytes.ts'
import { ManualClock } from '../gateway/manual-clock.ts'

test('a body that has arrived never times out, however long it waits for its decoder', async () => {
  const clock = new ManualClock()
  const sender = new PassThrough()
  const request = Object.assign(sender, { headers: { 'content-encoding': 'br' }, complete: true })
  const limits = { maxBytes: 1024 * 1024, timeoutMs: 60_000, clock }
  const read = readJsonBody(request as unknown as IncomingMessage, limits, { spend: () => {} })
  let timers = 1
  // Runs directly after the listener that ends the decoder, which works in another thread.
  sender.on('end', () => (timers = clock.waiting))
  sender.end(brotliCompressSync('{"model":"m"}'))
  expect((await read).body).toEqual({ model: 'm' })
  expect(timers).toBe(0)
})

test('a body whose client disconnected before it is read ends at once, and holds nothing', async () => {
  const clock = new ManualClock()
  const sender = new PassThrough()
  const request = Object.assign(sender, { headers: {}, complete: false })
  sender.destroy()
  await nextTurn()
  const limits = { maxBytes: 1024, timeoutMs: 60_000, clock }
  const read = readJsonBody(request as unknown as IncomingMessage, limits, { spend: () => {} })
  await expect(read).rejects.toMatchObject({ code: 'invalid_json' })
  expect(clock.waiting).toBe(0)
})

test.each([
  ['', ': it is empty'],
  ['[]', ': it is a JSON value of another type'],
  ['null', ': it is a JSON value of another type'],
  ['\ufeff{}', ': it starts with a byte order mark'],
  ['{"a":1}{"b":2}', ''],
])('a body that is not a JSON object is rejected, and the error says why: %j', async (text, where) => {
  await expect(readJson(Buffer.from(text), 1024)).rejects.toMatchObject({
    code: 'invalid_json',
    facts: { words: { where } },
  })
})

test.each([
  [undefined, 'read'],
  ['application/json', 'read'],
  ['Application/JSON ; charset=UTF-8', 'read'],
  ['application/json; charset="utf-8"', 'read'],
  ['application/json;charset=utf8; v=1', 'read'],
  ['application/json; charset=ISO-8859-1', 'read'],
  ['application/vnd.x+json', 'read'],
  ['application/json; charset=utf-16', 'unsupported_media_type'],
  ['application/json; v=1; charset="UTF-16LE"', 'unsupported_media_type'],
  ['application/vnd.x+json; charset=utf-32', 'unsupported_media_type'],
  ['application/json; charset=', 'read'],
  ['application/jsonl', 'unsupported_media_type'],
  ['text/plain; charset=utf-8', 'unsupported_media_type'],
])('with Content-Type %o, a body is %s (contract 2.25)', async (type, expected) => {
  const sender = new PassThrough()
  const headers = type === undefined ? {} : { 'content-type': type }
  const request = Object.assign(sender, { headers, complete: true })
  const limits = { maxBytes: 1024, timeoutMs: 60_000, clock: new ManualClock() }
  const read = readJsonBody(request as unknown as IncomingMessage, limits, { spend: () => {} })
  sender.end('{}')
  const end = await read.then(
    () => 'read',
    (error: unknown) => (error as { code: string }).code,
  )
  expect(end).toBe(expected)
})

describe('a body that takes longer than the limit', () => {
  const KiB = 1024

  /** Sends a number of bytes each second; returns how the read ended, and after how many seconds. */
  async function upload(bytes: number, perSecond: (second: number) => number) {
    const clock = new ManualClock()
    const sender = new PassThrough()
    const request = Object.assign(sender, { headers: {}, complete: false })
    const limits = { maxBytes: 5 * KiB * KiB, timeoutMs: 60_000, clock }
    const result: { end?: string } = {}
    readJsonBody(request as unknown as IncomingMessage, limits, { spend: () => {} }).then(
      () => (result.end = 'read'),
      (error: unknown) => (result.end = (error as { code: string }).code),
    )
    const text = `{"a":"${'x'.repeat(bytes - 8)}"}`
    let sent = 0
    let second = 0
    for (; result.end === undefined && second < 400; second += 1) {
      const piece = text.slice(sent, sent + perSecond(second))
      sent += piece.length
      if (piece !== '') sender.write(piece)
      if (sent === text.length && !request.complete) {
        request.complete = true
        sender.end()
      }
      for (let turn = 0; turn < 8; turn += 1) await nextTurn()
      await clock.advance(1_000)
    }
    return { end: result.end, second }
  }

  test('it is read completely if it arrives at 20 KB/s', async () => {
    expect(await upload(1_800_000, () => 20_000)).toEqual({ end: 'read', second: 90 })
  })

  test.each([
    ['stops after its first second', (second: number) => (second === 0 ? 3_000 * KiB : 0), 60],
    ['arrives at 15 KiB/s', () => 15 * KiB, 60],
    ['stops later', (second: number) => (second < 75 ? 20 * KiB : 0), 80],
    ['arrives at 3 KiB/s', () => 3 * KiB, 10],
  ] as const)('it times out if it %s', async (_, perSecond, second) => {
    expect(await upload(4_000 * KiB, perSecond)).toEqual({ end: 'request_timeout', second })
  })
})

test.each(['add', 'addCopy'] as const)('pieces collected with %s form few blocks, in order', (how) => {
  const gathered = new GatheredBytes()
  const sizes = [1, 1, 5_000, 1, 20_000, 3_000, 4_095, 16_384, 1, 0, 2]
  const pieces = sizes.map((size, index) => Buffer.alloc(size, index))
  for (const piece of pieces) gathered[how](Buffer.from(Uint8Array.from(piece).buffer))
  expect(gathered.length).toBe(sizes.reduce((sum, size) => sum + size, 0))
  expect(gathered.take().equals(Buffer.concat(pieces))).toBe(true)
  expect([gathered.length, gathered.take().length]).toEqual([0, 0])
  for (let index = 0; index < 100_000; index += 1) gathered[how](Buffer.of(1))
  expect(gathered.blocks).toBeLessThan(10)
})
