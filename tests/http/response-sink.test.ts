import { createServer, ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { AnswerHead } from '../../src/gateway/ports.ts'
import { ResponseSink } from '../../src/http/response-sink.ts'
import { signals } from './signals.ts'

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

/** All lines that the server sends for one request, in alphabetical order. `prepare` gets the response first. */
async function readLines(head: AnswerHead, prepare: (response: ServerResponse) => void): Promise<string[]> {
  const server = createServer((_request, response) => {
    prepare(response)
    const sink = new ResponseSink(response, 'req_1', () => 0, 'X-Other-Id')
    sink.open(head)
    sink.end('{"a":1}')
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  onTestFinished(() => {
    server.close()
  })
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.end('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  const sent = await text(socket)
  return sent
    .replace(/Date: .*/, 'Date: now')
    .split('\r\n')
    .toSorted()
}

const wholeHead = {
  stream: false,
  upstream: 'a/b',
  model: 'modèle\r\nX-Evil: 1',
  simulated: true,
  retryCount: 1,
  isReplayed: true as const,
  costUsd: '0.10',
  maxOutputTokens: 5,
  signals,
}

test.each([
  ['a whole answer', wholeHead],
  ['a stream', { ...wholeHead, stream: true }],
])('the head of %s is the same whether Node checks its headers or not', async (_, head) => {
  const writeHead = vi.spyOn(ServerResponse.prototype, 'writeHead')
  onTestFinished(() => {
    writeHead.mockRestore()
  })
  const unchecked = await readLines(head, () => {})
  expect(writeHead).not.toHaveBeenCalled()
  // Headers that were set before, as for browsers, must be merged with the others.
  const checked = await readLines(head, (response) => response.setHeader('Vary', 'Origin'))
  expect(writeHead).toHaveBeenCalled()
  expect(checked.filter((line) => line !== 'Vary: Origin')).toEqual(unchecked)
  expect(unchecked).toContain('X-Svc-Router-Model: mod?le??X-Evil: 1')
})
