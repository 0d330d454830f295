import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { ResponseSink } from '../../src/http/response-sink.ts'

const signals = {
  rateLimit: 1,
  rateRemaining: 1,
  rateReset: 0,
  quotaLimit: 1,
  quotaUsed: 0,
  quotaRemaining: 1,
  quotaReset: 0,
}

/** What a client reads of a stream whose first text, and then its end, are written before the delivery mark. */
async function readHeld(first: string, last: string, encoding: 'latin1' | 'utf8'): Promise<Buffer> {
  const server = createServer((_request, response) => {
    const sink = new ResponseSink(response, 'req_1', () => 0, undefined)
    sink.hold()
    sink.open({ stream: true, upstream: 'a/b', model: 'b', simulated: false, retryCount: 0, signals })
    sink.write(first, encoding)
    sink.end(last, encoding)
    sink.release()
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  onTestFinished(() => {
    server.close()
  })
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  return Buffer.from(await response.arrayBuffer())
}

test.each([
  ['nothing', '', ''],
  ['short text', 'data: a\n\n', 'data: b\n\n'],
  ['long text in latin1', 'é'.repeat(70_000), 'ü'.repeat(24 * 1024 + 1)],
])('a client reads all of a held stream: %s', async (_, first, last) => {
  expect(await readHeld(first, last, 'latin1')).toEqual(Buffer.from(first + last, 'latin1'))
})

test('a client reads all of a held stream: long text in UTF-8', async () => {
  const text = `x${'😀'.repeat(30_000)}`
  expect(await readHeld(text, text, 'utf8')).toEqual(Buffer.from(text + text))
})
