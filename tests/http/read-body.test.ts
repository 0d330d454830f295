import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { brotliCompressSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { readJsonBody } from '../../src/http/read-body.ts'
import { ManualClock } from '../gateway/manual-clock.ts'

test('a body that has arrived is never late, however long it waits for its decoder', async () => {
  const clock = new ManualClock()
  const sender = new PassThrough()
  const request = Object.assign(sender, { headers: { 'content-encoding': 'br' }, complete: true })
  const limits = { maxBytes: 1024 * 1024, timeoutMs: 60_000, clock }
  const read = readJsonBody(request as unknown as IncomingMessage, limits, { spend: () => {} })
  let timers = 1
  // Right behind the listener that passes the end on to the decoder, which works in another thread.
  sender.on('end', () => (timers = clock.waiting))
  sender.end(brotliCompressSync('{"model":"m"}'))
  expect((await read).body).toEqual({ model: 'm' })
  expect(timers).toBe(0)
})
